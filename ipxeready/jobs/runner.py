"""The jobs of this process: some at once in threads of their own, the others wait their turn."""

from __future__ import annotations

import logging
import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from django.db import connections

from ipxeready import index
from ipxeready.ending import ending
from ipxeready.errors import Unavailable
from ipxeready.jobs.watch import JobWatch, Watch
from ipxeready.said import said
from ipxeready.storage.jobs import Running

log = logging.getLogger(__name__)

#: At once in one process: nearly all of it is waiting for nodes, so that one that is slow holds up few others.
AT_ONCE = 16
#: Each holds an open file while it waits.
MOST_WAITING = 200
#: Seconds between two looks whether somebody cancels what still waits.
_PERIOD = 0.5


@dataclass
class Task:
    """One job and the work that it is; `held` is let go of at the end, and with it the job's ownership."""

    running: Running
    work: Callable[[Watch], Any]
    held: ExitStack

    @property
    def by(self) -> str:
        """Who asked for it."""
        return self.running.job.by

    def run(self) -> None:
        """Do it and write down how it ended."""
        try:
            with self.held:
                # As every request: what was edited by hand since counts.
                self.running.run(self._do)
        except Exception:
            log.exception("job %s failed", self.running.job.id)

    def _do(self, running: Running) -> Any:
        running.check()
        index.ensure_fresh(wait=True)
        return self.work(JobWatch(running))

    def drop(self) -> None:
        """End it before its turn."""
        with self.held:
            self.running.cancel(said("cancelled before its turn: nothing was done"))


class Runner:
    """The queue of one process."""

    def __init__(self) -> None:
        self._guard = threading.Condition()
        self._waiting: list[Task] = []
        self._active: list[Task] = []
        self._threads = 0
        self._looking = False

    def check_room(self) -> None:
        """Unavailable when too many jobs wait already."""
        with self._guard:
            if len(self._waiting) >= MOST_WAITING:
                raise Unavailable(
                    said(
                        "{most} jobs wait for their turn already; try again when some have ended",
                        most=MOST_WAITING,
                    ),
                    retry_after=30,
                    code="job.queue",
                )

    def submit(self, task: Task) -> None:
        """Run it as soon as there is a place."""
        with self._guard:
            self._waiting.append(task)
            if self._threads < AT_ONCE:
                self._threads += 1
                # No daemon: the process ends once each has come to a point where it can be left.
                threading.Thread(target=self._serve, name="job").start()
            elif not self._looking:
                self._looking = True
                threading.Thread(target=self._look, name="job-queue").start()

    def idle(self, seconds: float) -> bool:
        """Wait until nothing is under way (for tests); False when that took too long."""
        with self._guard:
            return self._guard.wait_for(lambda: not self._threads, seconds)

    def _serve(self) -> None:
        try:
            while (task := self._next()) is not None:
                try:
                    task.run()
                finally:
                    with self._guard:
                        self._active.remove(task)
        finally:
            connections.close_all()
            with self._guard:
                self._threads -= 1
                self._guard.notify_all()

    def _next(self) -> Task | None:
        """The oldest of whoever has the fewest under way: many jobs of one do not hold up the one of another."""
        with self._guard:
            if not self._waiting or ending():
                self._let_go()
                return None
            busy = Counter(task.by for task in self._active)
            task = min(self._waiting, key=lambda each: busy[each.by])
            self._waiting.remove(task)
            self._active.append(task)
            return task

    def _let_go(self) -> None:
        """This process ends: what waits is left without an owner, for the next one to tell so."""
        for task in self._waiting:
            task.held.close()
        self._waiting.clear()

    def _look(self) -> None:
        """While something waits: drop what is cancelled, whichever process was asked."""
        while True:
            time.sleep(_PERIOD)
            with self._guard:
                if ending():
                    self._let_go()
                dropped = [task for task in self._waiting if task.running.cancelled()]
                for task in dropped:
                    self._waiting.remove(task)
                if not self._waiting:
                    self._looking = False
            for task in dropped:
                task.drop()
            if not self._looking:
                return


_guard = threading.Lock()
_runner: tuple[int, Runner] | None = None


def runner() -> Runner:
    """The one of this process (a fork gets its own)."""
    global _runner
    with _guard:
        if _runner is None or _runner[0] != os.getpid():
            _runner = (os.getpid(), Runner())
        return _runner[1]
