"""Putting bytes on disk so that a crash leaves the old or the new content, never a mixture that nobody can tell."""

from __future__ import annotations

import os
from pathlib import Path


def fsync_folder(folder: Path) -> None:
    """Make renames and new names in `folder` durable."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def write_all(fd: int, content: bytes) -> None:
    """os.write until all of `content` is out."""
    view = memoryview(content)
    while view:
        view = view[os.write(fd, view) :]


def write_new(path: Path, content: bytes, mode: int) -> None:
    """Make `path` afresh with `content`, fsynced; whatever lay there is gone first."""
    path.unlink(missing_ok=True)
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        os.fchmod(fd, mode)
        write_all(fd, content)
        os.fsync(fd)
    finally:
        os.close(fd)


def temporary_for(path: Path) -> Path:
    """The name beside `path` under which its next content is prepared."""
    return path.with_name(f".{path.name}.{os.getpid()}.tmp")


def prepare(path: Path, content: bytes, mode: int) -> Path:
    """Write `content` beside `path` with its mode and owner (`mode` when it is new); return the temporary file."""
    target = path.resolve()
    tmp = temporary_for(target)
    try:
        st = target.stat()
    except FileNotFoundError:
        write_new(tmp, content, mode)
        return tmp
    write_new(tmp, content, st.st_mode & 0o7777)
    if os.geteuid() == 0:
        os.chown(tmp, st.st_uid, st.st_gid)
    return tmp


def replace(tmp: Path, path: Path) -> None:
    """Rename the prepared file over `path` and make that durable."""
    target = path.resolve()
    tmp.replace(target)
    fsync_folder(target.parent)


def write_replace(path: Path, content: bytes, mode: int) -> None:
    """Temporary file, fsync, rename, fsync of the folder; mode and owner kept."""
    replace(prepare(path, content, mode), path)


def write_in_place(path: Path, content: bytes, mode: int) -> None:
    """Write over, then cut to length, then fsync: the inode lives, because it may be a bind mount."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, mode)
    try:
        write_all(fd, content)
        os.ftruncate(fd, len(content))
        os.fsync(fd)
    finally:
        os.close(fd)
