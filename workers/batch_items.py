"""The items of a batch: what was asked for, what became of each, and the answer in the request's order."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agents.models import Agent
from agents.nodes import words_of
from agents.protocol.access import Chap
from ipxeready.ending import ending, not_tried
from ipxeready.errors import ApplicationError, Invalid
from ipxeready.jobs.watch import Watch, cancelled_before, cancelled_with
from ipxeready.said import joined, said
from workers.validators import check_id, check_worker_id

#: Items of one request.
MOST = 10_000


@dataclass
class Item:
    """One worker of the batch and what became of it."""

    worker_id: str
    agent_id: str
    disk: dict[str, Any] = field(default_factory=dict)
    chap: Chap | None = field(default=None, repr=False)
    agent: Agent | None = None
    made: str | None = None
    how: dict[str, Any] = field(default_factory=dict)
    skipped: str | None = None
    error: ApplicationError | None = None

    @property
    def open(self) -> bool:
        """Still to be worked on."""
        return self.skipped is None and self.error is None


def check_number(things: Sequence[Any], field: str) -> None:
    """Refuse an empty batch and one that is too long."""
    if not 1 <= len(things) <= MOST:
        raise Invalid(
            said(
                "must have 1 to {most} entries, not {count}",
                most=MOST,
                count=len(things),
            ),
            field=field,
        )


def item_of(worker_id: str, agent_id: str) -> Item:
    """An item; malformed ids are its own fault."""
    item = Item(worker_id, agent_id)
    try:
        item.worker_id = check_worker_id(worker_id)
        item.agent_id = check_id(agent_id, "agent")
    except ApplicationError as error:
        item.error = error
    return item


def refuse_repeated(items: list[Item]) -> None:
    """A worker that is named again is skipped."""
    seen: set[str] = set()
    for item in items:
        if item.error is None and item.worker_id in seen:
            item.skipped = said(
                "{worker_id} is named earlier in this request",
                worker_id=item.worker_id,
            )
        seen.add(item.worker_id)


@dataclass
class Changed:
    """Which workers were changed, and why others were not, in the order given."""

    succeeded: list[str] = field(default_factory=list)
    failed: list[tuple[str, ApplicationError]] = field(default_factory=list)


def left_alone(watch: Watch) -> ApplicationError | None:
    """Why nothing more of a batch is begun: it was cancelled, or the service is ending."""
    if watch.cancelled():
        return cancelled_before()
    return not_tried() if ending() else None


def answered(answer: dict[str, Any], watch: Watch) -> dict[str, Any]:
    """The answer of a batch; Cancelled with it when that is why something was not tried."""
    words = cancelled_before().message
    left = sum(item["error"] == words for item in answer["failed"])
    if left and watch.cancelled():
        raise cancelled_with(answer, left)
    return answer


class Count:
    """How many items are done; told from the threads of a batch."""

    def __init__(self, watch: Watch, total: int) -> None:
        self._watch = watch
        self._total = total
        self._done = 0
        self._guard = threading.Lock()

    def add(self, number: int = 1) -> None:
        """So many more."""
        if not number:
            return
        with self._guard:
            self._done += number
            self._watch.at(self._done, self._total)


def answer_of(items: list[Item]) -> dict[str, list[dict[str, Any]]]:
    """`{succeeded, skipped, failed}`."""
    answer: dict[str, list[dict[str, Any]]] = {
        "succeeded": [],
        "skipped": [],
        "failed": [],
    }
    for item in items:
        if item.skipped is not None:
            told_item = {"worker_id": item.worker_id, "reason": item.skipped}
            answer["skipped"].append(told_item)
        elif item.error is not None:
            answer["failed"].append(
                {
                    "worker_id": item.worker_id,
                    "agent": item.agent_id,
                    "error": words_for(item.error),
                }
            )
        else:
            answer["succeeded"].append(
                {
                    "worker_id": item.worker_id,
                    "agent": item.agent_id,
                    "iqn": item.disk["iqn"],
                }
            )
    return answer


def words_for(error: ApplicationError) -> str:
    """An error in one line of a list, with the field it is about."""
    words = words_of(error)
    return joined(": ", error.field, words) if error.field else words
