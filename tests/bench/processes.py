"""Processes of the bench: servers that end with it, and what memory they take."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ipxeready.conf import REPOSITORY
from tests.processes import WITH_US, free_port

#: The servers hang up after 15 s.
_IDLE = 5.0
CP_TOKEN = "token-of-the-bench"


@dataclass(frozen=True)
class Memory:
    """MB of one process: resident, and its share of what several hold together."""

    name: str
    rss: float
    pss: float


class Server:
    """One server on a loopback port of its own; `start` returns when it answers."""

    def __init__(
        self,
        command: list[str],
        environ: Mapping[str, str],
        *,
        port: int,
        health: str = "/healthz",
        log: Path,
    ) -> None:
        self.port = port
        self._command = command
        self._health = health
        self._log = log
        self._environ = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("IPXE_", "DJANGO_"))
        } | dict(environ)
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: http.client.HTTPConnection | None = None
        self._used = 0.0

    def start(self) -> float:
        """Seconds until it answered."""
        begin = time.perf_counter()
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*WITH_US, sys.executable, *self._command],
                cwd=REPOSITORY,
                env=self._environ,
                stdout=log,
                stderr=log,
            )
        while not self._answers():
            late = time.perf_counter() - begin > 60
            if late or self._process.poll() is not None:
                raise RuntimeError(f"no start:\n{self._log.read_text()[-3000:]}")
            time.sleep(0.01)
        return time.perf_counter() - begin

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        with contextlib.suppress(OSError), contextlib.closing(connection):
            connection.request("GET", self._health)
            return connection.getresponse().status == 200
        return False

    def ask(
        self, method: str, path: str, body: Any = None, token: str = CP_TOKEN
    ) -> bytes:
        """The answer's body over a kept connection; RuntimeError unless it succeeded."""
        if time.monotonic() - self._used > _IDLE:
            self._hang_up()
        if self._connection is None:
            self._connection = http.client.HTTPConnection(
                "127.0.0.1", self.port, timeout=120
            )
            self._connection.connect()
            self._connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        headers = {"Authorization": f"Bearer {token}"}
        data = None
        if body is not None:
            data = json.dumps(body)
            headers["Content-Type"] = "application/json"
        self._connection.request(method, path, data, headers)
        answer = self._connection.getresponse()
        text = answer.read()
        self._used = time.monotonic()
        if not 200 <= answer.status < 300:
            raise RuntimeError(f"{method} {path}: {answer.status} {text[:500]!r}")
        return text

    def _hang_up(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def memory(self) -> list[Memory]:
        """The master and its workers."""
        assert self._process is not None
        return [
            _memory("master" if at == 0 else f"worker {at}", pid)
            for at, pid in enumerate(_family(self._process.pid))
        ]

    def stop(self) -> None:
        """End it and wait for it."""
        self._hang_up()
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def product(root: Path, log: Path, **environ: str) -> Server:
    """A control plane as shipped, on `root`."""
    port = free_port()
    settings = {
        "IPXE_ROOT": str(root),
        "IPXE_CP_BIND": f"127.0.0.1:{port}",
        "IPXE_CP_TOKEN": CP_TOKEN,
        "IPXE_CP_DNSMASQ_RELOAD": "none",
        # The index lies beside the root and goes with it.
        "RUNTIME_DIRECTORY": str(root.parent),
    }
    return Server(["manage.py", "serve"], settings | environ, port=port, log=log)


def plain(root: Path, log: Path) -> Server:
    """The empty view and the naive way on the same files."""
    port = free_port()
    return Server(
        ["-m", "tests.bench.plain"],
        {"IPXE_ROOT": str(root), "IPXE_CP_BIND": f"127.0.0.1:{port}"},
        port=port,
        health="/empty",
        log=log,
    )


def _family(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [pid, *map(int, children)]


def _memory(name: str, pid: int) -> Memory:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]
    sizes = {
        line.split(":")[0]: float(line.split()[1]) / 1024
        for line in lines
        if line.endswith("kB")
    }
    return Memory(name, sizes["Rss"], sizes["Pss"])
