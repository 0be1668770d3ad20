"""`Prefer: respond-async` on what takes long: 202 and a job, whose result is what the answer would have been."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rest_framework.test import APIClient

from ipxeready.jobs import selectors
from ipxeready.storage.paths import Layout
from tests.ipxeready.jobs.helpers import ASYNC, ended
from tests.nodes import BASE, RealNode
from tests.workers.helpers import M1, ledger, refusal, trail
from tests.workers.stub import Stub, stub_node

PATH = "/workers/pc1/luns/disk"
BODY = {"type": "empty", "os": "ubuntu", "size": "1M"}
IQN = f"{BASE}:pc1.ubuntu"


@pytest.fixture
def pcs(node: RealNode, layout: Layout) -> list[str]:
    """Three workers whose names no other test has on the node, which is registered as `n`."""
    node.register("n")
    names = [node.name() for _ in range(3)]
    lines = [f"  {name}:\n    hostname: {name}\n" for name in names]
    layout.workers_yml.write_text("workers:\n" + "".join(lines))
    return names


@pytest.fixture
def stub(
    layout: Layout, worker: Callable[..., dict[str, Any]]
) -> Iterator[tuple[Stub, threading.Event]]:
    """A node that makes pc1's disk when it is released, and the event that it has begun."""
    begun = threading.Event()

    def wait(_: str) -> None:
        begun.set()
        found.release.wait(30)

    with stub_node() as found:
        found.register()
        found.next_iqn = IQN
        found.before = wait
        worker("pc1", mac=M1)
        yield found, begun


@pytest.mark.parametrize("prefix", ["", "/api/cp"])
def test_a_disk(
    api: APIClient, layout: Layout, node: RealNode, pcs: list[str], prefix: str
) -> None:
    path = f"{prefix}/workers/{pcs[0]}/luns/disk"
    answer = api.post(path, {**BODY, "disk_agent": "n"}, **ASYNC)
    assert answer.status_code == 202, answer.content
    job = answer.json()
    assert answer["Location"] == f"{prefix}/jobs/{job['id']}"
    assert answer["Preference-Applied"] == "respond-async"
    assert (job["kind"], job["by"], job["unit"]) == (
        "worker.disk.create",
        "token",
        "bytes",
    )
    job = ended(api, answer["Location"])
    assert job["state"] == "done", job
    assert job["result"] == api.get(f"/workers/{pcs[0]}").json()
    assert job["about"]["iqn"] == f"{BASE}:{pcs[0]}.ubuntu"
    assert job["about"]["agent"] == "n"
    # The trail says who, as for any request.
    lines = trail(layout, "worker.disk.create")
    assert [(line["status"], line["user"]) for line in lines] == [
        ("started", "token"),
        ("ok", "token"),
    ]


def test_both_batches(api: APIClient, layout: Layout, pcs: list[str]) -> None:
    targets = [{"worker_id": name, "agent": "n"} for name in [*pcs, "nobody"]]
    answer = api.post("/workers/luns/disk/batch", {**BODY, "targets": targets}, **ASYNC)
    assert answer.status_code == 202, answer.content
    job = ended(api, answer["Location"])
    assert (job["state"], job["unit"], job["done"], job["total"]) == (
        "done",
        "items",
        4,
        4,
    )
    assert [each["worker_id"] for each in job["result"]["succeeded"]] == pcs
    assert [each["worker_id"] for each in job["result"]["failed"]] == ["nobody"]
    body = {"worker_ids": [*pcs, "nobody"], "delete_disk": True}
    answer = api.post("/workers/delete/batch", body, **ASYNC)
    assert answer.status_code == 202, answer.content
    job = ended(api, answer["Location"])
    assert (job["state"], job["done"], job["total"]) == ("done", 4, 4)
    assert [each["worker_id"] for each in job["result"]["succeeded"]] == pcs
    assert ledger(layout) == {}


def test_disk_and_scan_of_a_node(
    api: APIClient, node: RealNode, pcs: list[str]
) -> None:
    iqn = f"{BASE}:{pcs[0]}.debian"
    body = {"iqn": iqn, "size": "1M"}
    answer = api.post("/agents/n/luns/disk", body, **ASYNC)
    assert answer.status_code == 202, answer.content
    job = ended(api, answer["Location"])
    backing = str(node.folder / f"{pcs[0]}.debian.img")
    assert job["result"].items() >= {"iqn": iqn, "backing": backing}.items()
    node.image(f"{pcs[1]}.debian.img")
    answer = api.post("/agents/n/luns/scan", **ASYNC)
    assert answer.status_code == 202, answer.content
    found = ended(api, answer["Location"])["result"]["created"]
    assert {"iqn": f"{BASE}:{pcs[1]}.debian", "cd": False} in found


def test_without_the_header_the_answer_waits_and_there_is_no_job(
    api: APIClient, pcs: list[str]
) -> None:
    path = f"/workers/{pcs[0]}/luns/disk"
    assert api.post(path, BODY).status_code == 201
    assert api.get("/jobs").json() == []


def test_what_is_quick_is_answered_where_the_caller_waits_for_it(
    api: APIClient, pcs: list[str]
) -> None:
    wait = {"headers": {"Prefer": "respond-async, wait=20"}}
    path = f"/workers/{pcs[0]}/luns/disk"
    answer = api.post(path, {**BODY, "disk_agent": "n"}, **wait)
    assert answer.status_code == 201, answer.content
    assert answer.json() == api.get(f"/workers/{pcs[0]}").json()
    # A refusal too, with its own status.
    body = {"type": "master", "os": "debian", "name": "no_tpl_x.img"}
    answer = api.post(path, {**body, "disk_agent": "n"}, **wait)
    assert answer.status_code == 404, answer.content
    assert answer.json()["detail"]["agent"] == "n"


@pytest.mark.parametrize(
    ("path", "body", "status", "words"),
    [
        (PATH, {"os": "amiga"}, 400, "os"),
        (PATH, {"size": "1X"}, 400, "size"),
        (PATH, {"siez": "1M"}, 400, "siez"),
        (PATH, {"type": "master", "size": None, "name": "../x"}, 400, "name"),
        (PATH, {"disk_agent": "nobody"}, 404, "nobody"),
        ("/workers/pc9/luns/disk", {}, 404, "no worker"),
        ("/workers/luns/disk/batch", {"targets": []}, 400, "targets"),
        ("/workers/luns/disk/batch", {}, 400, "targets"),
        ("/agents/stub/luns/disk", None, 400, "iqn"),
        ("/agents/nobody/luns/scan", {}, 404, "nobody"),
    ],
)
def test_a_wrong_request_is_refused_at_once(
    api: APIClient,
    stub: tuple[Stub, threading.Event],
    path: str,
    body: dict[str, Any] | None,
    status: int,
    words: str,
) -> None:
    given = {k: v for k, v in {**BODY, **(body or {})}.items() if v is not None}
    if path.startswith("/agents"):
        given = body or {}
    found, said = refusal(api, "post", path, given, **ASYNC)
    assert (found, words in said) == (status, True), (found, said)
    assert api.get("/jobs").json() == []


def test_a_viewer_starts_nothing(
    as_viewer: APIClient, stub: tuple[Stub, threading.Event]
) -> None:
    assert as_viewer.post(PATH, BODY, **ASYNC).status_code == 403
    assert as_viewer.get("/jobs").json() == []


@pytest.mark.case(65)
def test_the_same_request_again_is_the_same_job_and_is_not_made_twice(
    api: APIClient, layout: Layout, stub: tuple[Stub, threading.Event]
) -> None:
    node, begun = stub
    answer = api.post(PATH, BODY, **ASYNC)
    assert begun.wait(20)
    assert ledger(layout)["pc1"]["disks"][0]["status"] == "creating"
    again = api.post(PATH, BODY, **ASYNC)
    assert (again.status_code, again.json()["id"]) == (202, answer.json()["id"])
    assert again["Location"] == answer["Location"]
    # Who waits is told that it is being worked on; another system is another disk.
    status, words = refusal(api, "post", PATH, BODY)
    assert (status, "being worked on" in words) == (409, True), words
    assert len(node.asked("POST")) == 1
    node.release.set()
    assert ended(api, answer["Location"])["state"] == "done"
    status, words = refusal(api, "post", PATH, BODY, **ASYNC)
    assert (status, "already" in words) == (409, True), words


def test_a_slow_job_holds_up_nothing_else(
    api: APIClient, node: RealNode, stub: tuple[Stub, threading.Event]
) -> None:
    slow, begun = stub
    answer = api.post(PATH, {**BODY, "disk_agent": "stub"}, **ASYNC)
    assert begun.wait(20)
    node.register("n")
    name = node.name()
    assert api.post("/workers", {"worker_id": name, "mac": "52:54:00:00:00:77"})
    path = f"/workers/{name}/luns/disk"
    quick = api.post(path, {**BODY, "disk_agent": "n"}, **ASYNC)
    assert ended(api, quick["Location"])["state"] == "done"
    assert api.get(answer["Location"]).json()["state"] == "running"
    slow.release.set()
    assert ended(api, answer["Location"])["state"] == "done"


@pytest.mark.parametrize("deleting", [False, True])
def test_a_cancelled_batch_finishes_what_is_under_way_and_leaves_the_rest(
    api: APIClient,
    layout: Layout,
    node: RealNode,
    pcs: list[str],
    monkeypatch: pytest.MonkeyPatch,
    deleting: bool,
) -> None:
    from workers import batches, removal_batch

    monkeypatch.setattr(batches, "CHUNK", 1)
    monkeypatch.setattr(removal_batch, "CHUNK", 1)
    body: dict[str, Any] = {
        **BODY,
        "targets": [{"worker_id": name, "agent": "n"} for name in pcs],
    }
    path = "/workers/luns/disk/batch"
    if deleting:
        assert len(api.post(path, body).json()["succeeded"]) == 3
        body, path = {"worker_ids": pcs}, "/workers/delete/batch"
    begun, go = threading.Event(), threading.Event()
    for module, name in ((batches, "spread"), (removal_batch, "spread")):
        real = getattr(module, name)

        def held(*given: Any, real: Any = real) -> Any:
            begun.set()
            assert go.wait(20)
            return real(*given)

        monkeypatch.setattr(module, name, held)
    answer = api.post(path, body, **ASYNC)
    assert begun.wait(20)
    assert api.delete(answer["Location"]).status_code == 200
    if not deleting:
        # What has not been asked of a node is not under way.
        go.set()
        job = ended(api, answer["Location"])
        assert job["result"]["succeeded"] == []
        assert len(job["result"]["failed"]) == 3
    else:
        go.set()
        job = ended(api, answer["Location"])
        done = [each["worker_id"] for each in job["result"]["succeeded"]]
        assert done == pcs[:1]
    assert job["state"] == "cancelled"
    assert {each["error"] for each in job["result"]["failed"]} == {
        "cancelled: not tried"
    }
    assert job["error"]["detail"] == f"cancelled: {3 - deleting} not tried"
    assert sorted(ledger(layout)) == sorted(pcs[1:] if deleting else pcs)
    there = {f"{BASE}:{name}.ubuntu" for name in pcs} & set(node.targets())
    assert there == (
        {f"{BASE}:{name}.ubuntu" for name in pcs[1:]} if deleting else set()
    )
    under_way = [
        disk
        for record in ledger(layout).values()
        for disk in record.get("disks") or []
        if disk.get("status")
    ]
    assert under_way == []


def test_the_files_of_jobs_hold_no_token(
    api: APIClient, layout: Layout, node: RealNode, pcs: list[str]
) -> None:
    answer = api.post(f"/workers/{pcs[0]}/luns/disk", BODY, **ASYNC)
    ended(api, answer["Location"])
    text = "".join(path.read_text() for path in layout.jobs.iterdir())
    assert pcs[0] in text
    assert node.token not in text
    assert selectors.store().unfinished() == []
