"""Batches about workers that are there, as jobs: boots, resets, access; each worker on its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from ipxeready.actors import Actor
from ipxeready.errors import Forbidden, Invalid
from ipxeready.jobs.services import Work, job_start, job_wait
from ipxeready.jobs.watch import Watch
from ipxeready.storage.jobs import Cancelled, Job
from ipxeready.storage.paths import Layout
from tests.nodes import RealNode
from tests.workers.helpers import ledger
from workers.batch_jobs import accesses_work, boots_work, resets_work

Make = Callable[..., dict[str, Any]]
MASTER = "reset_tpl_many.img"


def _done(actor: Actor, work: Work) -> Job:
    job = job_wait(job_start(actor=actor, work=work).id, 30)
    assert job.state == "done", job
    return job


@pytest.fixture
def pcs(api: APIClient, node: RealNode, worker: Make) -> list[str]:
    """Two workers with clones, one without a disk."""
    node.register("n")
    if not (node.folder / MASTER).exists():
        node.image(MASTER, content=b"master")
    names = [node.name("batch") for _ in range(3)]
    for name in names:
        worker(name)
    for name in names[:2]:
        body = {"type": "master", "os": "debian", "name": MASTER}
        assert api.post(f"/workers/{name}/luns/disk", body).status_code == 201
    return names


def test_each_boots_what_it_can(
    layout: Layout, operator: Actor, pcs: list[str]
) -> None:
    work = boots_work(
        actor=operator, worker_ids=pcs, os="debian", menu_timeout=0, menu_default=None
    )
    job = _done(operator, work)
    assert (job.done, job.total) == (3, 3)
    assert job.result["succeeded"] == [{"worker_id": name} for name in pcs[:2]]
    (failed,) = job.result["failed"]
    assert failed["worker_id"] == pcs[2]
    assert "has no disk" in failed["error"]
    record = ledger(layout)[pcs[0]]
    assert (record["default_os"], record["boot"]) == ("debian", {"menu_timeout": 0})


def test_disks_get_the_content_of_their_master_again(
    operator: Actor, node: RealNode, pcs: list[str]
) -> None:
    image = node.folder / f"{pcs[0]}.debian.img"
    image.write_bytes(b"written" + image.read_bytes()[7:])
    job = _done(operator, resets_work(actor=operator, worker_ids=pcs, os="debian"))
    assert image.read_bytes().startswith(b"master")
    assert [item["worker_id"] for item in job.result["succeeded"]] == pcs[:2]
    assert "has no debian disk" in job.result["failed"][0]["error"]


def test_access_is_set_for_each(
    layout: Layout, operator: Actor, pcs: list[str]
) -> None:
    work = accesses_work(actor=operator, worker_ids=pcs, access="acl")
    job = _done(operator, work)
    assert len(job.result["succeeded"]) == 3
    assert {ledger(layout)[name]["access"] for name in pcs} == {"acl"}


def test_what_was_not_begun_when_it_was_cancelled_is_not_done(
    layout: Layout, operator: Actor, pcs: list[str]
) -> None:
    class Stopped(Watch):
        def cancelled(self) -> bool:
            return True

    for work in (
        resets_work(actor=operator, worker_ids=pcs, os="debian"),
        boots_work(actor=operator, worker_ids=pcs, os="debian"),
    ):
        with pytest.raises(Cancelled, match="3 not tried") as caught:
            work.do(Stopped())
        assert len(caught.value.extra["result"]["failed"]) == 3


def test_what_is_wrong_with_all_of_it_is_refused_before_there_is_a_job(
    operator: Actor, viewer: Actor
) -> None:
    with pytest.raises(Invalid, match="1 to 10000"):
        boots_work(actor=operator, worker_ids=[], os="debian")
    with pytest.raises(Invalid, match="must be one of"):
        resets_work(actor=operator, worker_ids=["a"], os="beos")
    with pytest.raises(Invalid, match="master"):
        resets_work(actor=operator, worker_ids=["a"], os="debian", master="../x")
    with pytest.raises(Invalid, match="must be one of"):
        accesses_work(actor=operator, worker_ids=["a"], access="open")
    for call in (
        lambda: boots_work(actor=viewer, worker_ids=["a"], os="debian"),
        lambda: resets_work(actor=viewer, worker_ids=["a"], os="debian"),
        lambda: accesses_work(actor=viewer, worker_ids=["a"], access=None),
    ):
        with pytest.raises(Forbidden):
            call()
