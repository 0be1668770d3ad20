"""What an answer looks like, written down: exact keys, types, and what may be missing."""

from __future__ import annotations

from datetime import datetime
from typing import Any

#: A name that may be missing ends in `?`.
MAYBE = "?"


class Or:
    """One of several shapes."""

    def __init__(self, *shapes: Any) -> None:
        self.shapes = shapes


class Mapping:
    """A mapping whose keys are not fixed."""


def time(value: Any) -> bool:
    """ISO 8601 with offset."""
    return datetime.fromisoformat(value).utcoffset() is not None


def differs(shape: Any, value: Any, at: str = "answer") -> str:
    """Where a value is not of that shape; empty when it is.

    A dict has exactly these keys, a list `[shape]` has at least one item and each of that shape,
    a type means an instance, a function must say true, anything else is equal.
    """
    if isinstance(shape, Or):
        faults = [differs(one, value, at) for one in shape.shapes]
        return "" if "" in faults else " / ".join(faults)
    if shape is Mapping:
        return "" if isinstance(value, dict) else f"{at}: {value!r} is no mapping"
    if isinstance(shape, dict):
        return _mapping(shape, value, at)
    if isinstance(shape, list) and shape:
        if not isinstance(value, list) or not value:
            return f"{at}: {value!r} is no list with something in it"
        faults = [differs(shape[0], each, f"{at}[{n}]") for n, each in enumerate(value)]
        return next(filter(None, faults), "")
    if isinstance(shape, type):
        right = isinstance(value, shape) and not (
            shape is int and isinstance(value, bool)
        )
        return "" if right else f"{at}: {value!r} is no {shape.__name__}"
    if callable(shape):
        return "" if shape(value) else f"{at}: {value!r}"
    return "" if shape == value else f"{at}: {value!r} is not {shape!r}"


def _mapping(shape: dict[str, Any], value: Any, at: str) -> str:
    if not isinstance(value, dict):
        return f"{at}: {value!r} is no mapping"
    known = {name.rstrip(MAYBE): one for name, one in shape.items()}
    needed = {name for name in shape if not name.endswith(MAYBE)}
    if set(value) - set(known) or needed - set(value):
        return f"{at}: has {sorted(value)}, should have {sorted(shape)}"
    faults = [
        differs(known[name], each, f"{at}.{name}") for name, each in value.items()
    ]
    return next(filter(None, faults), "")
