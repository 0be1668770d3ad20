"""Reading the audit trail: filters and pages by id. The newest entries are in the index, all of them in the file."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.db.models import QuerySet

from audit import older
from audit.models import Operation
from audit.wanted import Wanted
from ipxeready.index.models import IndexedRecord, Problem

#: Seconds for looking through the file in one answer.
PATIENCE = 2.0
#: Above every id.
_END = 2**62


class Page(NamedTuple):
    """Entries and the id to go on from (`since` forwards, `before` backwards)."""

    next_cursor: int
    entries: list[dict[str, Any]]


class Stretch(NamedTuple):
    """Rows, the id to go on from, and whether there may be more."""

    rows: list[Operation]
    cursor: int
    more: bool


def operations(**filters: str) -> QuerySet[Operation]:
    """Operations with these fields (`op`, `status`, `worker_id`, `agent`); empty ones do not count.

    Of the newest only: those that the index holds.
    """
    return Operation.objects.filter(**{k: v for k, v in filters.items() if v})


def operation(number: int) -> Operation | None:
    """The entry with this id."""
    row = Operation.objects.filter(pk=number).first()
    if row is None and number < _oldest():
        found = older.after(
            Wanted(), above=number - 1, below=number + 1, limit=1, patience=PATIENCE
        )
        row = next(iter(found.rows), None)
    return row


def backwards(
    wanted: Wanted,
    *,
    before: int | None = None,
    since: int = 0,
    limit: int = 100,
    patience: float = PATIENCE,
) -> Stretch:
    """Newest first below `before`, and still above `since`."""
    below = _END if before is None else before
    found = wanted.narrow(Operation.objects.filter(id__gt=since, id__lt=below))
    rows = list(found.order_by("-id")[: limit + 1])
    gave_up = None
    oldest = _oldest()
    if len(rows) <= limit and since + 1 < oldest:
        piece = older.before(
            wanted,
            below=min(below, oldest),
            above=since,
            limit=limit + 1 - len(rows),
            patience=patience,
        )
        rows += piece.rows
        gave_up = piece.gave_up
    if len(rows) > limit:
        return Stretch(rows[:limit], rows[limit - 1].pk, True)
    if gave_up is not None:
        return Stretch(rows, gave_up, True)
    return Stretch(rows, rows[-1].pk if rows else min(below, _END), False)


def forwards(
    wanted: Wanted, *, since: int, limit: int, patience: float = PATIENCE
) -> Stretch:
    """Oldest first above `since`."""
    rows: list[Operation] = []
    oldest = _oldest()
    if since + 1 < oldest:
        piece = older.after(
            wanted, above=since, below=oldest, limit=limit + 1, patience=patience
        )
        rows = piece.rows
        if piece.gave_up is not None and len(rows) <= limit:
            return Stretch(rows, piece.gave_up, True)
    if len(rows) <= limit:
        found = wanted.narrow(Operation.objects.filter(id__gt=since)).order_by("id")
        rows += list(found[: limit + 1 - len(rows)])
    more = len(rows) > limit
    rows = rows[:limit]
    return Stretch(rows, rows[-1].pk if rows else since, more)


def page(
    *, since: int = 0, before: int | None = None, limit: int = 1000, wanted: Wanted
) -> Page:
    """Oldest first above `since`; with `before` newest first below that, and still above `since`."""
    if before is None:
        found = forwards(wanted, since=since, limit=limit)
    else:
        found = backwards(wanted, before=before, since=since, limit=limit)
    return Page(found.cursor, [row.data for row in found.rows])


def newest() -> int:
    """The highest id, 0 when there is none."""
    row = Operation.objects.order_by("-id").only("id").first()
    return row.pk if row else 0


def newer(wanted: Wanted, *, since: int, most: int) -> int:
    """How many wanted entries there are above `since`; counts no further than `most`."""
    rows = wanted.narrow(Operation.objects.filter(id__gt=since))
    return rows.order_by()[:most].count()


def occurring(field: str) -> list[str]:
    """The values of a field (`op`, `status`, `agent`, `user`) that occur among the newest entries."""
    values = Operation.objects.order_by(field).values_list(field, flat=True).distinct()
    return [value for value in values if value]


def existing(source: str, keys: set[str]) -> set[str]:
    """Those of the keys that are good records of a file now."""
    keys = keys - {""}
    found = IndexedRecord.objects.filter(source=source, key__in=keys)
    broken = Problem.objects.filter(
        source=source, record__in=keys, code="record.broken"
    )
    return set(found.values_list("key", flat=True)) - set(
        broken.values_list("record", flat=True)
    )


def _oldest() -> int:
    """The lowest id in the index; what is below it is in the file only."""
    row = Operation.objects.order_by("id").only("id").first()
    return row.pk if row else _END
