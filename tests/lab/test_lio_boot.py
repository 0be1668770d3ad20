"""A machine that boots from the kernel's target (LIO) as it does from tgtd: the same scripts, `::::` in the place of `:::1:`."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.lab_lio_site import LioSite
from tests.lab.lab_machine import Machine
from tests.lab.lab_master import write_master
from tests.lab.lab_network import STORAGE_GUEST, Network

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("lab")]

MAC = "52:54:00:7a:04:01"
MASTER = "ubuntu_tpl_lab.img"
CLONE = "worker-01.ubuntu.img"
BASE = "iqn.2026-07.com.controller"
#: From power-on to the boot sector, on a machine that others use as well.
SOON = 120.0


@pytest.fixture
def site(network: Network, tmp_path: Path, artifacts: Path) -> Iterator[LioSite]:
    """The product, its storage node a guest that has a master; a worker has a clone of it as its default."""
    master = tmp_path / MASTER
    write_master(master, "THE MASTER ITSELF")
    site = LioSite(network, tmp_path, artifacts, {MASTER: master})
    site.api.send("POST", "/agents", site.agent_record())
    site.api.send("POST", "/workers", {"worker_id": "worker-01", "mac": MAC})
    record = site.api.send(
        "POST",
        "/workers/worker-01/luns/disk",
        {"type": "master", "os": "ubuntu", "name": MASTER},
    )
    assert record["state"] == "ready"
    default = {"os": "ubuntu", "menu_timeout": 1000}
    site.api.send("PUT", "/workers/worker-01/default-os", default)
    yield site
    site.stop()


def _says(machine: Machine, text: str) -> None:
    """The machine starts the disk that says this; iPXE's last words may end in between."""
    machine.console.wait_for(rf"boot sector on drive 80[^:]*\s{text}\s", SOON)


def _target(site: LioSite) -> dict[str, Any]:
    (target,) = site.api.get("/agents/node-1/luns")
    assert target["iqn"] == f"{BASE}:worker-01.ubuntu"
    return dict(target)


def _initiators(site: LioSite) -> list[str]:
    return [session["initiator"] for session in _target(site)["sessions"]]


def test_a_machine_boots_from_the_kernels_target(
    site: LioSite, power_on: Callable[..., Machine]
) -> None:
    marker = f"clone of worker-01, {secrets.token_hex(8)}"
    site.mark(CLONE, marker)
    machine = power_on("machine", MAC)
    machine.console.wait_for(rf"iscsi:{STORAGE_GUEST}::::{BASE}:worker-01", SOON)
    _says(machine, marker)
    assert site.marked(MASTER) == "THE MASTER ITSELF"
    assert _initiators(site) == [f"{BASE}:worker-01"]
    assert [lun["lun"] for lun in _target(site)["luns"]] == [0]

    # The agent's end is not the target's: the session stays, and so does what protects the disk.
    site.kill_agent()
    assert _initiators(site) == [f"{BASE}:worker-01"]
    path = "/workers/worker-01?delete_disk=true"
    refused = site.api.call("DELETE", path)
    assert refused.status == 409, refused
    assert f"{BASE}:worker-01" in str(refused.body)

    machine.power_off()
    gone = site.api.send("DELETE", f"{path}&force=true")
    assert gone["deleted"] == "worker-01"
    assert site.api.get("/agents/node-1/luns") == []
    left = site.guest.run(["ls", str(site.images)]).stdout.split()
    assert CLONE not in left
    assert MASTER in left


def test_after_a_power_cut_of_the_node_a_machine_boots_as_before(
    site: LioSite, power_on: Callable[..., Machine]
) -> None:
    marker = f"clone of worker-01, {secrets.token_hex(8)}"
    site.mark(CLONE, marker)
    site.guest.run(["sync"])
    before = _target(site)
    site.cut_power()
    assert _target(site) == before
    machine = power_on("machine", MAC)
    _says(machine, marker)
    assert _initiators(site) == [f"{BASE}:worker-01"]
