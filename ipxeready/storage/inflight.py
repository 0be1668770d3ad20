"""Marks slow work that is under way: a flock that dies with its process, so that a crash is told from patience."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def held(folder: Path, name: str) -> bool:
    """Whether somebody holds the mark now. For looking at only: who asks at the same moment may find it taken."""
    try:
        fd = os.open(folder / f"{name}.busy", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(fd)
    return False


@contextmanager
def claim(folder: Path, name: str) -> Iterator[bool]:
    """Hold the mark `name` for the block; yields False when somebody else, here or elsewhere, holds it."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / f"{name}.busy"
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            yield False
            return
        # The last holder may have removed the name between our open and our lock.
        try:
            same = os.fstat(fd).st_ino == path.stat().st_ino
        except FileNotFoundError:
            same = False
        if same:
            break
        os.close(fd)
    try:
        yield True
    finally:
        path.unlink(missing_ok=True)
        os.close(fd)
