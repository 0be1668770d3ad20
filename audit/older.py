"""Entries that the index no longer holds: read from the file, from the end backwards, no more of it than is needed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from django.conf import settings

from audit.models import Operation
from audit.wanted import Wanted
from ipxeready.index.journal import get_journal, parse_time
from ipxeready.index.models import check_storable
from ipxeready.storage import jsonl
from ipxeready.storage.broken import RecordBroken

#: A clock that was set has put lines out of order by no more than this.
_DISORDER = timedelta(days=1)
#: Lines between two looks at the clock.
_EVERY = 256


class Piece(NamedTuple):
    """Rows that were found, and the id at which looking was given up for now (None: all was looked at)."""

    rows: list[Operation]
    gave_up: int | None = None


def before(
    wanted: Wanted, *, below: int, above: int, limit: int, patience: float
) -> Piece:
    """At most `limit` wanted entries with ids between `above` and `below`, newest first; gives up after `patience` seconds."""
    path = settings.IPXE_LAYOUT.operations
    until = time.monotonic() + patience
    try:
        end = jsonl.first_where(path, lambda data: _at_least(data, below))
        if wanted.to_time:
            late = wanted.to_time + _DISORDER
            end = min(end, jsonl.first_where(path, lambda data: _since(data, late)))
        return _picked(
            jsonl.backwards(path, end),
            wanted,
            limit=limit,
            until=until,
            ahead=lambda number: number >= below,
            past=lambda number, data: number <= above or _too_early(data, wanted),
        )
    except FileNotFoundError:
        return Piece([])


def after(
    wanted: Wanted, *, above: int, below: int, limit: int, patience: float
) -> Piece:
    """The same, oldest first."""
    path = settings.IPXE_LAYOUT.operations
    until = time.monotonic() + patience
    try:
        start = jsonl.first_where(path, lambda data: _at_least(data, above + 1))
        return _picked(
            jsonl.forwards(path, start, path.stat().st_size),
            wanted,
            limit=limit,
            until=until,
            ahead=lambda number: number <= above,
            past=lambda number, data: number >= below or _too_late(data, wanted),
        )
    except FileNotFoundError:
        return Piece([])


def _picked(
    lines: Iterator[bytes],
    wanted: Wanted,
    *,
    limit: int,
    until: float,
    ahead: Callable[[int], bool],
    past: Callable[[int, dict[str, Any]], bool],
) -> Piece:
    """What is wanted of these lines: none that is still `ahead` of the range, and no line after one that is `past` it."""
    may_match = wanted.sieve()
    rows: list[Operation] = []
    for count, raw in enumerate(lines, 1):
        # Every so often: where it stands is only known from a line that is read.
        looked = count % _EVERY == 0
        if not looked and not may_match(raw):
            continue
        number, data = entry_of(raw)
        if number is None or ahead(number):
            continue
        if past(number, data):
            break
        if wanted.matches(data) and (row := _row(number, data)):
            rows.append(row)
            if len(rows) == limit:
                break
        if looked and time.monotonic() > until:
            return Piece(rows, number)
    return Piece(rows)


def all_of(wanted: Wanted) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Every wanted line of the file as it stands now, oldest first, as bytes and read; one line at a time is in memory."""
    path = settings.IPXE_LAYOUT.operations
    may_match = wanted.sieve()
    try:
        end = path.stat().st_size
        start = 0
        if wanted.from_time:
            early = wanted.from_time - _DISORDER
            start = jsonl.first_where(path, lambda data: _since(data, early))
        for raw in jsonl.forwards(path, start, end):
            if not may_match(raw):
                continue
            number, data = entry_of(raw)
            if number is None:
                continue
            if _too_late(data, wanted):
                return
            if wanted.matches(data):
                yield raw, data
    except FileNotFoundError:
        return


def first_id() -> int | None:
    """The id of the file's first entry."""
    path = settings.IPXE_LAYOUT.operations
    try:
        for raw in jsonl.forwards(path, 0, path.stat().st_size):
            number, _ = entry_of(raw)
            if number is not None:
                return number
    except FileNotFoundError:
        pass
    return None


def entry_of(raw: bytes) -> tuple[int | None, dict[str, Any]]:
    """The number and the fields of a line; no number where it is no entry."""
    data = jsonl.parse(raw, 0, 0).data or {}
    return jsonl.identifier(data), data


def _row(number: int, data: dict[str, Any]) -> Operation | None:
    """The row of a line as the index would have it; None for a line that it would refuse."""
    row = get_journal().row(number, data)
    try:
        check_storable(row)
    except RecordBroken:
        return None
    assert isinstance(row, Operation)  # noqa: S101 - the journal is ours
    return row


def _at_least(data: dict[str, Any], number: int) -> bool | None:
    found = jsonl.identifier(data)
    return None if found is None else found >= number


def _since(data: dict[str, Any], stamp: datetime) -> bool | None:
    found = parse_time(data.get("ts"))
    return None if found is None else found >= stamp


def _too_early(data: dict[str, Any], wanted: Wanted) -> bool:
    if wanted.from_time is None:
        return False
    return _since(data, wanted.from_time - _DISORDER) is False


def _too_late(data: dict[str, Any], wanted: Wanted) -> bool:
    if wanted.to_time is None:
        return False
    return _since(data, wanted.to_time + _DISORDER) is True
