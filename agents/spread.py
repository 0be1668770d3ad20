"""Many jobs for many nodes: side by side across nodes, a few at a time on each, and a node that dies costs one time limit."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Generic, TypeVar, cast

from agents.calls import unreachable
from agents.client import NodeClient
from agents.models import Agent
from ipxeready.ending import NOT_TRIED
from ipxeready.errors import ApplicationError, Unavailable
from ipxeready.said import said

Job = TypeVar("Job")
Result = TypeVar("Result")

#: A node does one export at a time anyway; the second job keeps it busy meanwhile.
PER_NODE = 2
#: Threads for one call of `spread`.
THREADS = 16


class _Node(Generic[Job]):
    """What one node still has to do."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.waiting: deque[tuple[int, Job]] = deque()
        self.gone: ApplicationError | None = None
        self.guard = threading.Lock()

    def next(self) -> tuple[int, Job] | None:
        with self.guard:
            return self.waiting.popleft() if self.waiting else None


def spread(
    jobs: Iterable[tuple[Agent, Job]],
    fn: Callable[[Agent, Job], Result],
    progress: Callable[[], None] | None = None,
) -> list[Result | ApplicationError]:
    """`fn(agent, job)` of each job, or its error, in the order of `jobs`.

    `fn` runs in other threads: it must not use the database, and neither must `progress`, which is
    called after each job. A job that finds its node unreachable is believed when the node's health
    says the same; what still waits for that node is not tried then.
    """
    nodes: dict[str, _Node[Job]] = {}
    count = 0
    for count, (agent, job) in enumerate(jobs, start=1):
        nodes.setdefault(agent.id, _Node(agent)).waiting.append((count - 1, job))
    results: list[Result | ApplicationError | None] = [None] * count

    def run(node: _Node[Job]) -> None:
        while (taken := node.next()) is not None:
            at, job = taken
            results[at] = _one(node, job, fn)
            if progress is not None:
                progress()

    runners = [
        node for node in nodes.values() for _ in range(min(PER_NODE, len(node.waiting)))
    ]
    if runners:
        with ThreadPoolExecutor(min(THREADS, len(runners)), "spread") as pool:
            for future in [pool.submit(run, node) for node in runners]:
                future.result()
    return cast(list[Result | ApplicationError], results)


def _one(
    node: _Node[Job], job: Job, fn: Callable[[Agent, Job], Result]
) -> Result | ApplicationError:
    if node.gone is not None:
        return unreachable(
            node.agent, said("it did not answer an earlier item, so this was not tried")
        )
    try:
        return fn(node.agent, job)
    except Unavailable as error:
        if error.code == NOT_TRIED:
            return error
        if node.gone is None and not _lives(node.agent):
            node.gone = error
        return error
    except ApplicationError as error:
        return error


def _lives(agent: Agent) -> bool:
    try:
        NodeClient(agent).health()
    except ApplicationError:
        return False
    return True


def interleaved(items: Sequence[Job], key: Callable[[Job], str]) -> list[Job]:
    """The items with those of each key taken in turn: a slice of them keeps all nodes busy."""
    queues: dict[str, deque[Job]] = {}
    for item in items:
        queues.setdefault(key(item), deque()).append(item)
    mixed = []
    while queues:
        for name in list(queues):
            mixed.append(queues[name].popleft())
            if not queues[name]:
                del queues[name]
    return mixed
