"""`make run` as a whole: our own tgtd, the agent, the control plane, and nothing left after Ctrl-C."""

from __future__ import annotations

import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.local_run import Local

pytestmark = pytest.mark.tgtd


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


@pytest.mark.parametrize("mode", ["agent", "control"])
def test_an_agent_or_control_plane_that_dies_is_started_again(
    here: Local, mode: str
) -> None:
    here.start()
    tgtd = _tgtd(here)
    for pid in _serving(here, mode):
        os.kill(pid, signal.SIGKILL)
    end = time.monotonic() + 60
    while True:
        assert time.monotonic() < end
        try:
            (node,) = here.call("GET", "/agents?live=true")
        except OSError:
            node = {}
        if node.get("health") == "ok":
            break
        time.sleep(0.2)
    assert _tgtd(here) == tgtd
    here.process.send_signal(signal.SIGINT)
    output, _ = here.process.communicate(timeout=40)
    assert here.process.returncode == 0
    assert f"{mode} has ended and is started again" in output
    here.all_gone()


def _serving(here: Local, mode: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        try:
            environ = (entry / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        wanted = (f"IPXE_ROOT={here.root}".encode(), f"IPXE_MODE={mode}".encode())
        if all(word in environ for word in wanted) and "serve" in _command(entry):
            found.append(int(entry.name))
    assert found
    return found


def _tgtd(here: Local) -> int:
    (pid,) = [
        int(entry.name)
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit()
        and str(here.ports["iscsi"]) in _command(entry)
        and _command(entry).startswith("tgtd")
    ]
    return pid


def test_a_target_daemon_that_dies_ends_the_rest_and_is_named(here: Local) -> None:
    here.start()
    os.kill(_tgtd(here), signal.SIGKILL)
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
