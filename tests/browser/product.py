"""The whole product on a temporary root and free loopback ports, with a room of machines in it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.parse
import urllib.request
from itertools import count
from pathlib import Path
from typing import Any

from ipxeready.conf import REPOSITORY
from tests.processes import free_port

PASSWORD = "correct horse battery"
#: Who has which role.
PEOPLE = {"administrator": "alice", "operator": "oscar", "viewer": "victor"}
MASTERS = {"ubuntu_tpl_24.04.img": 48, "windows_tpl_11.img": 64}
MIB = 1024 * 1024


class Product:
    """One `python -m ipxeready.local` whose node manages images without iSCSI."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.root = folder / "root"
        ports = {name: free_port() for name in ("cp", "agent", "iscsi")}
        self.url = f"http://127.0.0.1:{ports['cp']}"
        self.environ = {
            **{k: v for k, v in os.environ.items() if not k.startswith("IPXE_")},
            "DJANGO_SETTINGS_MODULE": "ipxeready.settings",
            "IPXE_ROOT": str(self.root),
            "IPXE_CP_BIND": f"127.0.0.1:{ports['cp']}",
            "IPXE_AGENT_BIND": f"127.0.0.1:{ports['agent']}",
            "IPXE_ISCSI_PORTAL": f"127.0.0.1:{ports['iscsi']}",
            "IPXE_AGENT_BACKEND": "files",
            "IPXE_CP_DNSMASQ_RELOAD": "none",
            "RUNTIME_DIRECTORY": str(folder),
            "IFACE": "",
            "RANGE": "",
        }
        self.process: subprocess.Popen[str] | None = None
        #: Cookies of who has logged in.
        self.logins: dict[str, dict[str, str]] = {}
        self._numbers = count(1)

    def start(self) -> None:
        """Start it and wait for the greeting; masters are there before."""
        images = self.root / "images"
        images.mkdir(parents=True)
        for name, size in MASTERS.items():
            with (images / name).open("wb") as file:
                file.truncate(size * MIB)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ipxeready.local"],
            cwd=REPOSITORY,
            env=self.environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if line.startswith("Ctrl-C"):
                return
        raise RuntimeError("".join(lines))

    def end(self) -> None:
        """End it; what it started ends with it."""
        if self.process is None:
            return
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(10)
        self.process.stdout.close()

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """An answer of the API."""
        token = (self.root / "config" / "cp-token").read_text().strip()
        headers = {"Authorization": f"Bearer {token}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)  # noqa: S310
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310
            return json.load(answer)

    def manage(self, *words: str, stdin: str = "") -> None:
        """One `manage.py` command on this root."""
        subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=REPOSITORY,
            env=self.environ,
            input=stdin,
            text=True,
            check=True,
            stdout=subprocess.DEVNULL,
        )

    def boot(self, mac: str) -> None:
        """What a machine that nobody knows asks at its first boot."""
        query = urllib.parse.urlencode({"mac": mac})
        with urllib.request.urlopen(f"{self.url}/boot-vars?{query}", timeout=30):  # noqa: S310
            pass

    def worker(self, stem: str = "pc") -> str:
        """A new worker of one's own, without a disk; its id."""
        number = next(self._numbers)
        name = f"{stem}-{number}"
        mac = f"52:54:00:bb:{number >> 8:02x}:{number & 255:02x}"
        self.call("POST", "/workers", {"worker_id": name, "mac": mac})
        return name

    def furnish(self) -> None:
        """Machines, disks, nodes and people as a small room has them."""
        for role, name in PEOPLE.items():
            words = ("user", "create", name, "--role", role)
            self.manage(*words, stdin=f"{PASSWORD}\n")
        for number in range(1, 9):
            self.boot(f"52:54:00:12:34:{number:02x}")
        for number, os_name in (
            (1, "ubuntu"),
            (2, "ubuntu"),
            (3, "ubuntu"),
            (4, "debian"),
        ):
            spec = {"type": "master", "os": os_name, "name": "ubuntu_tpl_24.04.img"}
            self.call("POST", f"/workers/worker-{number:02d}/luns/disk", spec)
            self.call(
                "PUT", f"/workers/worker-{number:02d}/default-os", {"os": os_name}
            )
        spec = {"type": "master", "os": "windows", "name": "windows_tpl_11.img"}
        self.call("POST", "/workers/worker-01/luns/disk", spec)
        spec = {"type": "empty", "os": "centos", "size": "256M"}
        self.call("POST", "/workers/worker-05/luns/disk", spec)
        body = {"worker_id": "front-desk", "mac": "52:54:00:aa:00:01"}
        self.call("POST", "/workers", body)
        self.call("PUT", "/workers/worker-06/mac", {"mac": "52:54:00:12:34:66"})
        node = {
            "id": "store-02",
            "base_url": "http://192.0.2.12:4840",
            "iscsi_server": "192.0.2.12",
            "role": {"disk": True, "cd": False},
            "tags": ["storage", "lio"],
            "enabled": False,
        }
        self.call("POST", "/agents", node)
