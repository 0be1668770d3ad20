"""Calls into the kernel that may never come back: each in a thread of its own, given up after a time limit."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

from ipxeready.errors import Unavailable
from ipxeready.said import said

#: A login that is under way may hold up a change for the 15 s that the kernel gives it.
TIMEOUT = 30.0

T = TypeVar("T")
_here = threading.local()


class GivenUp(BaseException):
    """Ends, at its next step, a call whose caller has stopped waiting; no `except Exception` keeps it alive."""


class _Call(Generic[T]):
    """One call, its thread and what came of it."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self.given_up = False
        self.result: list[T] = []
        self.error: BaseException | None = None
        self.thread = threading.Thread(target=self._run, name="lio", daemon=True)

    def _run(self) -> None:
        _here.call = self
        try:
            self.result.append(self._work())
        except BaseException as error:  # noqa: BLE001 - it goes to the caller
            self.error = error


class Limited:
    """Runs calls, several at a time, until one of them hangs: then the others fail at once instead of piling up."""

    def __init__(self, what: str, code: str) -> None:
        self._what = what
        self._code = code
        self._guard = threading.Lock()
        self._stuck: list[threading.Thread] = []

    def run(self, work: Callable[[], T]) -> T:
        """What `work` returns or raises; Unavailable when it, or one before it, does not come back."""
        with self._guard:
            self._stuck = [thread for thread in self._stuck if thread.is_alive()]
            if self._stuck:
                raise Unavailable(
                    said(
                        "{what} still holds a call that did not come back; look at the disks and the "
                        "kernel's log of this node.",
                        what=self._what,
                    ),
                    code=self._code,
                )
        call = _Call(work)
        call.thread.start()
        call.thread.join(TIMEOUT)
        if call.thread.is_alive():
            call.given_up = True
            with self._guard:
                self._stuck.append(call.thread)
            raise Unavailable(
                said(
                    "{what} did not answer within {seconds} s; look at the disks and the kernel's log of "
                    "this node.",
                    what=self._what,
                    seconds=f"{TIMEOUT:g}",
                ),
                code=self._code,
            )
        if call.error is not None:
            raise call.error
        return call.result[0]


def checkpoint() -> None:
    """Before each step of a call: go no further when nobody waits for it any more."""
    call = getattr(_here, "call", None)
    if call is not None and call.given_up:
        raise GivenUp
