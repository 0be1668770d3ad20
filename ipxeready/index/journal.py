"""The append-only file in the index: numbers given, lines appended, new lines read, torn tails reported."""

from __future__ import annotations

from collections import deque
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import models
from django.utils import timezone

from ipxeready.actors import Actor
from ipxeready.index.models import Problem, SourceFile, check_storable
from ipxeready.storage import jsonl
from ipxeready.storage.broken import RecordBroken
from ipxeready.storage.fingerprint import Fingerprint
from ipxeready.storage.paths import Layout


class JournalSource:
    """An append-only JSONL file whose lines carry a growing `id`."""

    name: str
    model: type[models.Model]
    version = 1
    #: Only the newest lines are indexed; the file keeps all.
    keep = 50_000

    def path(self, layout: Layout) -> Path:
        """Where the file lies."""
        raise NotImplementedError

    def row(self, number: int, data: dict[str, Any]) -> models.Model:
        """The row of one line."""
        raise NotImplementedError


_journal: JournalSource | None = None


def register_journal(source: JournalSource) -> None:
    """Make the audit trail known (once, at start)."""
    global _journal
    _journal = source


def get_journal() -> JournalSource:
    """The registered journal."""
    assert _journal is not None, "no journal is registered"  # noqa: S101
    return _journal


def now() -> str:
    """The present time in the local zone, ISO 8601 with offset, milliseconds."""
    return timezone.localtime().isoformat(timespec="milliseconds")


def entry(actor: Actor, op: str, status: str, fields: dict[str, Any]) -> dict[str, Any]:
    """An audit line without its id."""
    line: dict[str, Any] = {"ts": now(), "op": op, "status": status}
    if actor.client:
        line["client"] = actor.client
    line["user"] = actor.shown
    line.update({key: value for key, value in fields.items() if value is not None})
    return line


def number(layout: Layout, entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Give ids, following the file's last one; the caller holds the state lock."""
    journal = get_journal()
    last = jsonl.last_id(journal.path(layout))
    if not last:
        # A rotated file starts empty; ids that callers have seen must not come again.
        top = journal.model._default_manager.aggregate(top=models.Max("pk"))["top"]
        last = top or 0
    return [{"id": last + at, **line} for at, line in enumerate(entries, 1)]


def refresh(
    layout: Layout, row: SourceFile | None, seen: Fingerprint | None
) -> SourceFile:
    """Read what is new since `row`; rotation starts over. Returns the row to save."""
    journal = get_journal()
    path = journal.path(layout)
    fresh = row or SourceFile(name=journal.name, path=str(path))
    if seen is None:
        fresh.offset = fresh.lines = 0
        return fresh
    if (
        (fresh.dev, fresh.ino) != (seen.dev, seen.ino)
        or seen.size < fresh.offset
        or not jsonl.line_begins(path, fresh.offset)
    ):
        # Rotated, cut, or edited by hand.
        fresh.offset = fresh.lines = 0
        Problem.objects.filter(source=journal.name).delete()
    # Rows are made of those only that are kept: it takes ten times as long as reading a line.
    entries: deque[tuple[int, int, dict[str, Any]]] = deque(maxlen=journal.keep)
    for line in jsonl.read(path, fresh.offset, fresh.lines):
        fresh.offset, fresh.lines = line.end, line.number
        identifier = jsonl.identifier(line.data) if line.data is not None else None
        if line.data is None:
            _lost(path, line.number, line.fault or "not JSON")
        elif identifier is None:
            _lost(path, line.number, "it has no id")
        else:
            entries.append((line.number, identifier, line.data))
    rows: list[models.Model] = []
    for at, identifier, data in entries:
        made = journal.row(identifier, data)
        try:
            check_storable(made)
        except RecordBroken as error:
            _lost(path, at, error.message)
        else:
            rows.append(made)
    if rows:
        manager = journal.model._default_manager
        manager.bulk_create(rows, ignore_conflicts=True, batch_size=2000)
        oldest = rows[-1].pk - journal.keep
        if oldest % 1000 < len(rows) or len(rows) > 1000:
            manager.filter(pk__lte=oldest).delete()
    return fresh


def _lost(path: Path, line: int, fault: str) -> None:
    Problem.objects.create(
        source=get_journal().name,
        line=line,
        code="journal.line",
        message=f"line {line} of {path.name} cannot be read ({fault}); "
        "that entry is lost, the others are not",
    )


def parse_time(text: object) -> datetime | None:
    """The time of an audit line, None where it is none."""
    try:
        value = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    if not 1 < value.year < 9999:
        # Another zone's year may be none that can be counted.
        return None
    return value if value.tzinfo else timezone.make_aware(value)
