"""What long work tells while it goes on, and what it is told: nobody may be watching, a job may, a bar may."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import Any

from ipxeready.ending import ending
from ipxeready.errors import Conflict
from ipxeready.said import said
from ipxeready.storage.jobs import Cancelled, LeftOpen, Running

#: Told of each step: how much is done, and of how much if that is known.
Progress = Callable[[int, int | None], None]


class Watch:
    """Nobody watches: the caller waits for the answer. Safe to call from the threads of the work; never raises."""

    def at(self, done: int, total: int | None = None) -> None:
        """So much is done."""

    def unit(self, name: str) -> None:
        """What is counted: bytes or items."""

    def note(self, **about: Any) -> None:
        """What a recovery after a crash needs to know."""

    def cancelled(self) -> bool:
        """Whether somebody asked for the end."""
        return False

    @property
    def may_leave(self) -> bool:
        """Whether work that goes on elsewhere may be left there (LeftOpen): the keeper ends its job then."""
        return False

    def leaving(self) -> bool:
        """Whether it should be left there now."""
        return self.may_leave and ending()


#: Nobody watches.
NOBODY = Watch()


class JobWatch(Watch):
    """A job is told, and a bar too where there is one: then a command waits for all of it."""

    def __init__(self, running: Running, draw: Progress | None = None) -> None:
        self._running = running
        self._draw = draw
        self._waited_for = draw is not None
        self._guard = threading.Lock()

    def at(self, done: int, total: int | None = None) -> None:
        """Into the job's file, now and then."""
        # Whoever asked for the end is answered where the work can stop, not here.
        with contextlib.suppress(Cancelled):
            self._running.at(done, total)
        if self._draw is not None:
            with self._guard:
                self._draw(done, self._running.job.total)

    def unit(self, name: str) -> None:
        """What is counted."""
        self._running.job.unit = name

    def note(self, **about: Any) -> None:
        """Into the job's file, durably."""
        self._running.note(**about)

    def cancelled(self) -> bool:
        """Whether somebody asked for the end, in whichever process."""
        return self._running.cancelled()

    @property
    def may_leave(self) -> bool:
        """Where nobody waits for it."""
        return not self._waited_for


def cancelled_with(result: Any, left: int) -> Cancelled:
    """The end of work that was cancelled with parts of it not begun; `result` tells of all of them."""
    return Cancelled(
        said("cancelled: {left} not tried", left=left), extra={"result": result}
    )


def cancelled_before() -> Conflict:
    """What is said of a part that was not begun when its job was cancelled."""
    return Conflict(
        said("cancelled: not tried"), code=Cancelled.default_code, extra={"sent": False}
    )


__all__ = [
    "NOBODY",
    "JobWatch",
    "LeftOpen",
    "Progress",
    "Watch",
    "cancelled_before",
    "cancelled_with",
]
