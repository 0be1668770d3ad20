"""Rows of new workers from files: a CSV with a header, or a range of names with a list of MACs."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

from ipxeready.errors import Invalid
from ipxeready.given import shown
from ipxeready.shell import Usage
from workers.imports import Row
from workers.ranges import expand

_COLUMNS = ("worker_id", "mac", "hostname")
_NEEDED = ("worker_id", "mac")


def read_text(name: str) -> str:
    """The text of a file, `-` for standard input; Usage when it cannot be had."""
    try:
        content = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
        # Spreadsheets write a byte order mark.
        return content.decode("utf-8-sig")
    except OSError as error:
        raise Usage(f"{name}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        line = error.object[: error.start].count(b"\n") + 1
        raise Usage(
            f"{name}: line {line} is not UTF-8; save the file as UTF-8"
        ) from None


def rows_of_csv(text: str) -> list[Row]:
    """The rows below the header `worker_id,mac[,hostname]`, columns in any order; blank lines do not count."""
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    heads: list[str] | None = None
    rows: list[Row] = []
    try:
        for cells in reader:
            values = [cell.strip() for cell in cells]
            if not any(values):
                continue
            if heads is None:
                heads = _heads(values)
                continue
            rows.append(_row(heads, values, len(rows) + 1, reader.line_num))
    except csv.Error as error:
        raise Usage(f"line {reader.line_num}: is not CSV: {error}") from None
    if heads is None:
        raise Usage(f"the header {','.join(_COLUMNS)} is missing")
    return rows


def _row(heads: list[str], values: list[str], number: int, line: int) -> Row:
    found = dict(zip(heads, values, strict=False))
    problem = ""
    if len(values) != len(heads):
        problem = f"has {len(values)} columns, the header has {len(heads)}"
    return Row(
        number=number,
        line=line,
        worker_id=found.get("worker_id", ""),
        mac=found.get("mac", ""),
        hostname=found.get("hostname", ""),
        problem=problem,
    )


def _heads(values: list[str]) -> list[str]:
    heads = [value.lower() for value in values]
    wrong = [head for head in heads if head not in _COLUMNS]
    missing = [name for name in _NEEDED if name not in heads]
    if wrong or missing or len(set(heads)) < len(heads):
        raise Usage(
            f"the header {shown(','.join(values))} must have the columns {', '.join(_NEEDED)} "
            "and may have hostname, each once, separated by commas"
        )
    return heads


def rows_of_range(word: str, text: str) -> list[Row]:
    """A row for each name of the range, with the MACs of the text, one a line; `#` begins a comment."""
    try:
        names = expand(word)
    except Invalid as error:
        raise Usage(f"--range {error.message}") from None
    macs = [
        (number, line.partition("#")[0].strip())
        for number, line in enumerate(text.splitlines(), 1)
        if line.partition("#")[0].strip()
    ]
    if len(macs) != len(names):
        raise Usage(
            f"--range {shown(word)} means {len(names)} workers, but there are {len(macs)} MACs"
        )
    return [
        Row(number=at, worker_id=name, mac=mac, line=line)
        for at, (name, (line, mac)) in enumerate(zip(names, macs, strict=True), 1)
    ]
