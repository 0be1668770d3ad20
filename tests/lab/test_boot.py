"""A machine without a disk, from its first power-on to its last: as a user runs the product, with real firmware."""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.lab.lab_machine import Machine
from tests.lab.lab_master import mark, marked, write_master
from tests.lab.lab_site import Site

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("lab")]

FIRST = "52:54:00:7a:00:01"
SECOND = "52:54:00:7a:00:02"
MASTER = "ubuntu_tpl_lab.img"
#: From power-on, or from the start of a round, on a machine that others use as well.
ROUND = 60.0


def _round(machine: Machine, hostname: str) -> None:
    """One turn of the loop: DHCP gives this name, and the machine reboots by itself."""
    machine.console.wait_for(
        rf"ipxeready: {machine.mac} {hostname} +at 192\.0\.2\.\d+", ROUND
    )
    machine.console.wait_for(r"boot-vars\.\.\. ok", ROUND)
    machine.console.wait_for(r"SeaBIOS", ROUND)


def _boots(machine: Machine) -> str:
    """What the disk says that the machine starts."""
    said = machine.console.wait_for(
        r"boot sector on drive 80\s*\n\s*(\S[^\n]*)\n", 2 * ROUND
    )
    return said[1].strip()


def _bound(site: Site) -> dict[str, str]:
    lines = site.layout.dhcp_hosts.read_text().split()
    return dict(line.split(",")[:2] for line in lines)


def _audited(site: Site, op: str) -> list[dict[str, Any]]:
    entries = map(json.loads, site.layout.operations.read_text().splitlines())
    return [entry for entry in entries if entry["op"] == op]


@pytest.fixture
def first(power_on: Callable[..., Machine]) -> Iterator[Machine]:
    """A machine that nobody has seen yet."""
    return power_on("first", FIRST)


def test_a_machine_lives_from_registration_to_removal(
    site: Site, first: Machine, power_on: Callable[..., Machine]
) -> None:
    # An unknown machine is registered, named, and known to dnsmasq at its next round; it asks again and again.
    first.console.wait_for(rf"ipxeready: {FIRST} +at 192\.0\.2\.\d+", ROUND)
    _round(first, "worker-01")
    _round(first, "worker-01")
    record = site.api.get("/workers/worker-01")
    assert (record["hostname"], record["mac"]) == ("worker-01", FIRST)
    assert record["state"] == "registered"
    assert _bound(site) == {FIRST: "worker-01"}
    assert [entry["worker_id"] for entry in _audited(site, "auto_register")] == [
        "worker-01"
    ]

    # A node is registered, a disk cloned from its master and set as the default.
    write_master(site.images / MASTER, "THE MASTER ITSELF")
    site.api.send("POST", "/agents", site.agent_record())
    record = site.api.send(
        "POST",
        "/workers/worker-01/luns/disk",
        {"type": "master", "os": "ubuntu", "name": MASTER},
    )
    assert record["state"] == "ready"
    assert [disk["filename"] for disk in record["disks"]] == ["worker-01.ubuntu.img"]
    clone = site.images / "worker-01.ubuntu.img"
    marker = f"clone of worker-01, {secrets.token_hex(8)}"
    mark(clone, marker)
    site.api.send("PUT", "/workers/worker-01/default-os", {"os": "ubuntu"})

    # The same machine, never touched, takes the disk at one of its next rounds.
    assert _boots(first) == marker
    assert marked(site.images / MASTER) == "THE MASTER ITSELF"
    sessions = [
        session
        for target in site.api.get("/agents/node-1/luns")
        for session in target["sessions"]
    ]
    assert re.search("iqn.2026-07.com.controller:worker-01", str(sessions)), sessions

    # Another machine takes its place: the disk goes with the name.
    first.power_off()
    moved = site.api.send("PUT", "/workers/worker-01/mac", {"mac": SECOND})
    assert moved["changed"] is True
    assert moved["mac"] == SECOND
    second = power_on("second", SECOND)
    assert _boots(second) == marker

    # The first one is nobody now: it is registered afresh and gets no disk.
    again = power_on("first-again", FIRST)
    _round(again, "")
    _round(again, "worker-02")
    assert "boot sector" not in again.console.text
    assert _bound(site) == {SECOND: "worker-01", FIRST: "worker-02"}
    again.power_off()

    # A worker whose disk is in use is not deleted by accident.
    refused = site.api.call("DELETE", "/workers/worker-01?delete_disk=true")
    assert refused.status == 409, refused
    assert "iqn.2026-07.com.controller:worker-01" in str(refused.body)
    assert clone.exists()

    # Switched off the hard way, a machine leaves its session behind on the node.
    second.power_off()
    path = "/workers/worker-01?delete_disk=true&force=true"
    gone = site.api.send("DELETE", path)
    assert gone["deleted"] == "worker-01"
    assert gone["dnsmasq_removed"]
    assert not clone.exists()
    assert site.api.call("GET", "/workers/worker-01").status == 404
    assert "worker-01" not in site.tgtd.adm("--mode", "target", "--op", "show")
    assert (site.images / MASTER).exists()

    # And the machine is new again.
    afresh = power_on("second-afresh", SECOND)
    _round(afresh, "")
    _round(afresh, "worker-03")
    assert _bound(site) == {FIRST: "worker-02", SECOND: "worker-03"}
    assert "boot sector" not in afresh.console.text
