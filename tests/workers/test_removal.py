"""Deleting disks, and workers with disks: asked first, then done, then recorded."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rest_framework.test import APIClient

from ipxeready.storage.paths import Layout
from tests.nodes import RealNode
from tests.workers.helpers import (
    M1,
    ledger,
    live_hosts,
    refusal,
    snapshot,
    trail,
)
from tests.workers.stub import Stub, die, stub_node
from workers.settle import settle_all

Make = Callable[..., dict[str, Any]]
BASE = "iqn.2026-07.com.controller"
SESSION = [{"initiator": f"{BASE}:pc1", "address": "192.0.2.9"}]


@pytest.fixture
def pc(api: APIClient, node: RealNode, worker: Make) -> str:
    """A worker with an ubuntu disk on a real node."""
    node.register("node-1")
    name = node.name("del")
    worker(name, mac=M1)
    body = {"type": "empty", "os": "ubuntu", "size": "1M"}
    assert api.post(f"/workers/{name}/luns/disk", body).status_code == 201
    return name


@pytest.fixture
def stub(layout: Layout, api: APIClient, worker: Make) -> Iterator[Stub]:
    """pc1 with an ubuntu and a windows disk on a node that can misbehave."""
    with stub_node() as found:
        found.register()
        worker("pc1", mac=M1)
        for os in ("ubuntu", "windows"):
            found.next_iqn = f"{BASE}:pc1.{os}"
            body = {"type": "empty", "os": os, "size": "1M"}
            assert api.post("/workers/pc1/luns/disk", body).status_code == 201
        yield found


def disks_of(layout: Layout, name: str = "pc1") -> dict[str, str | None]:
    return {d["os"]: d.get("status") for d in ledger(layout)[name]["disks"]}


# --- one disk ----------------------------------------------------------------


@pytest.mark.parametrize("delete_file", ["true", "false", None])
def test_a_disk_goes_and_its_image_only_when_asked(
    api: APIClient, layout: Layout, node: RealNode, pc: str, delete_file: str | None
) -> None:
    api.put(f"/workers/{pc}/default-os", {"os": "ubuntu", "menu_default": "ubuntu"})
    query = f"?delete_file={delete_file}" if delete_file else ""
    answer = api.delete(f"/workers/{pc}/luns/disk/Ubuntu{query}")
    assert answer.status_code == 200
    record = answer.json()
    assert record["worker_id"] == pc
    assert record["disks"] == []
    assert record["state"] == "registered"
    assert "default_os" not in record and "boot" not in record
    assert ledger(layout)[pc]["state"] == "registered"
    assert f"{BASE}:{pc}.ubuntu" not in node.targets()
    image = node.folder / f"{pc}.ubuntu.img"
    assert image.exists() is (delete_file != "true")
    first, second = trail(layout, "worker.disk.delete")
    assert (first["status"], second["status"]) == ("started", "ok")
    assert second["delete_file"] is (delete_file == "true")
    assert (second["agent"], second["os"]) == ("node-1", "ubuntu")


def test_other_choices_stay(api: APIClient, layout: Layout, stub: Stub) -> None:
    body = {"os": "windows", "menu_default": "ubuntu", "menu_timeout": 7}
    api.put("/workers/pc1/default-os", body)
    record = api.delete("/workers/pc1/luns/disk/ubuntu").json()
    assert record["state"] == "ready"
    assert record["default_os"] == "windows"
    assert record["boot"] == {"menu_timeout": 7}


def test_what_is_not_there(api: APIClient, pc: str) -> None:
    status, words = refusal(api, "delete", f"/workers/{pc}/luns/disk/windows")
    assert (status, f"{pc} has no windows disk" in words) == (404, True)
    assert refusal(api, "delete", "/workers/nobody/luns/disk/ubuntu")[0] == 404
    status, words = refusal(api, "delete", f"/workers/{pc}/luns/disk/dos")
    assert (status, "must be one of windows" in words) == (400, True)


@pytest.mark.parametrize(
    ("query", "rule"),
    [
        ("delete_file=yes", "delete_file: must be true, false, 1 or 0"),
        ("delete_disk=true", "delete_disk: unknown parameter"),
        ("ignore_missing=1", "ignore_missing: unknown parameter"),
    ],
)
def test_a_typo_deletes_nothing(
    api: APIClient, layout: Layout, node: RealNode, pc: str, query: str, rule: str
) -> None:
    before = snapshot(layout)
    status, words = refusal(api, "delete", f"/workers/{pc}/luns/disk/ubuntu?{query}")
    assert (status, rule in words) == (400, True)
    assert refusal(api, "delete", f"/workers/{pc}/luns/disk/ubuntu", {"x": 1})[0] == 400
    assert snapshot(layout) == before
    assert f"{BASE}:{pc}.ubuntu" in node.targets()


def test_roles(
    as_viewer: APIClient, stranger: APIClient, as_operator: APIClient, pc: str
) -> None:
    path = f"/api/cp/workers/{pc}/luns/disk/ubuntu/"
    assert stranger.delete(path).status_code == 401
    assert as_viewer.delete(path).status_code == 403
    assert as_operator.get(path).status_code == 405
    assert as_operator.delete(path).status_code == 200


def test_a_missing_target_is_said_unless_it_may_be(
    api: APIClient, layout: Layout, node: RealNode, pc: str
) -> None:
    iqn = f"{BASE}:{pc}.ubuntu"
    assert api.delete(f"/agents/node-1/luns?iqn={iqn}").status_code == 200
    before = snapshot(layout)
    path = f"/workers/{pc}/luns/disk/ubuntu"
    status, words = refusal(api, "delete", path)
    assert (status, "ignore_missing_target=true" in words) == (404, True)
    assert snapshot(layout) == before
    answer = api.delete(f"{path}?ignore_missing_target=true&delete_file=true")
    assert answer.status_code == 200
    assert answer.json()["disks"] == []
    assert not (node.folder / f"{pc}.ubuntu.img").exists()


@pytest.mark.case(72)
def test_a_disk_in_use_is_a_conflict_that_names_the_machine(
    api: APIClient, layout: Layout, stub: Stub
) -> None:
    stub.targets[f"{BASE}:pc1.ubuntu"] = SESSION
    before = snapshot(layout)
    for path in ("/workers/pc1/luns/disk/ubuntu", "/workers/pc1"):
        status, words = refusal(api, "delete", path)
        assert status == 409
        assert f"{BASE}:pc1" in words and "192.0.2.9" in words
        assert "force=true" in words
    assert snapshot(layout) == before
    assert len(stub.targets) == 2
    assert not stub.asked("DELETE")
    answer = api.delete("/workers/pc1/luns/disk/ubuntu?force=true")
    assert answer.status_code == 200
    assert list(stub.targets) == [f"{BASE}:pc1.windows"]
    assert trail(layout, "worker.disk.delete")[-1]["forced"] is True


def test_a_session_that_opens_meanwhile_leaves_the_disk_as_it_was(
    api: APIClient, layout: Layout, stub: Stub
) -> None:
    def login(method: str) -> None:
        stub.targets[f"{BASE}:pc1.ubuntu"] = SESSION

    stub.before = login
    answer = api.delete("/workers/pc1/luns/disk/ubuntu")
    assert answer.status_code == 409
    assert answer.json()["detail"] == {"agent": "stub", "error": "in use"}
    assert disks_of(layout) == {"ubuntu": None, "windows": None}
    assert [line["status"] for line in trail(layout, "worker.disk.delete")] == [
        "started",
        "failed",
    ]


def test_a_node_that_is_gone_is_said_unless_it_may_be_forgotten(
    api: APIClient, layout: Layout, stub: Stub
) -> None:
    stub.mute = True
    before = snapshot(layout)
    for path in ("/workers/pc1/luns/disk/ubuntu", "/workers/pc1"):
        status, words = refusal(api, "delete", path)
        assert status == 503
        assert "stub" in words and "forget=true" in words
    assert snapshot(layout) == before
    stub.before = die
    answer = api.delete("/workers/pc1/luns/disk/ubuntu?forget=true")
    assert answer.status_code == 200
    assert disks_of(layout) == {"windows": None}
    assert trail(layout, "worker.disk.delete")[-1]["forgotten"] is True


def test_a_node_that_is_something_else_by_now_can_be_forgotten(
    api: APIClient, layout: Layout, stub: Stub
) -> None:
    stub.nonsense = True
    status, words = refusal(api, "delete", "/workers/pc1/luns/disk/ubuntu")
    assert (status, "forget=true" in words) == (502, True)
    answer = api.delete("/workers/pc1/luns/disk/ubuntu?forget=true")
    assert answer.status_code == 200


def test_a_node_that_left_the_registry_can_be_forgotten(
    api: APIClient, layout: Layout, stub: Stub
) -> None:
    layout.agents_yml.write_text("agents: {}\n")
    status, words = refusal(api, "delete", "/workers/pc1")
    assert (status, "stub" in words) == (503, True)
    assert api.delete("/workers/pc1?forget=true").status_code == 200
    assert ledger(layout) == {}


@pytest.mark.parametrize("gone", [True, False])
def test_a_lost_answer_leaves_the_disk_deleting_until_it_is_settled(
    api: APIClient, layout: Layout, stub: Stub, gone: bool
) -> None:
    if gone:
        stub.after = die
    else:
        stub.before = die
    assert refusal(api, "delete", "/workers/pc1/luns/disk/ubuntu")[0] == 503
    assert disks_of(layout) == {"ubuntu": "deleting", "windows": None}
    assert "ubuntu" not in api.get(f"/boot-vars?mac={M1}").content.decode()
    assert refusal(api, "put", "/workers/pc1/default-os", {"os": "ubuntu"})[0] == 400
    stub.before = stub.after = None
    settle_all()
    found = {"windows": None} if gone else {"ubuntu": None, "windows": None}
    assert disks_of(layout) == found
    last = trail(layout, "worker.disk.delete")[-1]
    assert last["status"] == ("ok" if gone else "rollback")


def test_a_deletion_that_was_cut_off_is_finished_by_the_next(
    api: APIClient, layout: Layout, stub: Stub
) -> None:
    stub.after = die
    assert refusal(api, "delete", "/workers/pc1/luns/disk/ubuntu")[0] == 503
    stub.after = None
    assert api.delete("/workers/pc1/luns/disk/ubuntu").status_code == 200
    assert disks_of(layout) == {"windows": None}


# --- a worker with disks -----------------------------------------------------------


@pytest.mark.parametrize("delete_disk", [True, False])
def test_a_worker_goes_with_its_disks(
    api: APIClient, layout: Layout, node: RealNode, pc: str, delete_disk: bool
) -> None:
    answer = api.delete(f"/workers/{pc}?delete_disk={str(delete_disk).lower()}")
    assert answer.status_code == 200
    body = answer.json()
    assert (body["deleted"], body["delete_disk"]) == (pc, delete_disk)
    assert body["dnsmasq_removed"] is True
    assert ledger(layout) == {}
    assert live_hosts(layout) == []
    assert f"{BASE}:{pc}.ubuntu" not in node.targets()
    assert (node.folder / f"{pc}.ubuntu.img").exists() is not delete_disk
    assert [line["status"] for line in trail(layout, "delete_worker")] == [
        "started",
        "ok",
    ]


def test_a_refusal_half_way_keeps_what_was_done_and_names_both(
    api: APIClient, layout: Layout, stub: Stub
) -> None:
    def login(method: str) -> None:
        stub.targets[f"{BASE}:pc1.windows"] = SESSION

    stub.after = login
    answer = api.delete("/workers/pc1")
    assert answer.status_code == 409
    detail = answer.json()["detail"]
    assert detail["agent"] == "stub"
    assert f"already deleted: {BASE}:pc1.ubuntu" in detail["error"]
    assert "in use" in detail["error"]
    assert disks_of(layout) == {"windows": None}
    assert live_hosts(layout) == [f"{M1},pc1"]
    last = trail(layout, "delete_worker")[-1]
    assert (last["status"], last["done"]) == ("failed", [f"{BASE}:pc1.ubuntu"])
    stub.targets[f"{BASE}:pc1.windows"] = []
    stub.after = None
    assert api.delete("/workers/pc1").status_code == 200


def test_a_node_that_dies_half_way_leaves_what_it_may_have_done_to_be_settled(
    api: APIClient, layout: Layout, stub: Stub
) -> None:
    stub.before = die
    assert refusal(api, "delete", "/workers/pc1")[0] == 503
    # The first may be gone, the second was never asked for.
    assert disks_of(layout) == {"ubuntu": "deleting", "windows": None}
    stub.before = None
    assert api.delete("/workers/pc1").status_code == 200
    assert stub.targets == {}


def test_a_nodes_id_in_capitals_is_that_node(
    api: APIClient, layout: Layout, stub: Stub
) -> None:
    text = layout.workers_yml.read_text()
    layout.workers_yml.write_text(text.replace("agent: stub", "agent: STUB"))
    status, words = refusal(api, "delete", "/agents/stub")
    assert (status, "pc1" in words) == (409, True)
    assert (
        "iscsi-server-windows" not in api.get(f"/boot-vars?mac={M1}").content.decode()
    )
    assert api.delete("/workers/pc1").status_code == 200
    assert stub.targets == {}


def test_a_cd_goes_with_its_worker(api: APIClient, layout: Layout, stub: Stub) -> None:
    text = layout.workers_yml.read_text()
    cd = f'{{agent: stub, iqn: "{BASE}:pc1.windows.iso", iso: w.iso}}'
    layout.workers_yml.write_text(text.replace("cd: null", f"cd: {cd}"))
    assert api.get("/workers/pc1").json()["state"] == "installing"
    stub.targets[f"{BASE}:pc1.windows.iso"] = SESSION
    status, words = refusal(api, "delete", "/workers/pc1")
    assert (status, "install CD of pc1 is in use" in words) == (409, True)
    assert len(stub.targets) == 3
    stub.targets[f"{BASE}:pc1.windows.iso"] = []
    assert api.delete("/workers/pc1?delete_disk=true").status_code == 200
    assert stub.targets == {}
    asked = [path for path in stub.asked("DELETE") if "iso" in path]
    assert len(asked) == 1 and "delete_file=false" in asked[0]


@pytest.mark.case(27)
def test_a_block_that_was_copied_by_hand_does_not_take_the_others_disk_along(
    api: APIClient, layout: Layout, node: RealNode, pc: str
) -> None:
    block = layout.workers_yml.read_text().split(f"  {pc}:\n")[1]
    copied = block.replace(f"hostname: {pc}\n", "hostname: copy\n")
    assert copied != block
    with layout.workers_yml.open("a") as file:
        file.write(f"  copy:\n{copied}")
    before, image = snapshot(layout), node.folder / f"{pc}.ubuntu.img"
    for path in ("/workers/copy", f"/workers/{pc}", "/workers/copy/luns/disk/ubuntu"):
        for query in ("?force=true", "?forget=true", "?ignore_missing_target=true"):
            status, words = refusal(api, "delete", path + query)
            assert status == 409
            assert f"{BASE}:{pc}.ubuntu" in words and "state/workers.yml" in words
    assert "copy has in its record" in refusal(api, "delete", f"/workers/{pc}")[1]
    assert snapshot(layout) == before
    assert f"{BASE}:{pc}.ubuntu" in node.targets() and image.exists()
    files = api.get("/healthz?verbose=1").json()["files"]
    (problem,) = next(f for f in files if f["name"] == "workers")["problems"]
    assert f"copy, {pc}" in problem
    text = layout.workers_yml.read_text()
    layout.workers_yml.write_text(text.replace(copied, "    hostname: copy\n"))
    assert api.delete("/workers/copy?delete_disk=true").status_code == 200
    assert f"{BASE}:{pc}.ubuntu" in node.targets() and image.exists()
