"""operations.jsonl: a line becomes a row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from audit.models import Operation
from ipxeready.index.journal import JournalSource, parse_time
from ipxeready.storage.paths import Layout

#: The fields that are text in a row, and how much of it.
LENGTHS = {
    "op": 64,
    "status": 16,
    "worker_id": 255,
    "agent": 255,
    "user": 255,
    "client": 255,
}


class OperationsJournal(JournalSource):
    """The audit trail."""

    name = "operations"
    model = Operation

    def path(self, layout: Layout) -> Path:
        """state/operations.jsonl."""
        return layout.operations

    def row(self, number: int, data: dict[str, Any]) -> Operation:
        """The row of one line; a field of another type is shown as text."""
        return Operation(
            id=number,
            ts=parse_time(data.get("ts")),
            data=data,
            **{name: text_of(data, name) for name in LENGTHS},
        )


def text_of(data: dict[str, Any], name: str) -> str:
    """A field of a line as the row has it."""
    value = data.get(name)
    return "" if value is None else str(value)[: LENGTHS[name]]
