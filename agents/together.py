"""Many nodes asked side by side: one that is slow or dead costs its own answer only."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import TypeVar

from django.conf import settings

from agents.calls import unreachable
from agents.models import Agent
from ipxeready.errors import ApplicationError
from ipxeready.said import said

T = TypeVar("T")

#: Threads of a process for this. Each call has a time limit of its own, so none is stuck for ever.
THREADS = 64
#: Calls under way to one node: more wait here, so that a node that hangs cannot use up the threads.
PER_NODE = 4
#: Seconds that a caller waits for its turn at a busy node.
TURN = 1.0
#: Seconds that people wait for a node before they are told without it.
PATIENCE = 4.0

_guard = threading.Lock()
_pool: tuple[int, ThreadPoolExecutor] | None = None
_turns: dict[tuple[str, str], threading.BoundedSemaphore] = {}


def patience() -> float:
    """Seconds for a quick question behind which people wait."""
    return min(PATIENCE, float(settings.IPXE.agent_timeout))


def _executor() -> ThreadPoolExecutor:
    """The pool of this process (a fork gets its own)."""
    global _pool, _turns
    with _guard:
        if _pool is None or _pool[0] != os.getpid():
            _pool = (os.getpid(), ThreadPoolExecutor(THREADS, "nodes"))
            _turns = {}
        return _pool[1]


def _turn(agent: Agent) -> threading.BoundedSemaphore:
    with _guard:
        return _turns.setdefault(
            (agent.id, agent.base_url), threading.BoundedSemaphore(PER_NODE)
        )


def ask_all(
    agents: Iterable[Agent], fn: Callable[[Agent], T], timeout: float
) -> dict[str, T | ApplicationError]:
    """`fn(agent)` of every node by id, or the error; nobody is waited for longer than `timeout` seconds.

    `fn` runs in another thread: it must not use the database. The results keep the order of `agents`.
    """
    nodes = list(agents)
    pool = _executor()
    deadline = time.monotonic() + timeout
    results: dict[str, T | ApplicationError] = {}
    asked: dict[str, tuple[Future[T], threading.BoundedSemaphore]] = {}

    def begin(agent: Agent, patience: float) -> bool:
        turn = _turn(agent)
        if not turn.acquire(timeout=max(patience, 0)):
            return False
        asked[agent.id] = pool.submit(_ask, agent, fn, turn), turn
        return True

    # Nobody waits behind a busy node: those come last.
    busy = [agent for agent in nodes if not begin(agent, 0)]
    turn_until = time.monotonic() + min(TURN, timeout / 2)
    for agent in busy:
        if not begin(agent, turn_until - time.monotonic()):
            results[agent.id] = unreachable(
                agent, "earlier calls to it still wait for an answer"
            )
    futures = [future for future, _ in asked.values()]
    wait(futures, timeout=max(deadline - time.monotonic(), 0))
    for agent in nodes:
        if agent.id in asked:
            future, turn = asked[agent.id]
            outcome = _outcome(agent, future, turn, timeout)
            results[agent.id] = outcome
    return {agent.id: results[agent.id] for agent in nodes}


def _ask(agent: Agent, fn: Callable[[Agent], T], turn: threading.BoundedSemaphore) -> T:
    try:
        return fn(agent)
    finally:
        turn.release()


def _outcome(
    agent: Agent, future: Future[T], turn: threading.BoundedSemaphore, timeout: float
) -> T | ApplicationError:
    if future.cancel():  # it never began
        turn.release()
    if future.cancelled() or not future.done():
        words = said("no answer within {seconds} s", seconds=f"{timeout:g}")
        return unreachable(agent, words, sent=True)
    try:
        return future.result()
    except ApplicationError as error:
        return error
