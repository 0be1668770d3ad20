"""Copies of one open file into another: FICLONE where the file system can, else byte by byte without filling the holes."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
from collections.abc import Callable

from agents.node import sample
from agents.node.extents import data_extents

_FICLONE = 0x40049409
_CHUNK = 1 << 20
#: Blocks of zeros of this size (and place) are left out, also where the file system calls them data.
_HOLE = 64 << 10
_ZEROS = bytes(_HOLE)
#: So much is written before the disk is told to begin, and again before we wait for it: the final sync has
#: little left to do, and other machines' pages stay in memory.
WINDOW = 64 << 20
_WAIT_WRITE_WAIT, _WRITE = 1 | 2 | 4, 2
#: Answers of FICLONE that mean "copy it in full"; any other is an error of the disk.
CANNOT = frozenset(
    {
        errno.EXDEV,
        errno.EOPNOTSUPP,
        errno.ENOTTY,
        errno.ENOSYS,
        errno.EINVAL,
        errno.EAGAIN,
        errno.EPERM,
        errno.EACCES,
        errno.ETXTBSY,
    }
)

_libc = ctypes.CDLL(None, use_errno=True)
_libc.sync_file_range.argtypes = (
    ctypes.c_int,
    ctypes.c_int64,
    ctypes.c_int64,
    ctypes.c_uint,
)


def ficlone(source: int, destination: int) -> None:
    """Make `destination` share all blocks of `source` (the raw system call)."""
    fcntl.ioctl(destination, _FICLONE, source)


def reflink(source: int, destination: int) -> str | None:
    """None when `destination` is now a clone of `source`, else why a full copy is needed.

    The source is synced first. Afterwards the size and a sample of the bytes are compared: a file system
    that says yes and clones only a part must not give a machine half a disk.
    """
    os.fsync(source)
    try:
        ficlone(source, destination)
    except OSError as error:
        if error.errno in CANNOT:
            return _word(error.errno or 0)
        raise
    wanted, got = os.fstat(source).st_size, os.fstat(destination).st_size
    if wanted != got:
        return f"the clone had {got} bytes instead of {wanted}"
    place = sample.differs(source, destination)
    return None if place is None else f"the clone differed at byte {place}"


def _word(number: int) -> str:
    # Python's table has the older name of the two for this one.
    return (
        "EOPNOTSUPP"
        if number == errno.EOPNOTSUPP
        else errno.errorcode.get(number, str(number))
    )


def sparse_copy(
    source: int, destination: int, *, progress: Callable[[int], None] = lambda _: None
) -> int:
    """Copy the data of `source`, keep its holes, return the bytes written.

    `progress` gets the bytes of each step, those that turned out to be zeros too, and ends the copy by raising.
    What the destination held before is gone. (No copy_file_range: it is no faster here, and may share blocks
    where the operator forbids that.)
    """
    size = os.fstat(source).st_size
    os.ftruncate(destination, 0)
    os.ftruncate(destination, size)
    os.posix_fadvise(source, 0, 0, os.POSIX_FADV_SEQUENTIAL)
    flush = _Flush(destination)
    buffer = bytearray(_CHUNK)
    view = memoryview(buffer)
    written = 0
    for start, end in data_extents(source):
        while start < end:
            count = os.preadv(source, [view[: min(_CHUNK, end - start)]], start)
            if not count:
                raise OSError(errno.EIO, "the source became shorter while it was read")
            for low, high in _filled(buffer, start, count):
                _write(destination, view[low:high], start + low)
                flush.add(start + low, high - low)
                written += high - low
            start += count
            progress(count)
    return written


def _filled(buffer: bytearray, offset: int, count: int) -> list[tuple[int, int]]:
    """The stretches of the buffer that are not zeros; `offset` is where its first byte lies in the file."""
    found: list[tuple[int, int]] = []
    low = 0
    while low < count:
        high = min(count, low + _HOLE - (offset + low) % _HOLE)
        # startswith compares in place, without a copy.
        if not buffer.startswith(_ZEROS[: high - low], low):
            if found and found[-1][1] == low:
                found[-1] = (found[-1][0], high)
            else:
                found.append((low, high))
        low = high
    return found


def _write(file: int, data: memoryview, offset: int) -> None:
    while data:
        done = os.pwrite(file, data, offset)
        data = data[done:]
        offset += done


class _Flush:
    """Sends what is written to the disk a window at a time, while the next one is being written."""

    def __init__(self, file: int) -> None:
        self._file = file
        self._last = (0, 0)
        self._start = self._end = self._count = 0

    def add(self, offset: int, count: int) -> None:
        if not self._count:
            self._start = offset
        self._count += count
        self._end = offset + count
        if self._count < WINDOW:
            return
        window = (self._start, self._end - self._start)
        self._sync(*window, _WRITE)
        if self._last[1]:
            self._sync(*self._last, _WAIT_WRITE_WAIT)
        self._last = window
        self._count = 0

    def _sync(self, offset: int, count: int, flags: int) -> None:
        if _libc.sync_file_range(self._file, offset, count, flags) == 0:
            return
        number = ctypes.get_errno()
        # What a disk reports here is not reported again by fsync.
        if number not in {errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP, errno.ESPIPE}:
            raise OSError(number, os.strerror(number))
