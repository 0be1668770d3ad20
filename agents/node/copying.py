"""Copies of one open file into another: FICLONE where the file system can, else byte by byte without filling the holes."""

from __future__ import annotations

import errno
import fcntl
import os
from collections.abc import Callable

_FICLONE = 0x40049409
_CHUNK = 4 << 20
#: Answers of FICLONE that mean "copy it in full"; any other is an error of the disk.
_CANNOT = frozenset(
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


def ficlone(source: int, destination: int) -> None:
    """Make `destination` share all blocks of `source` (the raw system call)."""
    fcntl.ioctl(destination, _FICLONE, source)


def reflink(source: int, destination: int) -> str | None:
    """None when `destination` is now a clone of `source`, else why a full copy is needed.

    The source is synced first, and the size is compared afterwards: a file system
    that says yes and clones only a part must not give a machine half a disk.
    """
    os.fsync(source)
    try:
        ficlone(source, destination)
    except OSError as error:
        if error.errno in _CANNOT:
            return _word(error.errno or 0)
        raise
    wanted, got = os.fstat(source).st_size, os.fstat(destination).st_size
    if wanted != got:
        os.ftruncate(destination, 0)
        return f"the clone had {got} bytes instead of {wanted}"
    return None


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
    """Copy the data of `source`, keep its holes, return the bytes copied; `progress` gets each step's bytes."""
    size = os.fstat(source).st_size
    os.ftruncate(destination, size)
    copied = offset = 0
    while offset < size:
        try:
            start = os.lseek(source, offset, os.SEEK_DATA)
        except OSError as error:
            if error.errno == errno.ENXIO:  # only a hole is left
                break
            raise
        end = min(os.lseek(source, start, os.SEEK_HOLE), size)
        while start < end:
            chunk = os.pread(source, min(_CHUNK, end - start), start)
            if not chunk:
                raise OSError(errno.EIO, "the source became shorter while it was read")
            view = memoryview(chunk)
            while view:
                written = os.pwrite(destination, view, start)
                view = view[written:]
                start += written
            copied += len(chunk)
            progress(len(chunk))
        offset = end
    return copied
