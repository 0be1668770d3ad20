"""The public directory seen from outside: whatever is asked for, nothing outside of it and nothing hidden is opened."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from ipxeready.errors import NotFound
from ipxeready.said import said

#: The years 1 to 9999, a day short at both ends for the sake of time zones: a stamp may lie far outside.
_TIMES = (-62_135_510_400, 253_402_214_400)


class Entry(NamedTuple):
    """One name of a directory; `type` is `file` or `directory`."""

    name: str
    type: str
    size: int
    mtime: float


class Opened(NamedTuple):
    """An open file; whoever gets it closes the descriptor."""

    fd: int
    stat: os.stat_result


def open_file(root: Path, path: str) -> Opened:
    """Open a regular file below `root` for reading; NotFound for anything else."""
    fd = _open(root, path)
    found = os.fstat(fd)
    if not stat.S_ISREG(found.st_mode):
        os.close(fd)
        raise _missing(path)
    return Opened(fd, found)


def list_folder(root: Path, path: str) -> list[Entry]:
    """What is in a folder below `root`, by name; links that lead out of it are not there.

    Names are as `os.fsdecode` has them: what is no UTF-8 is for `ipxeready.files.names` to say.
    """
    fd = _open(root, path)
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            raise NotFound(
                said(
                    "{path} is a file; GET /file/{name} fetches it",
                    path=repr(path[:200]),
                    name=path[:200],
                )
            )
        entries: list[Entry] = []
        with os.scandir(fd) as found:
            for each in found:
                with contextlib.suppress(OSError, NotFound):
                    entries.extend(_entry(root, path, each))
    finally:
        os.close(fd)
    return sorted(entries)


def _entry(root: Path, path: str, each: os.DirEntry[str]) -> Iterator[Entry]:
    if each.name.startswith("."):
        return
    if each.is_symlink():
        fd = _open(root, f"{path}/{each.name}".lstrip("/"))
        seen = os.fstat(fd)
        os.close(fd)
    else:
        seen = each.stat(follow_symlinks=False)
    mtime = min(max(seen.st_mtime, _TIMES[0]), _TIMES[1])
    if stat.S_ISREG(seen.st_mode):
        yield Entry(each.name, "file", seen.st_size, mtime)
    elif stat.S_ISDIR(seen.st_mode):
        yield Entry(each.name, "directory", 0, mtime)


def _missing(path: str) -> NotFound:
    return NotFound(
        said("there is no {path} in the public directory", path=repr(path[:200]))
    )


def _open(root: Path, path: str) -> int:
    """A descriptor of what `path` names, links followed only while they stay inside.

    The links are resolved first; then each step is opened from the one before without following any, so that a
    name exchanged meanwhile leads nowhere.
    """
    parts = [part for part in path.split("/") if part] if path else []
    if "//" in path or "\0" in path or any(part.startswith(".") for part in parts):
        raise _missing(path)
    try:
        top = Path(os.path.realpath(root, strict=True))
        inside = Path(os.path.realpath(top.joinpath(*parts), strict=True))
        steps = inside.relative_to(top).parts
        if any(step.startswith(".") for step in steps):
            raise _missing(path)
        fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for step in steps:
            before = fd
            try:
                # O_NONBLOCK: a named pipe must not hold us.
                flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
                fd = os.open(step, flags, dir_fd=before)
            finally:
                os.close(before)
    except (OSError, ValueError):
        raise _missing(path) from None
    return fd
