"""`make run` as a user starts it, on a root and ports of its own."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from ipxeready.conf import REPOSITORY
from tests.processes import free_port


class Local:
    """One `python -m ipxeready.local` on a root and ports of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.ports = {name: free_port() for name in ("cp", "agent", "iscsi")}
        self.environ = {
            **{k: v for k, v in os.environ.items() if not k.startswith("IPXE_")},
            "DJANGO_SETTINGS_MODULE": "ipxeready.settings",
            "IPXE_ROOT": str(root),
            "IPXE_CP_BIND": f"127.0.0.1:{self.ports['cp']}",
            "IPXE_AGENT_BIND": f"127.0.0.1:{self.ports['agent']}",
            "IPXE_ISCSI_PORTAL": f"127.0.0.1:{self.ports['iscsi']}",
            "IPXE_CP_DNSMASQ_RELOAD": "none",
            "RUNTIME_DIRECTORY": str(root.parent),
        }
        self.process: subprocess.Popen[str] | None = None

    def popen(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "ipxeready.local"],
            cwd=REPOSITORY,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def start(self) -> str:
        """Start it; the greeting, once it stands there."""
        self.process = self.popen()
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if line.startswith("Ctrl-C"):
                return "".join(lines)
        raise AssertionError("".join(lines))

    def call(self, method: str, path: str, body: Any = None) -> Any:
        token = (self.root / "config" / "cp-token").read_text().strip()
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.ports['cp']}{path}",
            None if body is None else json.dumps(body).encode(),
            {"Authorization": f"Bearer {token}", "Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return json.load(answer)

    def processes(self) -> list[str]:
        """Command lines of all that was started on our root."""
        found = []
        for entry in Path("/proc").iterdir():
            try:
                environ = (entry / "environ").read_bytes()
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
            except OSError:
                continue
            if f"IPXE_ROOT={self.root}\0".encode() in environ and command:
                found.append(command.decode())
        return found

    def all_gone(self) -> None:
        end = time.monotonic() + 15
        while self.processes():
            assert time.monotonic() < end, self.processes()
            time.sleep(0.1)
        for port in self.ports.values():
            with socket.socket() as probe:
                assert probe.connect_ex(("127.0.0.1", port)) != 0

    def end(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait(10)
        self.all_gone()
        if self.process is not None:
            self.process.stdout.close()
