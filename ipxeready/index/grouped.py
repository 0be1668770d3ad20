"""Requests that wait for the lock are served together: one write, one reload, each with its own answer."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

from ipxeready.actors import Actor
from ipxeready.index.writer import Transaction, writing

Item = TypeVar("Item")
Result = TypeVar("Result")


class Grouped(Generic[Item, Result]):
    """Collects items while the lock is waited for; the one who gets it serves all of them in one write.

    `handle(tx, items)` returns a result or an exception for each item, in order.
    """

    def __init__(
        self,
        op: str,
        handle: Callable[[Transaction, list[Item]], list[Result | Exception]],
    ) -> None:
        self._op = op
        self._handle = handle
        self._leading = threading.Lock()
        self._guard = threading.Lock()
        self._waiting: list[tuple[Item, Future[Result]]] = []

    def submit(self, actor: Actor, item: Item) -> Result:
        """The result for `item`, once its write is on disk."""
        mine: Future[Result] = Future()
        with self._guard:
            self._waiting.append((item, mine))
        with self._leading:
            if not mine.done():
                self._lead(actor)
        return mine.result()

    def _lead(self, actor: Actor) -> None:
        taken: list[tuple[Item, Future[Result]]] = []
        try:
            with writing(actor=actor, op=self._op) as tx:
                taken = self._take()
                results = self._handle(tx, [item for item, _ in taken])
                answers = list(zip(taken, results, strict=True))
        except BaseException as error:
            # Each waiting request gets it; nobody may wait for ever.
            for _, future in taken or self._take():
                future.set_exception(error)
            if not isinstance(error, Exception):
                raise
            return
        for (_, future), result in answers:
            if isinstance(result, Exception):
                future.set_exception(result)
            else:
                future.set_result(result)

    def _take(self) -> list[tuple[Item, Future[Result]]]:
        with self._guard:
            taken, self._waiting = self._waiting, []
        return taken
