"""Marks slow work that is under way: a flock that dies with its process, so that a crash is told from patience."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ipxeready.errors import Unavailable
from ipxeready.said import said


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
    """Hold the mark `name` for the block; yields False when somebody else, here or elsewhere, holds it.

    Unavailable where the disk takes no file.
    """
    path = folder / f"{name}.busy"
    try:
        fd = _locked(path)
    except OSError as error:
        raise Unavailable(
            said(
                "{folder} takes no file, so nothing was begun ({error}); look at the disk.",
                folder=folder,
                error=error.strerror,
            ),
            code="state.write",
        ) from error
    if fd is None:
        yield False
        return
    try:
        yield True
    finally:
        # A name that stays is nobody's; only the lock counts.
        with suppress(OSError):
            path.unlink(missing_ok=True)
        os.close(fd)


def _locked(path: Path) -> int | None:
    """The open file of a mark, locked; None when somebody else holds it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # The last holder may have removed the name between our open and our lock.
            if os.fstat(fd).st_ino == path.stat().st_ino:
                return fd
        except BlockingIOError:
            os.close(fd)
            return None
        except FileNotFoundError:
            pass
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)
