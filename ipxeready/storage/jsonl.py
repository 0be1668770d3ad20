"""Append-only files of JSON lines: whole lines out, torn tails survived and told."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ipxeready.storage import atomic

#: Numbers that every reader of JSON keeps exactly.
MAX_ID = 2**53


@dataclass(frozen=True)
class Line:
    """One line: its object, or what is wrong with it; `end` is the offset behind it."""

    number: int
    end: int
    data: dict[str, Any] | None
    fault: str | None = None


def encode(data: dict[str, Any]) -> bytes:
    """One line of compact JSON, readable in any language."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), default=str)
    # Lone surrogates (undecodable bytes of a file name) have no UTF-8 form.
    return text.encode("utf-8", "backslashreplace") + b"\n"


def append(path: Path, lines: bytes) -> None:
    """Append whole lines with one write and fsync; a torn last line is ended first."""
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o640)
    try:
        size = os.fstat(fd).st_size
        if size and os.pread(fd, 1, size - 1) != b"\n":
            lines = b"\n" + lines
        try:
            atomic.write_all(fd, lines)
            os.fsync(fd)
        except OSError:
            # Half a line would be a torn record: a full disk leaves the file as it was.
            os.ftruncate(fd, size)
            raise
    finally:
        os.close(fd)


def line_begins(path: Path, offset: int) -> bool:
    """Whether a line begins at `offset`: not so when somebody has changed what lies before it."""
    if not offset:
        return True
    with path.open("rb") as stream:
        stream.seek(offset - 1)
        return stream.read(1) == b"\n"


def read(path: Path, offset: int = 0, number: int = 0) -> Iterator[Line]:
    """Lines from `offset` on, whole ones only; the first has number `number` + 1."""
    with path.open("rb") as stream:
        stream.seek(offset)
        for raw in stream:
            if not raw.endswith(b"\n"):
                return
            offset += len(raw)
            number += 1
            if raw.strip():
                yield parse(raw, number, offset)


def loads(text: str | bytes, **kwargs: Any) -> Any:
    """json.loads without what JSON does not have: NaN and numbers beyond any float."""
    return json.loads(text, parse_constant=_refuse, parse_float=_finite, **kwargs)


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _finite(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError(f"{text} is too large")
    return value


def identifier(data: dict[str, Any]) -> int | None:
    """The line's number, None when it has none that can be counted on."""
    found = data.get("id")
    if isinstance(found, bool) or not isinstance(found, int):
        return None
    return found if 0 < found < MAX_ID else None


def parse(raw: bytes, number: int, end: int) -> Line:
    """The Line of one line's bytes."""
    try:
        data = loads(raw)
    except (ValueError, RecursionError) as error:
        return Line(number, end, None, f"not JSON: {error}")
    if not isinstance(data, dict):
        return Line(number, end, None, "not a JSON object")
    return Line(number, end, data)


def last_id(path: Path) -> int:
    """The highest `id` near the end of the file, 0 when there is none."""
    try:
        size = path.stat().st_size
    except FileNotFoundError:
        return 0
    want = 65536
    with path.open("rb") as stream:
        while True:
            stream.seek(max(0, size - want))
            best = 0
            for raw in stream.read().split(b"\n"):
                line = parse(raw, 0, 0) if raw.strip() else None
                if line and line.data:
                    best = max(best, identifier(line.data) or 0)
            if best or want >= size:
                return best
            want *= 8
