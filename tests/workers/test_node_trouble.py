"""What goes wrong on a real node: the control plane says so, and its files are as they were."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from agents.services import agent_register
from ipxeready.actors import SYSTEM
from ipxeready.storage.paths import Layout
from tests.agents.fakes import http_server
from tests.agents.node import node_lab
from tests.nodes import BASE, RealNode, serving
from tests.workers.helpers import ledger, refusal, snapshot, trail

Make = Callable[..., dict[str, Any]]
EMPTY = {"type": "empty", "os": "debian", "size": "1M"}


@pytest.mark.case(63)
def test_no_room_keeps_the_nodes_words_and_status(
    api: APIClient, layout: Layout, node: RealNode, worker: Make
) -> None:
    """The full one takes nothing; the other node's disk of the same batch is made."""
    words = b'{"detail": "no room: needed 36 MiB, free 1 MiB"}'
    name, other = node.name(), node.name()
    worker(name)
    worker(other)
    node.register("n")
    with http_server(lambda method, path: (507, {}, words)) as full:
        agent_register(actor=SYSTEM, agent_id="full", base_url=full.base_url, token="t")
        before = snapshot(layout)["dhcp-hosts.conf"]
        answer = api.post(f"/workers/{name}/luns/disk", {**EMPTY, "disk_agent": "full"})
        assert answer.status_code == 507
        refused = {"agent": "full", "error": "no room: needed 36 MiB, free 1 MiB"}
        assert answer.json()["detail"] == refused
        assert ledger(layout)[name].get("disks") in (None, [])
        assert trail(layout, "worker.disk.create")[-1]["status"] == "rollback"
        targets = [
            {"worker_id": name, "agent": "full"},
            {"worker_id": other, "agent": "n"},
        ]
        body = {**EMPTY, "targets": targets}
        done = api.post("/workers/luns/disk/batch", body).json()
    assert [each["worker_id"] for each in done["succeeded"]] == [other]
    (failed,) = done["failed"]
    assert failed == {"worker_id": name, **refused}
    assert ledger(layout)[name].get("disks") in (None, [])
    assert snapshot(layout)["dhcp-hosts.conf"] == before


@pytest.mark.tgtd
@pytest.mark.case(76)
def test_a_dead_target_daemon_reports_nothing_as_done(
    api: APIClient, layout: Layout, worker: Make, tmp_path: Path
) -> None:
    worker("pc1")
    worker("pc2")
    with (
        node_lab.tgtd() as daemon,
        serving(tmp_path / "node", "stgt", daemon) as node,
    ):
        node.register("n", role={"disk": True, "cd": True})
        node.image("win.iso")
        assert api.post("/workers/pc1/luns/disk", EMPTY).status_code == 201
        daemon.kill()
        before = snapshot(layout)
        record = ledger(layout)
        for method, path, body in (
            ("post", "/workers/pc2/luns/disk", {**EMPTY, "disk_agent": "n"}),
            ("post", "/workers/pc2/luns/cd", {"iso": "win.iso", "agent": "n"}),
            ("delete", "/workers/pc1/luns/disk/debian?delete_file=true", None),
            ("delete", "/workers/pc1?delete_disk=true", None),
            ("post", "/agents/n/luns/scan", None),
        ):
            status, words = refusal(api, method, path, body)
            assert status in (502, 503), (path, status, words)
        assert snapshot(layout)["dhcp-hosts.conf"] == before["dhcp-hosts.conf"]
        assert {k: v.get("disks") or [] for k, v in ledger(layout).items()} == {
            k: v.get("disks") or [] for k, v in record.items()
        }
        images = [path.name for path in node.folder.glob("*.img")]
        assert images == ["pc1.debian.img"]
        (shown,) = api.get("/agents?live=true").json()
        assert shown["health"] != "ok"
        gone = api.post("/workers/delete/batch", {"worker_ids": ["pc1", "pc2"]}).json()
        assert [each["worker_id"] for each in gone["succeeded"]] == ["pc2"]
        assert [each["worker_id"] for each in gone["failed"]] == ["pc1"]


@pytest.mark.tgtd
@pytest.mark.case(86)
def test_targets_of_somebody_else_are_left_alone(
    api: APIClient, layout: Layout, worker: Make, tmp_path: Path
) -> None:
    """A tgtd with foreign targets, one of them with our names but another base."""
    foreign = tmp_path / "foreign.img"
    foreign.write_bytes(b"x" * 4096)
    with node_lab.tgtd() as daemon:
        for tid, iqn in ((90, "iqn.2001-01.com.other:pc1.debian"), (91, f"{BASE}x:y")):
            where = ("--tid", str(tid))
            daemon.adm("--op", "new", "--mode", "target", *where, "--targetname", iqn)
            daemon.adm(
                *("--op", "new", "--mode", "logicalunit", *where),
                *("--lun", "1", "--backing-store", str(foreign)),
            )
        before = daemon.listing()
        with serving(tmp_path / "node", "stgt", daemon) as node:
            node.register("n")
            names = [worker(f"pc{number}")["worker_id"] for number in range(1, 4)]
            targets = [{"worker_id": name, "agent": "n"} for name in names]
            made = api.post("/workers/luns/disk/batch", {**EMPTY, "targets": targets})
            assert len(made.json()["succeeded"]) == 3
            assert len(api.get("/agents/n/luns").json()) == 3
            other = "iqn.2001-01.com.other:pc1.debian"
            assert refusal(api, "delete", f"/agents/n/luns?iqn={other}")[0] == 400
            body = {"worker_ids": names, "delete_disk": True}
            gone = api.post("/workers/delete/batch", body).json()
            assert len(gone["succeeded"]) == 3, gone
        assert daemon.listing() == before


@pytest.mark.case(98)
def test_each_part_that_fails_is_told(
    api: APIClient, layout: Layout, node: RealNode, other_node: RealNode, worker: Make
) -> None:
    """One disk goes, the other's node refuses: the answer names both, and ledger and nodes agree."""
    node.register("a")
    other_node.register("b")
    name = node.name()
    worker(name)
    for os, agent in (("debian", "a"), ("ubuntu", "b")):
        body = {**EMPTY, "os": os, "disk_agent": agent}
        assert api.post(f"/workers/{name}/luns/disk", body).status_code == 201
    # A second name for its image: the node does not delete it.
    image = other_node.folder / f"{name}.ubuntu.img"
    (other_node.folder / f"{other_node.name('held')}.txt").hardlink_to(image)
    body = {"worker_ids": [name], "delete_disk": True}
    (failed,) = api.post("/workers/delete/batch", body).json()["failed"]
    assert f"already deleted: {BASE}:{name}.debian; then: " in failed["error"]
    (left,) = ledger(layout)[name]["disks"]
    assert (left["os"], left.get("status")) == ("ubuntu", None)
    assert f"{BASE}:{name}.debian" not in node.targets()
    assert f"{BASE}:{name}.ubuntu" in other_node.targets()
    lines = {line["status"]: line for line in trail(layout, "delete_worker")}
    assert lines["failed"]["done"] == [f"{BASE}:{name}.debian"]
