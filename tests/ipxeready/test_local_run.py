"""`make run` as a whole: our own tgtd, the agent, the control plane, and nothing left after Ctrl-C."""

from __future__ import annotations

import os
import signal
import socket
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
