"""operations.jsonl: a line becomes a row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from audit.models import Operation
from ipxeready.index.journal import JournalSource, parse_time
from ipxeready.storage.paths import Layout


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
            op=_text(data, "op", 64),
            status=_text(data, "status", 16),
            worker_id=_text(data, "worker_id", 255),
            agent=_text(data, "agent", 255),
            client=_text(data, "client", 255),
            data=data,
        )


def _text(data: dict[str, Any], key: str, longest: int) -> str:
    value = data.get(key)
    return "" if value is None else str(value)[:longest]
