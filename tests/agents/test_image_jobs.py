"""Conversions and the ends of uploads as jobs of the control plane: also when its process is gone."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from agents import intake_jobs
from ipxeready.jobs.selectors import store
from ipxeready.jobs.services import jobs_recover
from ipxeready.storage.jobs import Job
from tests.nodes import MIB, RealNode
from tests.processes import eventually
from tests.shell import run


@pytest.fixture(autouse=True)
def _registered(layout: object, node: RealNode) -> None:
    node.register("n", role={"disk": True, "cd": True})


def test_a_caller_may_have_a_job(api: APIClient, node: RealNode) -> None:
    source = node.image(f"{node.name()}.raw", 4 * MIB, b"x" * MIB)
    name = source.name.replace(".raw", "_tpl_1.img")
    answer = api.post(
        "/agents/n/images/convert",
        {"source": source.name, "name": name},
        headers={"Prefer": "respond-async"},
    )
    assert answer.status_code == 202, answer.content
    path = answer["Location"]
    eventually(lambda: api.get(path).json()["state"] == "done")
    assert api.get(path).json()["result"]["name"] == name


def test_a_wrong_request_is_refused_at_once_and_makes_no_job(
    api: APIClient, node: RealNode
) -> None:
    stem = node.name()
    node.image(f"{stem}.raw")
    node.image(f"{stem}_tpl_1.img")
    for source, name, status, words in (
        (f"{stem}-gone.raw", f"{stem}_tpl_2.img", 404, "there is no"),
        (f"{stem}.raw", f"{stem}_tpl_1.img", 409, "exists already"),
    ):
        body = {"source": source, "name": name}
        answer = api.post(
            "/agents/n/images/convert", body, headers={"Prefer": "respond-async"}
        )
        assert answer.status_code == status
        assert words in answer.json()["detail"]["error"]
        ended = run("image", "convert", "n", source, name)
        assert (ended.code, words in ended.err) == (1, True)
    assert store().all() == []


def _abandoned(kind: str, **about: Any) -> str:
    """A job whose process is gone."""
    with store().new(kind, by="oscar", about={"agent": "n", **about}) as running:
        running.start()
        return running.job.id


def _ended(job_id: str) -> Job:
    jobs_recover()
    return store().get(job_id)


def test_what_the_node_has_is_done_after_a_crash(node: RealNode) -> None:
    image = node.image(f"{node.name()}_tpl_1.img")
    job = _ended(_abandoned(intake_jobs.CONVERT, source="a.raw", name=image.name))
    assert (job.state, job.result["name"]) == ("done", image.name)


def test_what_the_node_has_not_has_failed_after_a_crash(node: RealNode) -> None:
    job = _ended(_abandoned(intake_jobs.CONVERT, source="a.raw", name="none_tpl_1.img"))
    assert job.state == "failed"
    assert "not made" in str(job.error)


def test_an_upload_that_still_waits_was_not_finished(
    api: APIClient, node: RealNode
) -> None:
    made = api.post("/agents/n/uploads", {"name": f"{node.name()}.iso"}).json()
    lost = _abandoned(intake_jobs.FINISH, upload=made["id"], name=made["name"])
    assert _ended(lost).state == "failed"
    assert api.delete(f"/agents/n/uploads/{made['id']}").status_code == 200
