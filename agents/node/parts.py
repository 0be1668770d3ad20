"""Hidden files that are being written: made, probed with, and cleaned up after a kill."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets

from agents.node import copying, extents
from agents.node.errors import NoRoom
from agents.node.folder import names_in
from ipxeready.errors import ApplicationError, Unavailable
from ipxeready.said import said

#: The ending of what we are still writing: hidden, and never an image's.
PART = ".part"
#: Errors that mean that the disk is full.
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_MODE = 0o600


def open_part(name: str, folder: int) -> int:
    """A new hidden file, locked for as long as we write it (so that a start elsewhere leaves it alone)."""
    try:
        part = os.open(
            name,
            os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
            _MODE,
            dir_fd=folder,
        )
    except OSError as error:
        if error.errno in FULL:
            raise NoRoom(
                said("no room for {name}: the image directory is full.", name=name)
            ) from error
        raise Unavailable(
            said(
                "the image directory takes no new file ({why}). Look at its mount and owner.",
                why=error.strerror,
            ),
            code="folder.write",
        ) from error
    fcntl.flock(part, fcntl.LOCK_EX)
    return part


def clean(folder: int) -> list[str]:
    """Remove what killed copies left, i.e. parts that no process is writing; their names."""
    gone = []
    for name in names_in(folder):
        if not (name.startswith(".") and name.endswith(PART)):
            continue
        try:
            part = os.open(
                name,
                os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC,
                dir_fd=folder,
            )
        except OSError:
            continue
        try:
            fcntl.flock(part, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.unlink(name, dir_fd=folder)
            gone.append(name)
        except OSError:
            continue
        finally:
            os.close(part)
    return gone


def probe(folder: int) -> bool | None:
    """Whether FICLONE works and saves room in an open directory: a real clone of a real, synced block.

    None when it could not be tried, as on a full disk.
    """
    names = [f".probe-{secrets.token_hex(6)}{PART}" for _ in range(2)]
    files: list[int] = []
    block = secrets.token_bytes(64 << 10)
    try:
        for name in names:
            files.append(open_part(name, folder))
        os.write(files[0], block)
        if copying.reflink(files[0], files[1]) is not None:
            return False
        if os.pread(files[1], len(block), 0) != block:
            return False
        # A clone that shares nothing saves nothing: some file systems copy behind our back.
        return extents.shares_blocks(files[1]) is not False
    except (OSError, ApplicationError):
        return None
    finally:
        for file in files:
            os.close(file)
        for name in names:
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=folder)
