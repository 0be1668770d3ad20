"""`make run` as a whole: our own tgtd, the agent, the control plane, and nothing left after Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ipxeready.conf import REPOSITORY
from tests.served import free_port

pytestmark = pytest.mark.tgtd


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


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Local]:
    one = Local(tmp_path / "root")
    yield one
    one.end()


def test_one_command_runs_it_all_and_ctrl_c_ends_it_all(here: Local) -> None:
    greeting = here.start()
    password = (here.root / "state" / "first-login").read_text().strip()
    assert f"http://127.0.0.1:{here.ports['cp']}/" in greeting
    assert password in greeting
    assert (here.root / "config" / "cp-token").read_text().strip() not in greeting

    (node,) = here.call("GET", "/agents?live=true")
    assert (node["id"], node["health"], node["enabled"]) == ("local", "ok", True)
    assert node["iscsi_server"] == "127.0.0.1"
    assert node["capabilities"]["backend"] == "stgt"
    for name in ("undionly.kpxe", "snponly.efi"):
        assert (here.root / "tftp" / name).stat().st_size > 10_000

    # A disk, so that tgtd has a target and ignores a polite request to end.
    here.call("POST", "/workers", {"worker_id": "w1", "mac": "52:54:00:00:00:01"})
    disk = {"type": "empty", "os": "debian", "size": "16M"}
    here.call("POST", "/workers/w1/luns/disk", disk)
    assert (here.root / "images" / "w1.debian.img").stat().st_size == 16 * 1024 * 1024

    # Again, while it runs: says so and does nothing.
    second = here.popen()
    output, _ = second.communicate(timeout=30)
    assert second.returncode == 0
    assert "it runs already" in output

    # No DHCP unless asked.
    assert not [line for line in here.processes() if "dnsmasq" in line]

    here.process.send_signal(signal.SIGINT)
    assert here.process.wait(30) == 0
    here.all_gone()
    assert list((here.root / "state" / "run").glob("tgtd.0*")) == []

    # And again: the disk is exported as it was.
    before = (here.root / "config" / "agents.yml").read_bytes()
    here.process.stdout.close()
    here.start()
    (target,) = here.call("GET", "/agents/local/luns")
    assert target["iqn"].endswith(":w1.debian")
    assert (here.root / "config" / "agents.yml").read_bytes() == before


def test_nothing_outlives_a_kill(here: Local) -> None:
    here.start()
    assert len(here.processes()) > 3
    here.process.kill()
    here.process.wait(10)
    here.all_gone()


def test_a_part_that_dies_ends_the_rest_and_is_named(here: Local) -> None:
    here.start()
    (tgtd,) = [
        entry.name
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit()
        and str(here.ports["iscsi"]) in _command(entry)
        and _command(entry).startswith("tgtd")
    ]
    os.kill(int(tgtd), signal.SIGKILL)
    output, _ = here.process.communicate(timeout=40)
    assert here.process.returncode == 1
    assert "tgtd has ended" in output
    here.all_gone()


def _command(entry: Path) -> str:
    try:
        return (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def test_a_taken_port_is_one_line_and_nothing_is_started(here: Local) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", here.ports["iscsi"]))
        other.listen(1)
        process = here.popen()
        output, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    (line,) = output.splitlines()
    assert f"127.0.0.1:{here.ports['iscsi']}" in line
    assert "IPXE_ISCSI_PORTAL" in line
