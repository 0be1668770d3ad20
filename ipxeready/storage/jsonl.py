"""Append-only files of JSON lines: whole lines out, torn tails survived and told."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
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


#: Bytes that are read at once where lines are looked for from the end, or in the middle.
BLOCK = 256 * 1024


def backwards(path: Path, end: int) -> Iterator[bytes]:
    """The whole lines before the offset `end`, the last one first, without reading more than is taken."""
    with path.open("rb") as stream:
        rest = b""
        while end > 0:
            start = max(0, end - BLOCK)
            stream.seek(start)
            first, *lines = (stream.read(end - start) + rest).split(b"\n")
            yield from (line for line in reversed(lines) if line.strip())
            rest, end = first, start
        if rest.strip():
            yield rest


def forwards(path: Path, start: int, end: int) -> Iterator[bytes]:
    """The whole lines from the offset `start`, at which one begins, to the offset `end`."""
    with path.open("rb") as stream:
        stream.seek(start)
        for line in stream:
            start += len(line)
            if start > end or not line.endswith(b"\n"):
                return
            if line.strip():
                yield line


def first_where(path: Path, holds: Callable[[dict[str, Any]], bool | None]) -> int:
    """The offset of the first line for which `holds`, by halving: it does not hold before that line, and does after.

    None of `holds` means that this line cannot tell. The end of the file where no line holds.
    """
    with path.open("rb") as stream:
        low, high = 0, os.fstat(stream.fileno()).st_size
        while high - low > BLOCK:
            middle = (low + high) // 2
            stream.seek(middle)
            stream.readline()
            at, answer = stream.tell(), None
            while answer is None and at < high:
                at = stream.tell()
                raw = stream.readline()
                if not raw:
                    break
                answer = _told(raw, holds)
            if answer is False:
                low = at
            else:
                high = middle
        stream.seek(low)
        while True:
            at = stream.tell()
            raw = stream.readline()
            if not raw or _told(raw, holds):
                return at


def _told(raw: bytes, holds: Callable[[dict[str, Any]], bool | None]) -> bool | None:
    line = parse(raw, 0, 0) if raw.strip() else None
    return holds(line.data) if line and line.data is not None else None
