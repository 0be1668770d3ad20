"""Disk sizes as people write them: `40G`, `512M`, `1T` or bytes."""

from __future__ import annotations

import re

from ipxeready.errors import Invalid
from ipxeready.said import said
from ipxeready.storage.mac import shown

SECTOR = 512
_UNITS = {
    "": 1,
    "K": 1 << 10,
    "M": 1 << 20,
    "G": 1 << 30,
    "T": 1 << 40,
}
_SIZE = re.compile(r"([0-9]{1,18})([KMGT]?)(?:I?B)?", re.ASCII)
#: Nobody boots from more; larger numbers are typing errors.
MAX_SIZE = 64 << 40


def parse_size(value: object, *, field: str = "size", limit: int = MAX_SIZE) -> int:
    """The bytes of `40G`, `512M`, `1T` (binary units) or a number: more than 0, a multiple of 512, at most `limit`."""
    if isinstance(value, int) and not isinstance(value, bool):
        size = value
    elif isinstance(value, str) and (match := _SIZE.fullmatch(value.strip().upper())):
        size = int(match[1]) * _UNITS[match[2]]
    else:
        raise Invalid(
            said(
                "{field} {text} is not a size: write 40G, 512M, 1T or a number of bytes.",
                field=field,
                text=shown(value),
            ),
            code="size.malformed",
            field=field,
        )
    if size <= 0 or size % SECTOR:
        raise Invalid(
            said(
                "{field} {text} must be more than 0 and a multiple of {sector} bytes.",
                field=field,
                text=shown(value),
                sector=SECTOR,
            ),
            code="size.rule",
            field=field,
        )
    if size > limit:
        raise Invalid(
            said(
                "{field} {text} is above this node's limit of {limit}.",
                field=field,
                text=shown(value),
                limit=format_size(limit),
            ),
            code="size.limit",
            field=field,
        )
    return size


def format_size(size: int) -> str:
    """`size` bytes for people: the largest binary unit, one decimal where it is not whole."""
    for unit in ("T", "G", "M", "K"):
        if size >= _UNITS[unit]:
            number = f"{size / _UNITS[unit]:.1f}".removesuffix(".0")
            return f"{number} {unit}iB"
    return f"{size} B"
