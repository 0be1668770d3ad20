"""A file that is read when it is asked for, and parsed again only when it has changed: one stat otherwise."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from ipxeready.storage.fingerprint import Fingerprint, fingerprint, read_regular

T = TypeVar("T")


class Watched(Generic[T]):
    """What `parse` makes of a file's bytes, kept in this process while the file stands."""

    def __init__(self, parse: Callable[[bytes], T]) -> None:
        self._parse = parse
        self._guard = threading.Lock()
        self._kept: tuple[Path, Fingerprint, T] | None = None

    def get(self, path: Path) -> T:
        """The present content; OSError where it cannot be read, and what `parse` raises."""
        seen = fingerprint(path)
        with self._guard:
            if self._kept is not None and self._kept[:2] == (path, seen):
                return self._kept[2]
        found = self._parse(read_regular(path))
        # Changed meanwhile, or so lately that a second change could look the same: not kept.
        if (
            seen is not None
            and fingerprint(path) == seen
            and not seen.racy(time.time_ns())
        ):
            with self._guard:
                self._kept = (path, seen, found)
        return found
