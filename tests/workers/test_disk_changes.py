"""POST /workers/{id}/luns/disk/{os}/grow and /reset: the ledger and the node agree afterwards."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import requests
from rest_framework.test import APIClient

from ipxeready.jobs.selectors import store
from ipxeready.jobs.services import jobs_recover
from ipxeready.storage.paths import Layout
from tests.ipxeready.jobs.helpers import ASYNC, ended
from tests.nodes import MIB, RealNode
from tests.processes import eventually
from tests.workers.helpers import ledger, trail

FRESH = b"as the master has it"


@pytest.fixture
def name(api: APIClient, node: RealNode, worker: Callable[..., dict[str, Any]]) -> str:
    """A worker with two disks on a real node: debian cloned and written to since, ubuntu empty."""
    node.register("n")
    name = node.name()
    worker(name)
    node.image(f"{name}_tpl_v1.img", MIB, FRESH)
    for disk in (
        {"type": "master", "os": "debian", "name": f"{name}_tpl_v1.img"},
        {"type": "empty", "os": "ubuntu", "size": "1M"},
    ):
        made = api.post(f"/workers/{name}/luns/disk", {**disk, "disk_agent": "n"})
        assert made.status_code == 201, made.json()
    (node.folder / f"{name}.debian.img").write_bytes(b"worn".ljust(MIB, b"\1"))
    return name


def _disk(layout: Layout, name: str, os: str) -> dict[str, Any]:
    return next(d for d in ledger(layout)[name]["disks"] if d["os"] == os)


def test_an_empty_disk_grows_and_its_record_says_so(
    layout: Layout, api: APIClient, node: RealNode, name: str
) -> None:
    answer = api.post(f"/workers/{name}/luns/disk/ubuntu/grow", {"size": "3M"})
    assert answer.status_code == 200, answer.json()
    assert (node.folder / f"{name}.ubuntu.img").stat().st_size == 3 * MIB
    assert _disk(layout, name, "ubuntu")["source"] == {"type": "empty", "size": 3 * MIB}
    told = trail(layout, "worker.disk.grow")[-1]
    assert (told["status"], told["size"], told["was"]) == ("ok", 3 * MIB, MIB)


def test_a_clone_grows_and_stays_its_masters(
    layout: Layout, api: APIClient, node: RealNode, name: str
) -> None:
    before = _disk(layout, name, "debian")
    grown = api.post(f"/workers/{name}/luns/disk/DEBIAN/grow", {"size": 3 * MIB})
    assert grown.status_code == 200
    assert (node.folder / f"{name}.debian.img").stat().st_size == 3 * MIB
    assert _disk(layout, name, "debian") == before


def test_a_reset_disk_is_its_master_again(
    layout: Layout, api: APIClient, node: RealNode, name: str
) -> None:
    before = ledger(layout)
    answer = api.post(f"/workers/{name}/luns/disk/debian/reset", {})
    assert answer.status_code == 200, answer.json()
    assert (node.folder / f"{name}.debian.img").read_bytes().startswith(FRESH)
    assert ledger(layout) == before
    told = trail(layout, "worker.disk.reset")[-1]
    assert (told["status"], told["master"]) == ("ok", f"{name}_tpl_v1.img")
    assert told["how"]


def test_another_master_is_written_into_the_record(
    layout: Layout, api: APIClient, node: RealNode, name: str
) -> None:
    node.image(f"{name}_tpl_v2.img", 2 * MIB, b"the second")
    body = {"master": f"{name}_tpl_v2.img"}
    assert api.post(f"/workers/{name}/luns/disk/ubuntu/reset", body).status_code == 200
    assert _disk(layout, name, "ubuntu")["source"] == {
        "type": "master",
        "name": f"{name}_tpl_v2.img",
    }
    assert (node.folder / f"{name}.ubuntu.img").stat().st_size == 2 * MIB


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        ("ubuntu/reset", {}, 400, "was not cloned from a master"),
        ("debian/reset", {"master": "no-master.img"}, 400, "not a master"),
        ("debian/reset", {"master": "gone_tpl_.img"}, 404, "no master"),
        ("windows/reset", {}, 404, "has no windows disk"),
        ("dos/reset", {}, 400, "os"),
        ("debian/reset", {"force": True}, 400, "force"),
        ("debian/grow", {}, 400, "size"),
        ("debian/grow", {"size": "1M"}, 409, "only made larger"),
        ("debian/grow", {"size": "1000"}, 400, "multiple of 512"),
        ("windows/grow", {"size": "2M"}, 404, "has no windows disk"),
    ],
)
def test_a_wrong_wish_changes_nothing(
    layout: Layout,
    api: APIClient,
    node: RealNode,
    name: str,
    path: str,
    body: dict[str, Any],
    status: int,
    words: str,
) -> None:
    before, files = ledger(layout), sorted(p.name for p in node.folder.iterdir())
    answer = api.post(f"/workers/{name}/luns/disk/{path}", body)
    assert answer.status_code == status, answer.json()
    assert words in str(answer.json()["detail"])
    assert ledger(layout) == before
    assert sorted(p.name for p in node.folder.iterdir()) == files
    assert (node.folder / f"{name}.debian.img").read_bytes().startswith(b"worn")


def test_there_must_be_such_a_worker(api: APIClient, name: str) -> None:
    assert api.post("/workers/nobody/luns/disk/debian/reset", {}).status_code == 404


@pytest.mark.parametrize("what", ["grow", "reset"])
def test_a_viewer_changes_nothing(as_viewer: APIClient, name: str, what: str) -> None:
    body = {"size": "3M"} if what == "grow" else {}
    answer = as_viewer.post(f"/workers/{name}/luns/disk/debian/{what}", body)
    assert answer.status_code == 403


def test_a_dead_node_is_503_and_the_audit_says_so(
    layout: Layout, api: APIClient, node: RealNode, name: str
) -> None:
    api.put("/agents/n", {"base_url": "http://127.0.0.1:1"})
    assert api.post(f"/workers/{name}/luns/disk/debian/reset", {}).status_code == 503
    assert trail(layout, "worker.disk.reset")[-1]["status"] == "failed"


def test_a_reset_may_be_a_job(
    layout: Layout, api: APIClient, node: RealNode, name: str
) -> None:
    path = f"/workers/{name}/luns/disk/debian/reset"
    refused = api.post(path, {"master": "no-master.img"}, **ASYNC)
    assert refused.status_code == 400
    answer = api.post(path, {}, **ASYNC)
    assert answer.status_code == 202, answer.json()
    job = ended(api, answer["Location"])
    assert (job["kind"], job["state"]) == ("worker.disk.reset", "done"), job
    assert job["result"] == api.get(f"/workers/{name}").json()
    assert (node.folder / f"{name}.debian.img").read_bytes().startswith(FRESH)


@pytest.mark.parametrize(
    ("about", "state", "source"),
    [
        ({}, "failed", "v1"),
        ({"node_job": "20260101-000000-00000000"}, "failed", "v1"),
    ],
    ids=["not begun on the node", "forgotten by the node"],
)
def test_a_reset_whose_service_was_killed_ends(
    layout: Layout,
    api: APIClient,
    node: RealNode,
    name: str,
    about: dict[str, str],
    state: str,
    source: str,
) -> None:
    iqn = _disk(layout, name, "debian")["iqn"]
    known = {"worker_id": name, "os": "debian", "agent": "n", "iqn": iqn, **about}
    known["master"] = f"{name}_tpl_v2.img"
    with store().new("worker.disk.reset", by="ann", about=known) as left:
        left.start()
    jobs_recover()
    job = api.get(f"/jobs/{left.job.id}").json()
    assert job["state"] == state
    assert "restarted" in str(job["error"]["detail"])
    assert _disk(layout, name, "debian")["source"]["name"].endswith(f"{source}.img")


def test_a_reset_that_the_node_finished_alone_is_written_down(
    layout: Layout, api: APIClient, node: RealNode, name: str
) -> None:
    node.image(f"{name}_tpl_v2.img", MIB, b"the second")
    iqn = _disk(layout, name, "debian")["iqn"]
    made = requests.post(
        f"{node.base_url}/lun/reset",
        json={"iqn": iqn, "master": f"{name}_tpl_v2.img"},
        headers={
            "Authorization": f"Bearer {node.token}",
            "Prefer": "respond-async",
        },
        timeout=10,
    )
    assert made.status_code == 202, made.text
    known = {
        "worker_id": name,
        "os": "debian",
        "agent": "n",
        "iqn": iqn,
        "node_job": made.json()["id"],
        "master": f"{name}_tpl_v2.img",
    }
    with store().new("worker.disk.reset", by="ann", about=known) as left:
        left.start()
    eventually(lambda: not jobs_recover())
    assert store().get(left.job.id).state == "done"
    assert _disk(layout, name, "debian")["source"]["name"] == f"{name}_tpl_v2.img"
