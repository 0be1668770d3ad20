"""The trail to take away: CSV for spreadsheets, JSON lines for programs; a line at a time, however long it is."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from typing import Any

from audit import older
from audit.models import Operation
from audit.wanted import Wanted
from ipxeready.storage import jsonl

CSV, LINES = "csv", "jsonl"
TYPES = {CSV: "text/csv; charset=utf-8", LINES: "application/x-ndjson"}
COLUMNS = ("id", "ts", "op", "status", "worker_id", "agent", "user", "client")
#: Bytes that are sent at once.
_BATCH = 64 * 1024
#: Rows that are taken from the index at once.
_ROWS = 500
#: A spreadsheet takes text that begins so for a formula; the wide ones are the same to it.
_FORMULA = tuple("=+-@\t\r\n＝＋－＠")


def export(form: str, wanted: Wanted) -> Iterator[bytes]:
    """All wanted entries, oldest first, in pieces of some size."""
    write = _csv_line if form == CSV else _json_line
    parts = [_head()] if form == CSV else []
    size = 0
    for raw, data in _all(wanted):
        part = write(raw, data)
        parts.append(part)
        size += len(part)
        if size > _BATCH:
            yield b"".join(parts)
            parts, size = [], 0
    yield b"".join(parts)


def _all(wanted: Wanted) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """What the index kept of files that were rotated away, then the file."""
    first = older.first_id()
    rows = Operation.objects.order_by("id")
    if first is not None:
        rows = rows.filter(id__lt=first)
    last = 0
    while piece := list(wanted.narrow(rows.filter(id__gt=last))[:_ROWS]):
        for row in piece:
            yield jsonl.encode(row.data), row.data
        last = piece[-1].pk
    yield from older.all_of(wanted)


def _json_line(raw: bytes, data: dict[str, Any]) -> bytes:
    """The line as it stands in the file."""
    return raw.strip() + b"\n"


def _head() -> bytes:
    # The mark tells spreadsheets that this is UTF-8.
    return b"\xef\xbb\xbf" + _line([*COLUMNS, "details"])


def _csv_line(raw: bytes, data: dict[str, Any]) -> bytes:
    rest = {key: value for key, value in data.items() if key not in COLUMNS}
    details = json.dumps(rest, ensure_ascii=False) if rest else ""
    return _line([*(_cell(data.get(name)) for name in COLUMNS), details])


def _cell(value: object) -> str:
    """A value that no spreadsheet computes: what looks like a formula gets an apostrophe before it."""
    if value is None:
        return ""
    if not isinstance(value, str):
        value = json.dumps(value, ensure_ascii=False)
    return f"'{value}" if value.lstrip(" ").startswith(_FORMULA) else value


def _line(cells: list[str]) -> bytes:
    out = io.StringIO()
    csv.writer(out).writerow(cell.replace("\0", "\\0") for cell in cells)
    return out.getvalue().encode("utf-8", "backslashreplace")
