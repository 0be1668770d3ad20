"""Jobs on file: one JSON object each, so that work that outlives its caller can be found, read and ended after a crash."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import logging
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from ipxeready.errors import ApplicationError, NotFound, Unavailable
from ipxeready.said import said
from ipxeready.storage import atomic
from ipxeready.storage.fingerprint import read_regular
from ipxeready.storage.inflight import claim

logger = logging.getLogger(__name__)

QUEUED = "queued"
RUNNING = "running"
DONE = "done"
FAILED = "failed"
CANCELLED = "cancelled"
STATES = (QUEUED, RUNNING, DONE, FAILED, CANCELLED)
#: States that nothing leads out of.
ENDED = frozenset({DONE, FAILED, CANCELLED})

BYTES = "bytes"
ITEMS = "items"

#: Progress is written at most so often (seconds): a copy reports a hundred times a second.
_PERIOD = 0.5
_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{8}")
_MODE = 0o600
#: A draft this old (seconds) is what a kill has left.
_STALE = 60.0


class Cancelled(ApplicationError):
    """The job was cancelled by a person (409): raised inside the work, which then cleans up.

    What was done of it nevertheless may be in `extra["result"]`.
    """

    status = 409
    default_code = "job.cancelled"


class LeftOpen(Exception):
    """The work goes on without us (a node is at it, this process ends): the job stays as it is, without an owner.

    Whoever finds it abandoned finishes it.
    """


@dataclass
class Job:
    """One piece of long work as its file has it. Times are ISO 8601 with offset."""

    id: str
    kind: str
    """What is done, in the words of the audit (`worker.disk.create`)."""
    by: str
    """Who asked for it."""
    about: dict[str, Any] = field(default_factory=dict)
    """What it is about, for people and for the recovery after a crash; never a secret."""
    key: str | None = None
    """Two requests with the same key are the same work: the second gets the first's job while that runs."""
    state: str = QUEUED
    unit: str = ITEMS
    done: int = 0
    total: int | None = None
    created: str = ""
    started: str | None = None
    ended: str | None = None
    result: Any = None
    error: dict[str, Any] | None = None
    """`{"status": <HTTP status>, "detail": ...}` of a job that failed."""

    def public(self) -> dict[str, Any]:
        """The job as `GET /jobs/<id>` shows it."""
        shown = dataclasses.asdict(self)
        del shown["key"]
        return shown


def now() -> str:
    """The present time as all our files write it."""
    return datetime.now().astimezone().isoformat(timespec="milliseconds")


class JobStore:
    """The jobs of one folder. Several processes may use it; each job has one owner, told by a flock that dies with it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        #: Names of files whose jobs have ended, which no job leaves again: not read anew at each look.
        self._ended: set[str] = set()

    # -- reading -----------------------------------------------------------

    def get(self, job_id: str) -> Job:
        """The job of that id, or NotFound."""
        job = self._read(self._path(job_id)) if _ID.fullmatch(job_id) else None
        if job is None:
            raise NotFound(
                said("there is no job {job}.", job=repr(job_id)), code="job.missing"
            )
        return job

    def all(self) -> list[Job]:
        """Every job, newest first; a file that is no job is passed over."""
        found = [job for path in self._files() if (job := self._read(path))]
        return sorted(found, key=lambda job: (job.created, job.id), reverse=True)

    def since(self, moment: datetime) -> list[Job]:
        """Those made since then (local time), newest first; the names tell, so older ones are not read."""
        first = f"{moment:%Y%m%d-%H%M%S}"
        recent = [path for path in self._files() if path.name >= first]
        found = [job for path in recent if (job := self._read(path))]
        return sorted(found, key=lambda job: (job.created, job.id), reverse=True)

    def unfinished(self) -> list[Job]:
        """Those that have not ended, whether or not their owner lives, newest first; cheap when there are none."""
        paths = self._files()
        self._ended &= {path.name for path in paths}
        found = []
        for path in paths:
            if path.name in self._ended or (job := self._read(path)) is None:
                continue
            if job.state in ENDED:
                self._ended.add(path.name)
            else:
                found.append(job)
        return sorted(found, key=lambda job: (job.created, job.id), reverse=True)

    def find_running(self, key: str) -> Job | None:
        """The unfinished job of that key, if there is one."""
        return next((job for job in self.unfinished() if job.key == key), None)

    # -- owning ------------------------------------------------------------

    @contextlib.contextmanager
    def new(
        self,
        kind: str,
        *,
        by: str,
        about: dict[str, Any] | None = None,
        key: str | None = None,
        unit: str = ITEMS,
        total: int | None = None,
    ) -> Iterator[Running]:
        """A new job that the block owns. Its file is written before the block begins, or the block does not (Unavailable)."""
        with self.later(
            kind, by=by, about=about, key=key, unit=unit, total=total
        ) as running:
            if not running.show():
                raise Unavailable(
                    said(
                        "{folder} takes no file, so nothing was begun; look at the disk.",
                        folder=self.folder,
                    ),
                    code="job.write",
                )
            yield running

    @contextlib.contextmanager
    def later(
        self,
        kind: str,
        *,
        by: str,
        about: dict[str, Any] | None = None,
        key: str | None = None,
        unit: str = ITEMS,
        total: int | None = None,
    ) -> Iterator[Running]:
        """As `new`, but nothing is on file before `show()`: for work that is usually over at once."""
        moment = datetime.now()
        job = Job(
            id=f"{moment:%Y%m%d-%H%M%S}-{secrets.token_hex(4)}",
            kind=kind,
            by=by,
            about=dict(about or {}),
            key=key,
            unit=unit,
            total=total,
            created=now(),
        )
        with contextlib.ExitStack() as held:
            yield Running(self, job, held=held)

    @contextlib.contextmanager
    def own(self, job: Job) -> Iterator[Running | None]:
        """The job for the length of the block; None when its owner lives."""
        with claim(self.folder, job.id) as mine:
            yield Running(self, job) if mine else None

    def abandoned(self) -> Iterator[Running]:
        """Each unfinished job whose owner is gone, owned by the caller while it looks at it."""
        for job in self.unfinished():
            with self.own(job) as running:
                if running is None:
                    continue
                fresh = self._read(self._path(job.id))
                if fresh is not None and fresh.state not in ENDED:
                    running.job = fresh
                    yield running

    def cancel(self, job_id: str) -> Job:
        """Ask the owner to stop, whichever process it is in; nothing happens to a job that has ended."""
        job = self.get(job_id)
        if job.state not in ENDED:
            self._wish(job_id).touch(mode=_MODE)
            if (job := self.get(job_id)).state in ENDED:  # just now
                self.forget_wish(job_id)
        return job

    def prune(self, *, keep: int = 500) -> None:
        """Remove the oldest jobs that have ended, beyond `keep`, and the drafts and wishes that a kill left."""
        self._sweep()
        if len(self._files()) <= keep:
            return
        ended = [job for job in self.all() if job.state in ENDED]
        for job in ended[keep:]:
            self._path(job.id).unlink(missing_ok=True)
            self.forget_wish(job.id)

    # -- inside ------------------------------------------------------------

    def _sweep(self) -> None:
        old = time.time() - _STALE
        for pattern in (".*.tmp", "*.cancel"):
            for path in self.folder.glob(pattern):
                with contextlib.suppress(FileNotFoundError):
                    alone = not path.with_suffix(".json").exists()
                    if alone and path.stat().st_mtime < old:
                        path.unlink()

    def _files(self) -> list[Path]:
        try:
            return [
                path
                for path in self.folder.iterdir()
                if _ID.fullmatch(path.stem) and path.suffix == ".json"
            ]
        except FileNotFoundError:
            return []

    def _path(self, job_id: str) -> Path:
        return self.folder / f"{job_id}.json"

    def _wish(self, job_id: str) -> Path:
        return self.folder / f"{job_id}.cancel"

    def wished(self, job_id: str) -> bool:
        """Whether somebody has asked for the end of a job."""
        try:
            return self._wish(job_id).exists()
        except OSError:  # a disk that cannot say so ends no work
            return False

    def _read(self, path: Path) -> Job | None:
        try:
            data = json.loads(read_regular(path))
            known = {each.name for each in dataclasses.fields(Job)}
            job = Job(**{name: value for name, value in data.items() if name in known})
        except (OSError, ValueError, TypeError, AttributeError, RecursionError):
            return None
        return job if job.id == path.stem and _is_sound(job) else None

    def write(self, job: Job, *, durable: bool) -> None:
        """Replace the job's file; progress need not survive a power cut, an end must."""
        content = json.dumps(dataclasses.asdict(job), ensure_ascii=False, indent=1)
        raw = content.encode("utf-8", "surrogateescape") + b"\n"
        path = self._path(job.id)
        if durable:
            atomic.write_replace(path, raw, _MODE)
            return
        draft = atomic.temporary_for(path)
        draft.touch(_MODE)
        draft.write_bytes(raw)
        draft.replace(path)

    def forget_wish(self, job_id: str) -> None:
        """The job has ended: nobody needs to ask any more."""
        self._wish(job_id).unlink(missing_ok=True)


def _is_sound(job: Job) -> bool:
    """Whether every field is of its kind: a file that somebody edited must stop nobody who reads the others."""
    counts = (job.done, 0 if job.total is None else job.total)
    texts = (job.kind, job.by, job.created, job.key or "", job.unit)
    try:
        for moment in (job.created, job.started, job.ended):
            if moment is not None and datetime.fromisoformat(moment).tzinfo is None:
                return False
    except (ValueError, TypeError):
        return False
    return (
        all(isinstance(text, str) for text in texts)
        and all(type(count) is int for count in counts)
        and isinstance(job.state, str)
        and job.state in STATES
        and isinstance(job.about, dict)
        and (job.error is None or isinstance(job.error, dict))
    )


class Running:
    """A job in the hands of its owner. Safe to call from the threads of the work.

    A disk that takes no file never stops the work: the job goes on and ends, and what could not
    be written down is in the log (and in `unwritten`, for an owner that can tell it otherwise).
    """

    def __init__(
        self, store: JobStore, job: Job, *, held: contextlib.ExitStack | None = None
    ) -> None:
        self._store = store
        self.job = job
        self.shown = held is None
        """Whether the job is on file."""
        self.unwritten = False
        """The file does not say what the job is now."""
        self._held = held
        self._guard = threading.RLock()
        self._saved = 0.0
        self._wished = False

    def show(self) -> bool:
        """Put the job on file, where it was none of `later`; whether the file says what the job is."""
        with self._guard:
            if not self.shown:
                self.shown = True
                try:
                    if self._held is not None:
                        self._held.enter_context(claim(self._store.folder, self.job.id))
                except Unavailable as error:
                    self._not_written(error)
                    return False
                self.save()
            return not self.unwritten

    def save(self) -> None:
        """Write the file, durably."""
        with self._guard:
            self._write(durable=True)

    def start(self) -> None:
        """The work begins."""
        self.job.state, self.job.started = RUNNING, self.job.started or now()
        self.save()

    def queue(self) -> None:
        """The work waits for its turn."""
        self.job.state = QUEUED
        self.save()

    def wish(self) -> None:
        """Ask for the end, from this process."""
        self._wished = True

    def note(self, **about: Any) -> None:
        """Write down more of what the job is about, durably: what its recovery after a crash needs to know."""
        with self._guard:
            self.job.about = {**self.job.about, **about}
            self._write(durable=True)

    def step(self, count: int = 1) -> None:
        """`count` more of the job's unit are done; raises Cancelled when somebody asked for the end."""
        self.at(self.job.done + count)

    def at(self, done: int, total: int | None = None) -> None:
        """So much is done; raises Cancelled when somebody asked for the end."""
        with self._guard:
            self.job.done = done
            if total is not None:
                self.job.total = total
            moment = time.monotonic()
            if moment - self._saved >= _PERIOD:
                self._saved = moment
                self._write(durable=False)
            elif not self._wished:
                return
        self.check()

    def check(self) -> None:
        """Raise Cancelled when somebody asked for the end."""
        if self.cancelled():
            raise Cancelled(said("job {job} was cancelled.", job=self.job.id))

    def cancelled(self) -> bool:
        """Whether somebody asked for the end."""
        return self._wished or (self.shown and self._store.wished(self.job.id))

    def finish(self, result: Any) -> None:
        """The work is done, with that result."""
        self.job.result = result
        if self.job.unit == BYTES and self.job.total is not None:
            self.job.done = self.job.total  # what came after the last look at a copy
        self._end(DONE)

    def fail(self, *, status: int, detail: Any) -> None:
        """The work has failed, as an answer of the API would say it."""
        self.job.error = {"status": status, "detail": detail}
        self._end(FAILED)

    def cancel(self, detail: Any, result: Any = None) -> None:
        """The work was given up on somebody's wish; `result` is what was done of it nevertheless."""
        self.job.result = result
        self.job.error = {"status": Cancelled.status, "detail": detail}
        self._end(CANCELLED)

    def run(self, work: Callable[[Running], Any]) -> None:
        """Do the work and write down how it ended; a bug is a failure too, and is raised again for the log.

        Work that raises LeftOpen goes on elsewhere: the job is not ended.
        """
        self.start()
        try:
            result = work(self)
        except LeftOpen:
            self.save()
        except Cancelled as error:
            self.cancel(error.detail(), error.extra.get("result"))
        except ApplicationError as error:
            self.fail(status=error.status, detail=error.detail())
        except BaseException as error:
            self.fail(
                status=500,
                detail=said("internal error: {name}", name=type(error).__name__),
            )
            raise
        else:
            self.finish(result)

    def _end(self, state: str) -> None:
        with self._guard:
            self.job.state, self.job.ended = state, now()
            self._write(durable=True)
            if self.shown:
                self._store.forget_wish(self.job.id)

    def _write(self, *, durable: bool) -> None:
        if not self.shown:
            return
        try:
            self._store.write(self.job, durable=durable)
            self.unwritten = False
        except OSError as error:
            self._not_written(error)

    def _not_written(self, error: Exception) -> None:
        if not self.unwritten:
            logger.error("job %s cannot be written down: %s", self.job.id, error)
        self.unwritten = True
