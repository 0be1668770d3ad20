"""GET /jobs, GET and DELETE /jobs/{id}: for whom, which, how they look."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from rest_framework.test import APIClient

from ipxeready.actors import Actor
from ipxeready.jobs.services import Work, job_start, job_wait
from ipxeready.storage.paths import Layout
from tests.ipxeready.jobs.helpers import Slow, ended
from tests.workers.helpers import refusal

FIELDS = {
    "id",
    "kind",
    "by",
    "about",
    "state",
    "unit",
    "done",
    "total",
    "created",
    "started",
    "ended",
    "error",
    "cancelling",
}


@pytest.fixture
def slow(layout: Layout) -> Iterator[Slow]:
    made = Slow(stubborn=True, worker_id="pc1", targets=[["pc1", "n"]])
    yield made
    made.go.set()


@pytest.fixture
def three(operator: Actor, slow: Slow) -> list[str]:
    """Ids of one that failed, one that is done, one that runs; oldest first."""

    def fail(_: Any) -> None:
        raise ZeroDivisionError

    ids = []
    for kind, do in (("a", fail), ("b", lambda _: {"x": 1})):
        job = job_start(actor=operator, work=Work(kind=kind, do=do))
        ids.append(job_wait(job.id, 10).id)
    ids.append(job_start(actor=operator, work=slow.work).id)
    assert slow.begun.wait(10)
    return ids


@pytest.mark.parametrize("prefix", ["", "/api/cp"])
def test_the_list_is_newest_first_and_short(
    as_viewer: APIClient, three: list[str], prefix: str
) -> None:
    jobs = as_viewer.get(f"{prefix}/jobs").json()
    assert [job["id"] for job in jobs] == three[::-1]
    assert [job["state"] for job in jobs] == ["running", "done", "failed"]
    assert set(jobs[0]) == FIELDS
    assert jobs[0]["about"] == {"worker_id": "pc1"}
    whole = as_viewer.get(f"{prefix}/jobs/{three[2]}/").json()
    assert set(whole) == FIELDS | {"result"}
    assert whole["about"] == {"worker_id": "pc1", "targets": [["pc1", "n"]]}


@pytest.mark.parametrize(
    ("query", "places"),
    [
        ("state=failed", [0]),
        ("kind=b", [1]),
        ("state=done&kind=a", []),
        ("kind=nothing", []),
        ("state=running", [2]),
    ],
)
def test_filters(
    as_viewer: APIClient, three: list[str], query: str, places: list[int]
) -> None:
    jobs = as_viewer.get(f"/jobs?{query}").json()
    assert [job["id"] for job in jobs] == [three[at] for at in places]


def test_pages(as_viewer: APIClient, three: list[str]) -> None:
    page = as_viewer.get("/jobs?limit=2&offset=1").json()
    assert page["count"] == 3
    assert [job["id"] for job in page["results"]] == three[1::-1]


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("state=ended", "state: must be one of queued, running"),
        ("stat=done", "unknown parameter"),
        ("limit=0", "limit"),
        ("kind=a&kind=b", "more than once"),
    ],
)
def test_a_wrong_query_is_refused(
    as_viewer: APIClient, layout: Layout, query: str, words: str
) -> None:
    status, said = refusal(as_viewer, "get", f"/jobs?{query}")
    assert (status, words in said) == (400, True), said


def test_an_operator_cancels_a_viewer_does_not(
    as_operator: APIClient, as_viewer: APIClient, three: list[str], slow: Slow
) -> None:
    path = f"/jobs/{three[2]}"
    assert as_viewer.delete(path).status_code == 403
    assert as_viewer.get(path).json()["cancelling"] is False
    answer = as_operator.delete(path)
    assert (answer.status_code, answer.json()["cancelling"]) == (200, True)
    slow.go.set()
    job = ended(as_operator, path)
    assert (job["state"], job["cancelling"]) == ("done", False)
    assert refusal(as_operator, "delete", path)[0] == 409
    assert refusal(as_operator, "delete", f"{path}?force=true")[0] == 400
    assert refusal(as_operator, "delete", path, {"force": True})[0] == 400


def test_nobody_else_sees_them(stranger: APIClient, three: list[str]) -> None:
    for path in ("/jobs", f"/jobs/{three[0]}"):
        assert stranger.get(path).status_code == 401
    assert stranger.delete(f"/jobs/{three[2]}").status_code == 401


@pytest.mark.parametrize("name", ["x", "..", "20260101-000000-00000000"])
def test_no_such_job(as_operator: APIClient, layout: Layout, name: str) -> None:
    for method in ("get", "delete"):
        status, words = refusal(as_operator, method, f"/jobs/{name}")
        assert (status, "there is no job" in words) == (404, True)


def test_a_bug_of_ours_tells_nothing_inside(
    as_viewer: APIClient, three: list[str]
) -> None:
    job = as_viewer.get(f"/jobs/{three[0]}").json()
    assert job["error"] == {
        "status": 500,
        "detail": "internal error: ZeroDivisionError",
    }
