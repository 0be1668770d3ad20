"""Reading the audit trail: filters and pages by id."""

from __future__ import annotations

from typing import Any, NamedTuple

from django.db.models import QuerySet

from audit.models import Operation


class Page(NamedTuple):
    """Entries and the id to go on from (`since` forwards, `before` backwards)."""

    next_cursor: int
    entries: list[dict[str, Any]]


def operations(**filters: str) -> QuerySet[Operation]:
    """Operations with these fields (`op`, `status`, `worker_id`, `agent`); empty ones do not count."""
    return Operation.objects.filter(**{k: v for k, v in filters.items() if v})


def page(
    *, since: int = 0, before: int | None = None, limit: int = 1000, **filters: str
) -> Page:
    """Oldest first above `since`; with `before` newest first below that, and still above `since`."""
    rows = operations(**filters)
    if before is None:
        found = list(rows.filter(id__gt=since).order_by("id")[:limit])
        cursor = found[-1].id if found else since
    else:
        found = list(rows.filter(id__gt=since, id__lt=before).order_by("-id")[:limit])
        cursor = found[-1].id if found else before
    return Page(cursor, [row.data for row in found])
