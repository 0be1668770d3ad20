"""Jobs on file: one JSON object each, so that work that outlives its caller can be found, read and ended after a crash."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

from ipxeready.errors import ApplicationError, NotFound
from ipxeready.storage import atomic
from ipxeready.storage.inflight import claim

QUEUED = "queued"
RUNNING = "running"
DONE = "done"
FAILED = "failed"
CANCELLED = "cancelled"
#: States that nothing leads out of.
ENDED = frozenset({DONE, FAILED, CANCELLED})

BYTES = "bytes"
ITEMS = "items"

#: Progress is written at most so often (seconds): a copy reports a hundred times a second.
_PERIOD = 0.5
_ID = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{8}")
_MODE = 0o600


class Cancelled(ApplicationError):
    """The job was cancelled by a person (409): raised inside the work, which then cleans up."""

    status = 409
    default_code = "job.cancelled"


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

    # -- reading -----------------------------------------------------------

    def get(self, job_id: str) -> Job:
        """The job of that id, or NotFound."""
        job = self._read(self._path(job_id)) if _ID.fullmatch(job_id) else None
        if job is None:
            raise NotFound(f"there is no job {job_id!r}.", code="job.missing")
        return job

    def all(self) -> list[Job]:
        """Every job, newest first; a file that is no job is passed over."""
        found = [job for path in self._files() if (job := self._read(path))]
        return sorted(found, key=lambda job: (job.created, job.id), reverse=True)

    def unfinished(self) -> list[Job]:
        """Those that have not ended, whether or not their owner lives."""
        return [job for job in self.all() if job.state not in ENDED]

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
        """A new job that the block owns. Its file is written before the block begins."""
        stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
        job = Job(
            id=f"{stamp}-{secrets.token_hex(4)}",
            kind=kind,
            by=by,
            about=dict(about or {}),
            key=key,
            unit=unit,
            total=total,
            created=now(),
        )
        with self.own(job) as running:
            assert running is not None, job.id  # noqa: S101 - the id is new
            running.save()
            yield running

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
        return job

    def prune(self, *, keep: int = 500) -> None:
        """Remove the oldest jobs that have ended, beyond `keep`."""
        ended = [job for job in self.all() if job.state in ENDED]
        for job in ended[keep:]:
            self._path(job.id).unlink(missing_ok=True)

    # -- inside ------------------------------------------------------------

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
        return self._wish(job_id).exists()

    def _read(self, path: Path) -> Job | None:
        try:
            data = json.loads(path.read_bytes())
            known = {each.name for each in dataclasses.fields(Job)}
            return Job(**{name: value for name, value in data.items() if name in known})
        except (OSError, ValueError, TypeError, AttributeError):
            return None

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


class Running:
    """A job in the hands of its owner. Safe to call from the threads of the work."""

    def __init__(self, store: JobStore, job: Job) -> None:
        self._store = store
        self.job = job
        self._guard = threading.Lock()
        self._saved = 0.0

    def save(self) -> None:
        """Write the file, durably."""
        with self._guard:
            self._store.write(self.job, durable=True)

    def start(self) -> None:
        """The work begins."""
        self.job.state, self.job.started = RUNNING, now()
        self.save()

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
            if moment - self._saved < _PERIOD:
                return
            self._saved = moment
            self._store.write(self.job, durable=False)
        self.check()

    def check(self) -> None:
        """Raise Cancelled when somebody asked for the end."""
        if self.cancelled():
            raise Cancelled(f"job {self.job.id} was cancelled.")

    def cancelled(self) -> bool:
        """Whether somebody asked for the end."""
        return self._store.wished(self.job.id)

    def finish(self, result: Any) -> None:
        """The work is done, with that result."""
        self.job.result = result
        self._end(DONE)

    def fail(self, *, status: int, detail: Any) -> None:
        """The work has failed, as an answer of the API would say it."""
        self.job.error = {"status": status, "detail": detail}
        self._end(FAILED)

    def cancel(self, detail: Any) -> None:
        """The work was given up on somebody's wish."""
        self.job.error = {"status": Cancelled.status, "detail": detail}
        self._end(CANCELLED)

    def run(self, work: Callable[[Running], Any]) -> None:
        """Do the work and write down how it ended; a bug is a failure too, and is raised again for the log."""
        self.start()
        try:
            result = work(self)
        except Cancelled as error:
            self.cancel(error.detail())
        except ApplicationError as error:
            self.fail(status=error.status, detail=error.detail())
        except BaseException as error:
            self.fail(status=500, detail=f"internal error: {type(error).__name__}")
            raise
        else:
            self.finish(result)

    def _end(self, state: str) -> None:
        self.job.state, self.job.ended = state, now()
        self.save()
        self._store.forget_wish(self.job.id)
