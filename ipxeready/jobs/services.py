"""Jobs: started, waited for, cancelled; those that a crash left are ended."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from audit.services import record_quietly
from ipxeready.actors import OPERATOR, Actor
from ipxeready.errors import ApplicationError, Conflict, Unavailable
from ipxeready.jobs import kinds
from ipxeready.jobs.runner import Task, runner
from ipxeready.jobs.selectors import store
from ipxeready.jobs.watch import JobWatch, Progress, Watch
from ipxeready.said import said
from ipxeready.storage.inflight import claim
from ipxeready.storage.jobs import ENDED, ITEMS, Cancelled, Job, LeftOpen, Running

log = logging.getLogger(__name__)

#: Seconds that two like requests wait for each other, to find out that they are the same.
_TURN = 5.0
_LOOK = 0.05
#: Fields of `about` that an audit line has of its own.
_AUDITED = ("worker_id", "agent")


@dataclass(frozen=True)
class Work:
    """Something that may take long, checked already: what is wrong with the request is refused before."""

    kind: str
    """In the words of the audit."""
    do: Callable[[Watch], Any]
    """Does it; the result is the answer's body."""
    about: dict[str, Any] = field(default_factory=dict)
    same: Any = None
    """Two pieces of the same kind for which this is equal are the same work: no second job while the first runs."""
    unit: str = ITEMS
    total: int | None = None
    check: Callable[[], object] | None = None
    """Refuses at once what the present state refuses; asked before a job is made, unless the same work runs already."""

    @property
    def key(self) -> str | None:
        """`same` as the store compares it."""
        if self.same is None:
            return None
        text = json.dumps(self.same, sort_keys=True, default=str)
        digest = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16)
        return f"{self.kind}-{digest.hexdigest()}"


def job_start(*, actor: Actor, work: Work) -> Job:
    """The job that does it, in a thread of this process; that of the same work if it runs already.

    The caller has checked the actor's right to it: the work does so again.
    """
    if work.key is not None and (found := store().find_running(work.key)):
        return found
    if work.check is not None:
        work.check()
    runner().check_room()
    with ExitStack() as stack:
        if work.key is not None:
            stack.enter_context(_turn(work.key))
            if found := store().find_running(work.key):
                return found
        held = ExitStack()
        running = held.enter_context(_new(actor, work))
        job = dataclasses.replace(running.job)
        runner().submit(Task(running, work.do, held))
    return job


def job_find(work: Work) -> Job | None:
    """The job that does the same work right now, if there is one."""
    return store().find_running(work.key) if work.key is not None else None


def job_run(*, actor: Actor, work: Work, draw: Progress) -> Any:
    """Do it here and now, as a job that others see and may cancel; its result, or its refusal.

    For commands: `draw` is their bar. Ctrl-C leaves the job as it is; the service ends it by what is there.
    """
    if work.check is not None:
        work.check()
    results: list[Any] = []
    refusals: list[ApplicationError] = []
    stopped = False

    def do(running: Running) -> Any:
        nonlocal stopped
        try:
            results.append(work.do(JobWatch(running, draw)))
        except Cancelled as error:
            if "result" in error.extra:
                results.append(error.extra["result"])
            else:
                refusals.append(error)
            raise
        except ApplicationError as error:
            refusals.append(error)
            raise
        except KeyboardInterrupt:
            stopped = True
            raise LeftOpen from None
        return results[0]

    with _new(actor, work) as running:
        running.run(do)
    if stopped:
        raise KeyboardInterrupt
    if refusals:
        raise refusals[0]
    return results[0]


def _new(actor: Actor, work: Work) -> contextlib.AbstractContextManager[Running]:
    return store().new(
        work.kind,
        by=actor.shown,
        about=work.about,
        key=work.key,
        unit=work.unit,
        total=work.total,
    )


@contextlib.contextmanager
def _turn(key: str) -> Iterator[None]:
    """One at a time for each key, across processes."""
    end = time.monotonic() + _TURN
    while True:
        with claim(store().folder, key) as mine:
            if mine:
                yield
                return
        if time.monotonic() > end:
            raise Unavailable(said("the same request is being looked at; try again"))
        time.sleep(_LOOK)


def job_wait(job_id: str, seconds: float) -> Job:
    """The job as soon as it has ended, or as it is after so many seconds."""
    end = time.monotonic() + seconds
    while True:
        job = store().get(job_id)
        if job.state in ENDED or time.monotonic() >= end:
            return job
        time.sleep(_LOOK)


def job_cancel(*, actor: Actor, job_id: str) -> Job:
    """Ask for the end of a job: what is under way comes to a clean end, the rest is not begun."""
    actor.require(OPERATOR)
    job = store().get(job_id)
    if job.state in ENDED:
        raise Conflict(
            said(
                "job {job} has ended already: it is {state}",
                job=job.id,
                state=job.state,
            ),
            code="job.ended",
        )
    job = store().cancel(job.id)
    about = {name: job.about[name] for name in _AUDITED if job.about.get(name)}
    record_quietly(actor=actor, op="job.cancel", job=job.id, kind=job.kind, **about)
    return job


def refusal_of(job: Job) -> tuple[str | None, str]:
    """Why a job failed: the field that is at fault, if one is, and the words; both empty when it did not."""
    detail = (job.error or {}).get("detail")
    if not isinstance(detail, dict) or not detail:
        return None, str(detail or "")
    if set(detail) == {"agent", "error"}:
        words = said(
            "node {agent}: {error}", agent=detail["agent"], error=detail["error"]
        )
        return None, words
    name, texts = next(iter(detail.items()))
    return str(name), " ".join(map(str, texts)) if isinstance(texts, list) else str(
        texts
    )


def jobs_recover(due: Callable[[str], bool] = lambda job_id: True) -> dict[str, bool]:
    """End the jobs whose process is gone, as far as can be told now. Those that stay open: whether they could be looked at.

    Only those that are `due` are looked at: what cannot be asked is not asked again at once.
    """
    left: dict[str, bool] = {}
    for running in store().abandoned():
        job = running.job
        if not due(job.id):
            continue
        looked = True
        try:
            kinds.recovery_of(job.kind)(running)
        except ApplicationError as error:
            looked = False
            log.debug("job %s cannot be ended yet: %s", job.id, error)
        except Exception:
            # One that cannot be looked at must not keep the others open.
            looked = False
            log.exception("job %s cannot be ended yet", job.id)
        if running.job.state not in ENDED:
            left[job.id] = looked
    return left
