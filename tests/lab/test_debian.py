"""A Debian whose root is the worker's iSCSI disk: found by iBFT, called what the ledger calls the worker, and it keeps what it writes."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.lab_debian import debian_master
from tests.lab.lab_lio_site import LioSite
from tests.lab.lab_machine import Machine
from tests.lab.lab_network import Network
from tests.lab.lab_site import Site

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("lab")]

MAC = "52:54:00:7a:03:01"
MASTER = "debian_tpl_lab.img"
BASE = "iqn.2026-07.com.controller"
#: From power-on to the system's init takes half a minute on a quiet machine, the same after a reboot up to twice as long.
BOOT = 300.0


def _up(machine: Machine, worker: str) -> str:
    """The system is up as that worker, on its disk; what it was given to keep."""
    console = machine.console
    console.wait_for(r"grub on \w+", BOOT)
    host = console.wait_for(r"lab: host (\S*)\s", BOOT)
    target = console.wait_for(r"lab: root on target (\S*)\s", BOOT)
    initiator = console.wait_for(r"lab: initiator (\S*)\s", BOOT)
    kept = console.wait_for(r"lab: kept (\S*)\s", BOOT)
    console.wait_for(r"lab: ready", BOOT)
    assert host[1] == worker
    assert target[1] == f"{BASE}:{worker}.debian"
    assert initiator[1] == f"{BASE}:{worker}"
    return kept[1]


def _do(machine: Machine, command: str) -> None:
    machine.console.type(command, "\n")
    done = machine.console.wait_for(r"lab: did that, (\d+)", 60)
    assert done[1] == "0", command


@pytest.fixture
def site(
    request: Any, network: Network, tmp_path: Path, artifacts: Path
) -> Iterator[Site]:
    """The product, on a node of that kind, with the master in its image directory."""
    masters = {MASTER: debian_master(artifacts)}
    site: Site = request.param(network, tmp_path, artifacts, masters)
    yield site
    site.stop()


@pytest.mark.parametrize(
    ("site", "firmware", "worker", "access"),
    [
        pytest.param(Site, "ipxe", "worker-01", "acl", id="stgt-ipxe-acl"),
        pytest.param(Site, "uefi", "worker-31", "chap", id="stgt-uefi-chap"),
        pytest.param(LioSite, "ipxe", "worker-01", "chap", id="lio-ipxe-chap"),
    ],
    indirect=["site"],
)
def test_debian_runs_from_the_workers_disk_and_keeps_what_it_writes(
    site: Site,
    power_on: Callable[..., Machine],
    firmware: str,
    worker: str,
    access: str,
) -> None:
    site.api.send("POST", "/agents", site.agent_record())
    site.api.send("POST", "/workers", {"worker_id": worker, "mac": MAC})
    site.api.send("PUT", f"/workers/{worker}/access", {"access": access})
    site.api.send(
        "POST",
        f"/workers/{worker}/luns/disk",
        {"type": "master", "os": "debian", "name": MASTER},
    )
    default = {"os": "debian", "menu_timeout": 1000}
    site.api.send("PUT", f"/workers/{worker}/default-os", default)

    machine = power_on(
        "machine",
        MAC,
        firmware=firmware,
        card="virtio-net-pci",
        memory=512,
        processor="max",
    )
    assert _up(machine, worker) == "nothing"
    (target,) = site.api.get("/agents/node-1/luns")
    assert target["iqn"] == f"{BASE}:{worker}.debian"
    assert target["access"] == access
    initiators = {session["initiator"] for session in target["sessions"]}
    assert initiators == {f"{BASE}:{worker}"}

    word = secrets.token_hex(8)
    _do(machine, f"echo {word} >/root/kept")
    _do(machine, "sync")
    # At once and without a shutdown, as a hard reset would.
    machine.console.type("echo b >/proc/sysrq-trigger", "\n")
    assert _up(machine, worker) == word
