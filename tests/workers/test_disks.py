"""POST /workers/{id}/luns/disk against a real node."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from rest_framework.test import APIClient

from ipxeready.storage.paths import Layout
from tests.nodes import RealNode
from tests.workers.helpers import ledger, refusal, snapshot, trail

Make = Callable[..., dict[str, Any]]
IQN = "iqn.2026-07.com.controller"
MIB = 1 << 20


@pytest.fixture
def pc(node: RealNode, worker: Make) -> str:
    """A worker of a name that nobody else has on the node, and the node registered."""
    node.register("node-1", role={"disk": True, "cd": False}, tags=["files"])
    name = node.name("pc")
    worker(name)
    return name


def create(client: APIClient, pc: str, **body: Any) -> dict[str, Any]:
    answer = client.post(f"/workers/{pc}/luns/disk", body)
    assert answer.status_code == 201, answer.json()
    return dict(answer.json())


def test_an_empty_disk(api: APIClient, layout: Layout, node: RealNode, pc: str) -> None:
    record = create(api, pc, type="empty", os="Ubuntu", size="2M")
    (disk,) = record["disks"]
    image = node.folder / f"{pc}.ubuntu.img"
    assert disk == {
        "agent": "node-1",
        "iqn": f"{IQN}:{pc}.ubuntu",
        "filename": f"{pc}.ubuntu.img",
        "backing": str(image),
        "os": "ubuntu",
        "source": {"type": "empty", "size": 2 * MIB},
        "access": "acl",
    }
    assert record["state"] == "ready"
    assert ledger(layout)[pc]["disks"] == [disk]
    assert image.stat().st_size == 2 * MIB
    assert f"{IQN}:{pc}.ubuntu" in node.targets()
    first, second = trail(layout, "worker.disk.create")
    assert (first["status"], second["status"]) == ("started", "ok")
    assert (second["agent"], second["worker_id"]) == ("node-1", pc)
    assert second["iqn"] == disk["iqn"]
    (asked,) = trail(layout, "agent.create_disk")
    assert (asked["agent"], asked["worker_id"]) == ("node-1", pc)
    assert (asked["how"], asked["bytes"]) == ("empty", 0)


def test_a_clone(api: APIClient, node: RealNode, pc: str) -> None:
    master = f"{pc}_tpl_v1.img"
    node.image(master, content=b"the master")
    record = create(api, pc, type="master", os="windows", name=master)
    disk = record["disks"][0]
    assert disk["source"] == {"type": "master", "name": master}
    assert (node.folder / f"{pc}.windows.img").read_bytes()[:10] == b"the master"


@pytest.mark.case(54)
def test_a_long_name_with_windows_is_a_warning(
    api: APIClient, node: RealNode, worker: Make
) -> None:
    node.register()
    name = node.name("classroom-2-seat-07")
    worker(name)
    record = create(api, name, type="empty", os="windows", size=MIB)
    assert "Windows" in record["warnings"][0]
    assert "warnings" not in create(api, name, type="empty", os="ubuntu", size=MIB)


def test_an_image_that_was_kept(api: APIClient, node: RealNode, pc: str) -> None:
    node.image(f"{pc}.debian.img", content=b"kept")
    record = create(api, pc, type="existing", os="debian", name=f"{pc}.debian.img")
    assert record["disks"][0]["source"]["type"] == "existing"
    assert (node.folder / f"{pc}.debian.img").read_bytes()[:4] == b"kept"
    status, words = refusal(
        api,
        "post",
        f"/workers/{pc}/luns/disk",
        {"type": "existing", "os": "centos", "name": f"{pc}.centos.img"},
    )
    assert status == 404
    assert "node-1" in words and f"{pc}.centos.img" in words


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ({}, "type: is needed"),
        ({"type": "empty", "os": "ubuntu"}, "size: is needed"),
        ({"type": "empty", "os": "ubuntu", "size": None}, "size: is needed"),
        ({"type": "empty", "os": "ubuntu", "size": 0}, "size 0 must be more than 0"),
        ({"type": "empty", "os": "ubuntu", "size": -512}, "-512 must be more than 0"),
        ({"type": "empty", "os": "ubuntu", "size": 513}, "513 must be more than 0"),
        ({"type": "empty", "os": "ubuntu", "size": "40X"}, "'40X' is not a size"),
        ({"type": "empty", "os": "ubuntu", "size": 1.5}, "1.5 is not a size"),
        ({"type": "empty", "os": "ubuntu", "size": True}, "True is not a size"),
        ({"type": "empty", "os": "ubuntu", "size": ["1G"]}, "is not a size"),
        ({"type": "empty", "os": "ubuntu", "size": "9" * 100_000}, "is not a size"),
        ({"type": "empty", "os": "ubuntu", "size": "65T"}, "limit"),
        (
            {"type": "empty", "os": "ubuntu", "size": "1M", "name": "x"},
            "name: does not go",
        ),
        ({"type": "empty", "os": "dos", "size": "1M"}, "os: 'dos' must be one of"),
        ({"type": "empty", "os": 1, "size": "1M"}, "os: 1 must be text"),
        (
            {"type": "EMPTY", "os": "ubuntu", "size": "1M"},
            "type: 'EMPTY' must be one of",
        ),
        ({"type": None, "os": "ubuntu", "size": "1M"}, "type: must be text"),
        ({"type": "t" * 10_000, "os": "ubuntu"}, "must be one of master"),
        ({"type": "master", "os": "ubuntu"}, "name: is needed for type master"),
        (
            {"type": "master", "os": "ubuntu", "name": "a_tpl_b.img", "size": "1M"},
            "size: does not go",
        ),
        (
            {"type": "master", "os": "ubuntu", "name": "../../etc/passwd"},
            "is not a file name",
        ),
        (
            {"type": "master", "os": "ubuntu", "name": "/etc/x_tpl_y.img"},
            "is not a file name",
        ),
        (
            {"type": "master", "os": "ubuntu", "name": "a,b_tpl_.img"},
            "is not a file name",
        ),
        ({"type": "master", "os": "ubuntu", "name": "x.img"}, "is not a master"),
        ({"type": "existing", "os": "ubuntu", "name": "other.img"}, "must be "),
        ({"type": "existing", "os": "ubuntu", "name": "x" * 10_000}, "must be "),
        (
            {"type": "empty", "os": "ubuntu", "size": "1M", "agent": "x"},
            "agent: unknown field",
        ),
        (
            {"type": "empty", "os": "ubuntu", "size": "1M", "disk_agent": 3},
            "disk_agent: 3 must be text",
        ),
    ],
)
def test_what_is_malformed_reaches_no_node(
    api: APIClient, layout: Layout, pc: str, body: dict[str, Any], rule: str
) -> None:
    before = snapshot(layout)
    status, words = refusal(api, "post", f"/workers/{pc}/luns/disk", body)
    assert (status, rule in words) == (400, True), words
    assert len(words) < 500
    assert snapshot(layout) == before
    assert not trail(layout, "agent.create_disk")


@pytest.mark.case(60)
def test_the_same_system_twice_is_a_conflict(
    api: APIClient, layout: Layout, pc: str
) -> None:
    body = {"type": "empty", "os": "ubuntu", "size": "1M"}
    create(api, pc, **body)
    before = snapshot(layout)
    status, words = refusal(api, "post", f"/workers/{pc}/luns/disk", body)
    assert status == 409
    assert f"{pc} has a ubuntu disk already on node node-1" in words
    assert snapshot(layout) == before


@pytest.mark.case(60)
def test_two_creations_at_once_make_one_disk(
    api: APIClient, layout: Layout, node: RealNode, pc: str
) -> None:
    ready = threading.Barrier(4)

    def run(_: int) -> int:
        ready.wait(10)
        try:
            return api.post(
                f"/workers/{pc}/luns/disk",
                {"type": "empty", "os": "ubuntu", "size": "1M"},
            ).status_code
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        statuses = sorted(pool.map(run, range(4)))
    assert statuses == [201, 409, 409, 409]
    assert len(ledger(layout)[pc]["disks"]) == 1
    assert "status" not in ledger(layout)[pc]["disks"][0]


@pytest.mark.case(60)
def test_an_image_that_lies_there_is_left_alone_and_the_reservation_goes(
    api: APIClient, layout: Layout, node: RealNode, pc: str
) -> None:
    image = node.image(f"{pc}.ubuntu.img", content=b"theirs")
    inode = image.stat().st_ino
    answer = api.post(
        f"/workers/{pc}/luns/disk", {"type": "empty", "os": "ubuntu", "size": "1M"}
    )
    assert answer.status_code == 409
    assert answer.json()["detail"]["agent"] == "node-1"
    assert "exists already" in answer.json()["detail"]["error"]
    assert image.read_bytes()[:6] == b"theirs" and image.stat().st_ino == inode
    assert ledger(layout)[pc]["disks"] == []
    assert [line["status"] for line in trail(layout, "worker.disk.create")] == [
        "started",
        "rollback",
    ]


def test_the_node_that_is_named_is_checked(
    api: APIClient, layout: Layout, node: RealNode, pc: str
) -> None:
    node.register("off", enabled=False)
    node.register("cds", role={"disk": False, "cd": True})
    body = {"type": "empty", "os": "ubuntu", "size": "1M"}
    before = snapshot(layout)
    for agent, expected, word in (
        ("off", 409, "off is disabled"),
        ("nobody", 404, "nobody"),
        ("cds", 400, "takes no disks"),
    ):
        status, words = refusal(
            api, "post", f"/workers/{pc}/luns/disk", {**body, "disk_agent": agent}
        )
        assert (status, word in words) == (expected, True), words
    assert snapshot(layout) == before
    record = create(api, pc, **body, disk_agent="NODE-1")
    assert record["disks"][0]["agent"] == "node-1"


def test_no_node_fits_and_each_reason_is_told(
    api: APIClient, layout: Layout, node: RealNode, pc: str
) -> None:
    node.register("off", enabled=False)
    status, words = refusal(
        api,
        "post",
        f"/workers/{pc}/luns/disk",
        {"type": "master", "os": "ubuntu", "name": "none_tpl_x.img"},
    )
    assert status == 409
    assert "node-1 has no master none_tpl_x.img" in words
    assert "off is disabled" in words
    assert ledger(layout)[pc]["disks"] == []


def test_no_node_at_all(api: APIClient, worker: Make) -> None:
    worker("pc1")
    status, words = refusal(
        api,
        "post",
        "/workers/pc1/luns/disk",
        {"type": "empty", "os": "ubuntu", "size": "1M"},
    )
    assert status == 409
    assert "no storage node" in words


def test_the_second_disk_goes_where_the_first_is(
    api: APIClient, node: RealNode, other_node: RealNode, pc: str
) -> None:
    other_node.register("a-node")
    create(api, pc, type="empty", os="ubuntu", size="1M", disk_agent="node-1")
    record = create(api, pc, type="empty", os="windows", size="1M")
    assert [disk["agent"] for disk in record["disks"]] == ["node-1", "node-1"]


def test_an_unknown_worker_and_roles(
    api: APIClient,
    as_viewer: APIClient,
    stranger: APIClient,
    as_operator: APIClient,
    pc: str,
) -> None:
    body = {"type": "empty", "os": "ubuntu", "size": "1M"}
    assert refusal(api, "post", "/workers/nobody/luns/disk", body)[0] == 404
    path = f"/api/cp/workers/{pc}/luns/disk/"
    assert stranger.post(path, body).status_code == 401
    assert as_viewer.post(path, body).status_code == 403
    assert api.get(path).status_code == 405
    form = "type=empty&os=ubuntu&size=1M&name="
    answer = as_operator.post(
        path, form, content_type="application/x-www-form-urlencoded"
    )
    assert answer.status_code == 201, answer.json()


def test_a_node_with_workers_disks_is_not_taken_off(api: APIClient, pc: str) -> None:
    create(api, pc, type="empty", os="ubuntu", size="1M")
    status, words = refusal(api, "delete", "/agents/node-1")
    assert (status, pc in words) == (409, True)
