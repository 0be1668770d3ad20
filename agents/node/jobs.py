"""Long work of this node: in threads of its own, followed and cancelled as jobs, and found again after a restart.

An endpoint whose work may take long gives it to `respond`, which decides by the request's `Prefer`
whether the caller gets the ordinary answer or a job (202). See there for what the work must do.
"""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from django.http import HttpRequest, HttpResponse, JsonResponse

from agents.node.turns import Turns
from agents.protocol import paths
from ipxeready import ending, prefer
from ipxeready.errors import Conflict, Unavailable
from ipxeready.prefer import Preference
from ipxeready.said import said
from ipxeready.storage.jobs import BYTES, ENDED, Job, JobStore
from ipxeready.storage.jobs import Running as OnFile

if TYPE_CHECKING:
    from agents.node.runtime import Node

logger = logging.getLogger(__name__)

#: Full copies and conversions at a time: more of them only make each other's disk heads travel.
HEAVY = 4
#: Work that has begun and not ended: each holds a thread and four open files, and a process often has 1024.
MOST = 100
#: Seconds for which a caller may have a thread of the server to itself with `wait=`.
LONGEST_WAIT = 60.0
#: Work that somebody waits for without `Prefer` is listed as a job after so many seconds.
_SHOWN_AFTER = 2.0
#: Seconds after SIGTERM in which work must be over, by its own pace, to be finished (below gunicorn's grace).
FINISH = 240.0
#: A pace is known after so many seconds.
_PACE = 1.0
#: Ended jobs that no file took and that are remembered all the same.
_KEPT = 100

#: What a restart does with unfinished jobs of a kind: the result when the work was done after all, else None.
AT_RESTART: dict[str, Callable[[Node, Job], Any]] = {}


class Step:
    """What work says of itself while it runs. This one is for work that nobody follows: it does nothing."""

    def begin(self) -> None:
        """Everything that can be refused at once has been checked: from here on it may become a job.

        `turn`, `add` and `at` say it too.
        """

    def turn(self, total: int | None = None) -> None:
        """The heavy part comes: wait for one of the few turns at the disk, and keep it until the work ends.

        `total` is how much it is, in the job's unit. Raises as `check` does.
        """

    def add(self, count: int) -> None:
        """`count` more are done. Raises as `check` does."""

    def at(self, done: int, total: int | None = None) -> None:
        """So much is done. Raises as `check` does."""

    def check(self) -> None:
        """Raise Cancelled when somebody asked for the end, Unavailable when the agent ends and this would take too long."""


Work = Callable[[Step], Any]


class _Followed(Step):
    """The step of a job."""

    def __init__(self, live: _Live, turns: Turns, places: threading.Semaphore) -> None:
        self._live = live
        self._turns = turns
        self._places = places
        self._has_place = False
        self._running = live.running
        self._has_turn = False
        self._since = time.monotonic()
        self._deadline: float | None = None

    def begin(self) -> None:
        if self._has_place:
            return
        if not self._places.acquire(blocking=False):
            raise Unavailable(
                said(
                    "this node has too much under way and waiting already; send it again when some of it "
                    "has ended."
                ),
                code="job.many",
                retry_after=30,
            )
        self._has_place = True
        self._live.has_begun()

    def turn(self, total: int | None = None) -> None:
        self.begin()
        if total is not None:
            self._running.job.total = total
        if self._has_turn:
            return
        self._turns.take(waits=self._running.queue, check=self._check_queued)
        self._has_turn = True
        self._since = time.monotonic()
        self._running.start()
        self.check()

    def give_back(self) -> None:
        """The work has ended."""
        if self._has_turn:
            self._turns.give()
        if self._has_place:
            self._places.release()

    def add(self, count: int) -> None:
        self.at(self._running.job.done + count)

    def at(self, done: int, total: int | None = None) -> None:
        self.begin()
        self._running.at(done, total)
        self._check_ending()

    def check(self) -> None:
        self._running.check()
        self._check_ending()

    def _check_queued(self) -> None:
        self._running.check()
        if ending.ending():
            raise ending.not_tried()

    def _check_ending(self) -> None:
        """Work that will be over soon is finished, any other must not keep the next start away."""
        if not ending.ending():
            return
        moment = time.monotonic()
        if self._deadline is None:
            self._deadline = moment + FINISH
        left = self._left(moment)
        if moment + left > self._deadline:
            takes = (
                said("another {seconds} s", seconds=f"{left:.0f}")
                if left
                else said("too long")
            )
            raise Unavailable(
                said(
                    "the agent is being stopped and this would take {takes}: it was given up, and "
                    "nothing is left of it. Send the request again when the agent is back.",
                    takes=takes,
                ),
                code="job.stopped",
            )

    def _left(self, moment: float) -> float:
        """Seconds that the rest takes by the pace so far; 0 while nobody knows."""
        job, so_far = self._running.job, moment - self._since
        if not job.total or not job.done or so_far < _PACE:
            return 0.0
        return max(job.total - job.done, 0) * so_far / job.done


class _Live:
    """A job that has not ended, in this process."""

    def __init__(self, running: OnFile, same: Any, *, show: bool) -> None:
        self.running = running
        self.same = same
        self._show = show
        """Its first caller does not wait: it is a job from its beginning."""
        self._begun = self._ended = False
        self._result: Any = None
        self._error: BaseException | None = None
        self._changed = threading.Condition()

    def has_begun(self) -> None:
        """The checks are over."""
        if not self._begun:
            if self._show:
                self.running.show()
            with self._changed:
                self._begun = True
                self._changed.notify_all()

    def end(self, result: Any, error: BaseException | None) -> None:
        """Tell those who wait."""
        with self._changed:
            self._result, self._error = result, error
            self._ended = True
            self._changed.notify_all()

    def outcome(self, wanted: Preference, waiting: threading.Semaphore) -> Any:
        """The work's result (or what it raised) when it is over in the time that the caller would wait; else the Job."""
        with self._changed:
            # Checks take milliseconds, or the time limit of what they ask.
            self._changed.wait_for(lambda: self._begun or self._ended)
        if wanted.respond_async:
            seconds = min(wanted.wait or 0.0, LONGEST_WAIT)
            if seconds and waiting.acquire(blocking=False):
                try:
                    self._wait(seconds)
                finally:
                    waiting.release()
            if not self._over(unless_shown=not seconds):
                return self.running.job
        else:
            self._wait(_SHOWN_AFTER)
            if not self._over():
                self._wait(None)
        if self._error is not None:
            raise self._error
        return self._result

    def _wait(self, seconds: float | None) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._ended, seconds)

    def _over(self, *, unless_shown: bool = False) -> bool:
        """Whether it has ended; if not it is on file when this returns."""
        with self._changed:
            if self._ended:
                return not (unless_shown and self._begun and self.running.shown)
            self.running.show()
            return False


class Jobs:
    """The jobs of this node: those under way in memory, and all that outlived their callers' patience on file."""

    def __init__(
        self, folder: Path, *, heavy: int = HEAVY, waiting: int = 8, most: int = MOST
    ) -> None:
        self.store = JobStore(folder)
        self._places = threading.BoundedSemaphore(most)
        self._turns = Turns(heavy)
        self.waiting = threading.BoundedSemaphore(waiting)
        """Callers that may have a thread of the server each while they wait: never all of them."""
        self._guard = threading.Lock()
        self._by_id: dict[str, _Live] = {}
        self._by_key: dict[str, _Live] = {}
        self._kept: dict[str, Job] = {}

    def submit(
        self,
        work: Work,
        *,
        kind: str,
        key: str,
        same: Any = None,
        by: str = "",
        about: dict[str, Any] | None = None,
        unit: str = BYTES,
        total: int | None = None,
        show: bool = False,
    ) -> _Live:
        """Begin the work in a thread of its own, or join the same work that runs; Conflict with other work of that key."""
        with self._guard:
            live = self._by_key.get(key)
            # One that has ended, and is about to say so, is nobody's answer any more.
            if live is not None and live.running.job.state not in ENDED:
                job = live.running.job
                if job.kind == kind and live.same == same:
                    return live
                raise Conflict(
                    said(
                        "{key} is being worked on by another request: job {job} ({kind}). Wait for its end, "
                        "or cancel it with DELETE {jobs}/{job}.",
                        key=key,
                        job=job.id,
                        kind=job.kind,
                        jobs=paths.JOBS,
                    ),
                    code="job.busy",
                )
            held = contextlib.ExitStack()
            running = held.enter_context(
                self.store.later(
                    kind, by=by, about=about, key=key, unit=unit, total=total
                )
            )
            live = _Live(running, same, show=show)
            self._by_key[key] = self._by_id[running.job.id] = live
        # No daemon: a short copy is finished when the agent is told to end.
        thread = threading.Thread(
            target=self._run, args=(live, work, held), name=f"job-{running.job.id}"
        )
        try:
            thread.start()
        except RuntimeError as error:
            self._forget(live)
            late = Unavailable(
                said("this node has no thread left for it; try again later.")
            )
            live.end(None, late)
            raise late from error
        return live

    def get(self, job_id: str) -> Job:
        """One job, or NotFound."""
        return self._in_memory().get(job_id) or self.store.get(job_id)

    def all(self, *, state: str | None = None, limit: int) -> list[Job]:
        """The newest jobs first."""
        found = {job.id: job for job in self.store.all()} | self._in_memory()
        jobs = [job for job in found.values() if state is None or job.state == state]
        jobs.sort(key=lambda job: (job.created, job.id), reverse=True)
        return jobs[:limit]

    def told(self, job: Job) -> dict[str, Any]:
        """A job as the API shows it; `cancelling` while it was asked to end and has not yet."""
        with self._guard:
            live = self._by_id.get(job.id)
        if job.state in ENDED:
            wished = False
        elif live is not None:
            wished = live.running.cancelled()
        else:
            wished = self.store.wished(job.id)
        return {**job.public(), "cancelling": wished}

    def cancel(self, job_id: str) -> Job:
        """Ask for the end of a job; Conflict when it has ended."""
        job = self.get(job_id)
        if job.state in ENDED:
            raise Conflict(
                said(
                    "job {job} has ended already ({state}); there is nothing to cancel.",
                    job=job_id,
                    state=job.state,
                ),
                code="job.ended",
            )
        with self._guard:
            live = self._by_id.get(job_id)
        if live is None:
            self.store.cancel(job_id)
        else:
            live.running.wish()
            self._turns.wake()
        return job

    def recover(self, node: Node) -> None:
        """End what an earlier process of the agent left unfinished; its half files have been removed before."""
        for running in self.store.abandoned():
            job = running.job
            made = AT_RESTART.get(job.kind)
            try:
                result = made(node, job) if made else None
            except (TypeError, ValueError, AttributeError):
                # A file that somebody edited must not keep the agent from its start.
                logger.exception("job %s says something else than it should", job.id)
                result = None
            if result is not None:
                running.finish(result)
            else:
                running.fail(
                    status=Unavailable.status,
                    detail=said(
                        "the agent was restarted while this was under way; nothing was left "
                        "behind: what was half made has been removed. Send the request again."
                    ),
                )
            node.log.add("job.recover", job.state, job=job.id, kind=job.kind)
        self.store.prune()

    # -- inside ------------------------------------------------------------

    def _in_memory(self) -> dict[str, Job]:
        with self._guard:
            shown = {
                name: live.running.job
                for name, live in self._by_id.items()
                if live.running.shown
            }
            return self._kept | shown

    def _run(self, live: _Live, work: Work, held: contextlib.ExitStack) -> None:
        step = _Followed(live, self._turns, self._places)
        result: Any = None
        error: BaseException | None = None

        def watched(_: OnFile) -> Any:
            nonlocal result, error
            try:
                result = work(step)
            except BaseException as caught:
                error = caught
                raise
            return result

        with held:
            try:
                live.running.run(watched)
            except Exception:
                logger.exception("job %s failed", live.running.job.id)
            finally:
                step.give_back()
                self._forget(live)
                live.end(result, error)
        if live.running.shown:
            self.store.prune()

    def _forget(self, live: _Live) -> None:
        job = live.running.job
        with self._guard:
            self._by_id.pop(job.id, None)
            if job.key is not None and self._by_key.get(job.key) is live:
                del self._by_key[job.key]
            if live.running.unwritten:
                self._kept[job.id] = job
                while len(self._kept) > _KEPT:
                    del self._kept[next(iter(self._kept))]


def respond(
    request: HttpRequest,
    node: Node,
    work: Work,
    *,
    kind: str,
    key: str,
    same: Any = None,
    about: dict[str, Any] | None = None,
    unit: str = BYTES,
    total: int | None = None,
    status: int = 201,
) -> HttpResponse:
    """Do `work(step)` in a thread of its own and answer its result as JSON with `status`, or a job with 202.

    Without `Prefer` the answer waits for the end. With `Prefer: respond-async` it is 202 with the
    job and its Location once the work has begun; with `respond-async, wait=N` only when the work is
    not over within N seconds. Nothing is on file before that, so quick work costs no sync. What the
    work raises (ApplicationError) is the answer, or the job's error.

    What the work must do:

    1. Check first, then `step.begin()` (or the first of the calls below). What is refused before is answered at once,
       never as a job. Work that calls none of them is answered directly whatever the caller prefers: right for quick work.
    2. Before a heavy part (whole images read or written) `step.turn(total)`: few have a turn at a time.
       Never wait for it, nor do anything long, with the node's lock held.
    3. `step.add(count)` or `step.at(done)` often, several times a second: that is progress, and raises
       Cancelled when the job was cancelled. Let it pass and clean up as after any failure; nothing may be left.
    4. Files that a kill can leave are `.part` files (`parts.open_part`), which the next start removes. Work whose
       result may be there although the job was not ended (killed between the last step and the job's end)
       puts a function into AT_RESTART under its kind.

    `key` says what it is about (an IQN, `image:<name>`): one job of a key at a time. `same` is compared,
    in memory only, so it may hold secrets: an equal one joins the running job and gets its answer, any other is
    Conflict. `about` goes on file and is shown: never a secret. `kind` is in the audit's words (`lun.create_disk`).
    """
    wanted = prefer.preference(request.headers.get(prefer.HEADER))
    live = node.jobs.submit(
        work,
        kind=kind,
        key=key,
        same=same,
        by=request.META.get("REMOTE_ADDR", ""),
        about=about,
        unit=unit,
        total=total,
        show=wanted.respond_async and not wanted.wait,
    )
    outcome = live.outcome(wanted, node.jobs.waiting)
    if not isinstance(outcome, Job):
        return JsonResponse(outcome, status=status, safe=False)
    response = JsonResponse(node.jobs.told(outcome), status=202)
    response["Location"] = f"{paths.JOBS}/{outcome.id}"
    response[prefer.APPLIED] = prefer.RESPOND_ASYNC
    return response
