"""The index's SQLite connections: read-only but for the ledgers' writer, and never to a file that was taken away."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from django.db import connection

_local = threading.local()


def path() -> Path:
    """Where the index lies now."""
    return Path(str(connection.settings_dict["NAME"]))


def identity() -> tuple[int, int] | None:
    """Device and inode of the index file, None when there is none."""
    try:
        st = os.stat(connection.settings_dict["NAME"])  # noqa: PTH116 - hot path
    except FileNotFoundError:
        return None
    return st.st_dev, st.st_ino


def follow(wanted: tuple[int, int] | None) -> None:
    """Drop this thread's connection when it is open on another file than the present one."""
    if connection.in_atomic_block:
        return
    if getattr(_local, "identity", None) != wanted:
        connection.close()
        _local.identity = wanted


@contextmanager
def writable() -> Iterator[None]:
    """Lift `query_only` for index writes; re-entrant, back on at the outermost level only."""
    depth = getattr(_local, "depth", 0)
    _local.depth = depth + 1
    try:
        if not depth:
            with connection.cursor() as cursor:
                cursor.execute("PRAGMA query_only=OFF")
        yield
    finally:
        _local.depth = depth
        if not depth and connection.connection is not None:
            # Straight to SQLite: a broken transaction must not keep the guard off.
            connection.connection.execute("PRAGMA query_only=ON")
