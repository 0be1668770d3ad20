"""Bytes of an upload into its file: piece by piece as they come, empty blocks as holes, never a whole body in memory."""

from __future__ import annotations

import os
from collections.abc import Callable

#: Read at once; also what of a piece is in memory.
STEP = 1 << 20
#: A block of only zeros becomes a hole; file systems allocate in blocks of this or less.
BLOCK = 64 << 10
_ZEROS = bytes(BLOCK)


def take(
    read: Callable[[int], bytes], file: int, offset: int, length: int
) -> tuple[int, OSError | None]:
    """Write up to `length` bytes that `read` gives to `file` from `offset` on; where it got to, and what stopped the disk.

    The file is cut to `offset` before, so that a hole really is zeros, and ends where the bytes end.
    Fewer bytes than `length` mean that the sender went away.
    """
    at = offset
    failed: OSError | None
    try:
        os.ftruncate(file, offset)
        while at < offset + length:
            chunk = read(min(STEP - at % BLOCK, offset + length - at))
            if not chunk:
                break
            at = _put(file, chunk, at)
    except _DiskError as error:
        at, failed = error.at, error.cause
    except OSError as error:
        return offset, error
    else:
        failed = None
    try:
        os.ftruncate(file, at)
        os.fdatasync(file)
    except OSError as error:
        return offset, failed or error
    return at, failed


class _DiskError(Exception):
    """The disk refused; all before `at` is written."""

    def __init__(self, at: int, cause: OSError) -> None:
        super().__init__(str(cause))
        self.at = at
        self.cause = cause


def _put(file: int, chunk: bytes, at: int) -> int:
    """Write a chunk without its empty blocks; where it ends."""
    view = memoryview(chunk)
    while view:
        block = view[: BLOCK - at % BLOCK]
        if block == _ZEROS[: len(block)]:
            at += len(block)
            view = view[len(block) :]
            continue
        try:
            written = os.pwrite(file, block, at)
        except OSError as error:
            raise _DiskError(at, error) from error
        at += written
        view = view[written:]
    return at
