"""What was computed from the index, kept in the process while the files stand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from ipxeready.index.freshness import settled

T = TypeVar("T")


class Kept(Generic[T]):
    """A value that depends on nothing but the records: computed when asked for, and again after a file has changed.

    It is shared by threads and requests: it must not be changed, nor hold words of one language.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._held: tuple[tuple[Any, ...], T] | None = None

    def __call__(self) -> T:
        """The value for what the files say now."""
        token, held = settled(), self._held
        if held is not None and held[0] == token:
            return held[1]
        value = self._make()
        # A file that changed meanwhile makes the token stale, not the value wrong.
        self._held = None if token is None else (token, value)
        return value
