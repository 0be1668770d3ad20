"""A `manage.py serve` of one's own: its root, port and index go with the folder it is given."""

from __future__ import annotations

import contextlib
import http.client
import os
import socket
import subprocess
import sys
import time
from pathlib import Path

from ipxeready.conf import REPOSITORY
from tests.processes import free_port


class Service:
    """A `serve` on a root and a port of its own."""

    def __init__(self, root: Path, **environ: str) -> None:
        self.root = root
        self.port = free_port()
        self.environ = {
            **{k: v for k, v in os.environ.items() if not k.startswith("IPXE_")},
            "DJANGO_SETTINGS_MODULE": "ipxeready.settings",
            "IPXE_ROOT": str(root),
            "IPXE_CP_BIND": f"127.0.0.1:{self.port}",
            "IPXE_CP_DNSMASQ_RELOAD": "none",
            "IPXE_SERVE_WORKERS": "1",
            # The index of this root lies beside it and goes with it.
            "RUNTIME_DIRECTORY": str(root.parent),
            **environ,
        }
        self.process: subprocess.Popen[str] | None = None

    def popen(self) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "manage.py", "serve"],
            cwd=REPOSITORY,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def start(self) -> None:
        self.process = self.popen()
        end = time.monotonic() + 30
        while True:
            with contextlib.suppress(OSError):
                if self.get("/healthz").status == 200:
                    return
            assert self.process.poll() is None, self.process.stdout.read()
            assert time.monotonic() < end
            time.sleep(0.05)

    def get(self, path: str, **headers: str) -> http.client.HTTPResponse:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        answer.body = answer.read()
        connection.close()
        return answer

    def refused(self) -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) != 0

    def output_of_failure(self) -> list[str]:
        process = self.popen()
        output, _ = process.communicate(timeout=30)
        assert process.returncode != 0
        return output.splitlines()

    def children(self) -> list[int]:
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        return [int(pid) for pid in path.read_text().split()]

    def end(self) -> None:
        if self.process is not None:
            if self.process.poll() is None:
                self.process.kill()
            self.process.wait(10)
            self.process.stdout.close()
