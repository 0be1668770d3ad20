"""Turns for heavy work: so many at a time, the others in the order in which they came."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

#: Who waits looks this often (seconds) whether it still should.
_LOOK = 0.5


class Turns:
    """A limited number of places at the disk."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._queue: deque[object] = deque()
        self._changed = threading.Condition()

    def take(self, *, waits: Callable[[], None], check: Callable[[], None]) -> None:
        """Have a place, to be given back with `give`.

        Where none is free `waits` is called once, and then `check` again and again: what it raises
        ends the waiting.
        """
        ticket = object()
        with self._changed:
            if self._free and not self._queue:
                self._free -= 1
                return
            self._queue.append(ticket)
        try:
            waits()
            while not self._called(ticket):
                check()
        except BaseException:
            with self._changed:
                self._queue.remove(ticket)
                self._changed.notify_all()
            raise

    def _called(self, ticket: object) -> bool:
        with self._changed:
            if self._free and self._queue[0] is ticket:
                self._queue.popleft()
                self._free -= 1
                # There may be a place for the next one, too.
                self._changed.notify_all()
                return True
            self._changed.wait(_LOOK)
            return False

    def give(self) -> None:
        """Give a place back."""
        with self._changed:
            self._free += 1
            self._changed.notify_all()

    def wake(self) -> None:
        """Have all who wait look now."""
        with self._changed:
            self._changed.notify_all()
