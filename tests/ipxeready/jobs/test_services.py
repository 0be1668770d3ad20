"""Jobs of one process: turns, the same work twice, cancelling, what is left behind."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connections

from ipxeready import ending
from ipxeready.actors import Actor
from ipxeready.conf import REPOSITORY
from ipxeready.errors import Conflict, Forbidden, NotFound, Unavailable
from ipxeready.jobs import kinds, runner, selectors, services
from ipxeready.jobs.services import Work, job_cancel, job_run, job_start, job_wait
from ipxeready.jobs.watch import Watch
from ipxeready.storage.jobs import CANCELLED, DONE, FAILED, QUEUED, RUNNING, LeftOpen
from ipxeready.storage.paths import Layout
from tests.ipxeready.jobs.helpers import Slow
from tests.workers.helpers import trail


@pytest.fixture
def slows(layout: Layout) -> Iterator[list[Slow]]:
    """Work that is let go at the end of the test."""
    made: list[Slow] = []
    yield made
    for slow in made:
        slow.go.set()


@pytest.fixture
def one_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "AT_ONCE", 1)


def test_a_job_tells_who_asked_how_far_it_is_and_what_came_of_it(
    slows: list[Slow], operator: Actor
) -> None:
    slow = Slow(worker_id="pc1")
    slows.append(slow)
    job = job_start(actor=operator, work=slow.work)
    assert slow.begun.wait(10)
    now = selectors.store().get(job.id)
    assert (now.state, now.by, now.about) == (RUNNING, "oscar", {"worker_id": "pc1"})
    assert (now.done, now.total) == (0, 2)
    slow.go.set()
    now = job_wait(job.id, 10)
    assert (now.state, now.result, now.done) == (DONE, {"made": True}, 2)


def test_a_refusal_of_the_work_is_the_jobs_error(
    layout: Layout, operator: Actor
) -> None:
    def do(_: Watch) -> None:
        raise Conflict("taken", field="os")

    job = job_start(actor=operator, work=Work(kind="test", do=do))
    job = job_wait(job.id, 10)
    assert (job.state, job.error) == (
        FAILED,
        {"status": 409, "detail": {"os": ["taken"]}},
    )


def test_the_database_connections_of_its_thread_are_closed(
    layout: Layout, operator: Actor
) -> None:
    opened: list[Any] = []

    def do(_: Watch) -> None:
        with connections["default"].cursor() as cursor:
            cursor.execute("select 1")
        opened.append(connections["default"])

    job = job_start(actor=operator, work=Work(kind="test", do=do))
    assert job_wait(job.id, 10).state == DONE
    assert runner.runner().idle(10)
    assert [each.connection for each in opened] == [None]
    assert not [t for t in threading.enumerate() if t.name == "job"]


def test_the_same_work_is_the_same_job_while_it_runs(
    slows: list[Slow], operator: Actor
) -> None:
    slow, other = Slow(), Slow()
    slows += [slow, other]
    first, again = (
        Work(kind="test", do=each.work.do, same=["pc1", "debian"])
        for each in (slow, other)
    )
    checked: list[bool] = []
    again = Work(
        kind=again.kind,
        do=again.do,
        same=again.same,
        check=lambda: checked.append(True),
    )
    job = job_start(actor=operator, work=first)
    assert job_start(actor=operator, work=again).id == job.id
    assert checked == []
    slow.go.set()
    job_wait(job.id, 10)
    other.go.set()
    assert job_start(actor=operator, work=again).id != job.id
    assert checked == [True]


def test_two_like_requests_at_once_make_one_job(
    slows: list[Slow], operator: Actor
) -> None:
    slow = Slow()
    slows.append(slow)
    work = Work(kind="test", do=slow.work.do, same="x")
    ids: set[str] = set()
    callers = [
        threading.Thread(
            target=lambda: ids.add(job_start(actor=operator, work=work).id)
        )
        for _ in range(8)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(ids) == 1


def test_what_is_refused_now_makes_no_job(layout: Layout, operator: Actor) -> None:
    def check() -> None:
        raise NotFound("no such worker")

    with pytest.raises(NotFound):
        job_start(actor=operator, work=Work(kind="t", do=lambda _: None, check=check))
    assert selectors.store().all() == []


@pytest.mark.usefixtures("one_at_once")
def test_many_jobs_of_one_do_not_hold_up_the_one_of_another(
    slows: list[Slow], operator: Actor, administrator: Actor
) -> None:
    order: list[str] = []

    def noted(name: str, slow: Slow) -> Work:
        def do(watch: Watch) -> Any:
            order.append(name)
            return slow.work.do(watch)

        return Work(kind="test", do=do)

    first = Slow()
    slows.append(first)
    jobs = [job_start(actor=operator, work=noted("o0", first))]
    assert first.begun.wait(10)
    for name, actor in [("o1", operator), ("o2", operator), ("a1", administrator)]:
        slow = Slow()
        slow.go.set()
        jobs.append(job_start(actor=actor, work=noted(name, slow)))
    assert selectors.store().get(jobs[3].id).state == QUEUED
    first.go.set()
    for job in jobs:
        assert job_wait(job.id, 10).state == DONE
    # Nobody has anything under way by then: the oldest first.
    assert order == ["o0", "o1", "o2", "a1"]


def test_whoever_has_less_under_way_comes_first(
    slows: list[Slow],
    operator: Actor,
    administrator: Actor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runner, "AT_ONCE", 2)
    long, short, late, other = (Slow() for _ in range(4))
    slows += [long, short, late, other]
    for slow in (long, short):
        job_start(actor=operator, work=slow.work)
        assert slow.begun.wait(10)
    job_start(actor=operator, work=late.work)
    job_start(actor=administrator, work=other.work)
    short.go.set()
    assert other.begun.wait(10)
    assert not late.begun.is_set()


@pytest.mark.usefixtures("one_at_once")
def test_a_job_is_cancelled_while_it_waits(
    slows: list[Slow], layout: Layout, operator: Actor
) -> None:
    slow, waiting = Slow(), Slow(worker_id="pc2")
    slows += [slow, waiting]
    job_start(actor=operator, work=slow.work)
    job = job_start(actor=operator, work=waiting.work)
    job_cancel(actor=operator, job_id=job.id)
    job = job_wait(job.id, 10)
    assert job.state == CANCELLED
    assert "nothing was done" in job.error["detail"]
    assert not waiting.begun.is_set()
    (line,) = trail(layout, "job.cancel")
    assert (line["job"], line["user"], line["worker_id"]) == (job.id, "oscar", "pc2")


def test_a_viewer_reads_and_does_not_cancel(
    slows: list[Slow], operator: Actor, viewer: Actor
) -> None:
    slow = Slow()
    slows.append(slow)
    job = job_start(actor=operator, work=slow.work)
    assert selectors.job_get(actor=viewer, job_id=job.id).id == job.id
    assert [each.id for each in selectors.jobs(actor=viewer)] == [job.id]
    with pytest.raises(Forbidden):
        job_cancel(actor=viewer, job_id=job.id)
    assert not slow.watch or not slow.watch.cancelled()


def test_what_has_ended_cannot_be_cancelled(layout: Layout, operator: Actor) -> None:
    job = job_start(actor=operator, work=Work(kind="t", do=lambda _: 1))
    job_wait(job.id, 10)
    with pytest.raises(Conflict, match="has ended already: it is done"):
        job_cancel(actor=operator, job_id=job.id)


@pytest.mark.usefixtures("one_at_once")
def test_more_than_can_wait_are_refused(
    slows: list[Slow], operator: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "MOST_WAITING", 1)
    made = [Slow() for _ in range(3)]
    slows += made
    job_start(actor=operator, work=made[0].work)
    assert made[0].begun.wait(10)
    job_start(actor=operator, work=made[1].work)
    with pytest.raises(Unavailable, match="wait for their turn"):
        job_start(actor=operator, work=made[2].work)


@pytest.mark.usefixtures("one_at_once")
def test_what_waits_when_the_service_ends_is_found_and_ended_by_the_next(
    slows: list[Slow], operator: Actor
) -> None:
    slow, waiting = Slow(), Slow()
    slows += [slow, waiting]
    told: list[bool] = []
    ending.told_by(lambda: bool(told))
    try:
        job_start(actor=operator, work=slow.work)
        assert slow.begun.wait(10)
        job = job_start(actor=operator, work=waiting.work)
        told.append(True)
        slow.go.set()
        assert runner.runner().idle(10)
        assert selectors.store().get(job.id).state == QUEUED
    finally:
        ending.told_by(None)
    assert services.jobs_recover() == {}
    job = selectors.store().get(job.id)
    assert (job.state, job.error) == (
        FAILED,
        {"status": 503, "detail": kinds.RESTARTED},
    )


def test_work_that_goes_on_elsewhere_stays_open_until_it_is_told_how_it_ended(
    layout: Layout, operator: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kinds, "_recoveries", {})

    def do(watch: Watch) -> None:
        watch.note(node_job="n1")
        raise LeftOpen

    job = job_start(actor=operator, work=Work(kind="t", do=do))
    assert runner.runner().idle(10)
    kinds.recover("t", lambda running: None)
    assert services.jobs_recover() == {job.id: True}
    assert services.jobs_recover(lambda job_id: False) == {}
    assert selectors.store().get(job.id).state == RUNNING
    kinds.recover("t", lambda running: running.finish(running.job.about["node_job"]))
    assert services.jobs_recover() == {}
    assert selectors.store().get(job.id).result == "n1"


def test_a_recovery_that_fails_leaves_its_job_and_ends_the_others(
    layout: Layout, operator: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kinds, "_recoveries", {})

    def leave(_: Watch) -> None:
        raise LeftOpen

    jobs = {
        kind: job_start(actor=operator, work=Work(kind=kind, do=leave))
        for kind in ("bad", "good")
    }
    assert runner.runner().idle(10)
    kinds.recover("bad", lambda running: 1 / 0)  # type: ignore[arg-type,return-value]
    assert services.jobs_recover() == {jobs["bad"].id: False}
    assert selectors.store().get(jobs["bad"].id).state == RUNNING
    assert selectors.store().get(jobs["good"].id).state == FAILED


SCRIPT = """
import threading, time
import django
django.setup()
from ipxeready.actors import OPERATOR, Actor
from ipxeready.jobs.services import Work, job_start
begun = threading.Event()
def do(watch):
    begun.set()
    while not watch.cancelled():
        time.sleep(0.02)
    return "stopped"
work = Work(kind="t", do=do, same="x")
job = job_start(actor=Actor("ann", OPERATOR), work=work)
begun.wait(20)
print(job.id, flush=True)
"""


def test_a_job_of_another_process_is_found_cancelled_and_not_taken_for_dead(
    layout: Layout, operator: Actor, tmp_path: Any
) -> None:
    child = subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        env={
            "PATH": "/usr/bin:/bin",
            "DJANGO_SETTINGS_MODULE": "ipxeready.settings",
            "IPXE_ROOT": str(layout.root),
            "RUNTIME_DIRECTORY": str(tmp_path),
        },
    )
    try:
        assert child.stdout
        job_id = child.stdout.readline().decode().strip()
        work = Work(kind="t", do=lambda _: None, same="x")
        assert job_start(actor=operator, work=work).id == job_id
        assert services.jobs_recover() == {}
        assert selectors.store().get(job_id).state in (QUEUED, RUNNING)
        job_cancel(actor=operator, job_id=job_id)
        assert job_wait(job_id, 20).result == "stopped"
        assert child.wait(20) == 0
    finally:
        child.kill()
        child.wait()
        child.stdout.close()  # type: ignore[union-attr]


def _nothing(done: int, total: int | None) -> None:
    """No bar."""


def test_a_commands_work_is_a_job_and_its_refusal_the_commands(
    layout: Layout, operator: Actor
) -> None:
    drawn: list[tuple[int, int | None]] = []

    def do(watch: Watch) -> str:
        watch.at(1, 1)
        return "made"

    def refuse(_: Watch) -> None:
        raise Conflict("taken")

    work = Work(kind="t", do=do)
    result = job_run(
        actor=operator, work=work, draw=lambda done, total: drawn.append((done, total))
    )
    assert (result, drawn) == ("made", [(1, 1)])
    with pytest.raises(Conflict, match="taken"):
        job_run(actor=operator, work=Work(kind="t", do=refuse), draw=_nothing)
    states = [job.state for job in selectors.store().all()]
    assert sorted(states) == [DONE, FAILED]


def test_a_command_that_is_stopped_leaves_its_job_to_the_service(
    layout: Layout, operator: Actor
) -> None:
    def do(_: Watch) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        job_run(actor=operator, work=Work(kind="t", do=do), draw=_nothing)
    (job,) = selectors.store().all()
    assert job.state == RUNNING
    started = time.monotonic()
    assert job_wait(job.id, 0.1).state == RUNNING
    assert time.monotonic() - started < 5
