"""Where a file has data, where it has holes, and whether its blocks are shared with another file."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
from collections.abc import Iterator

_FIEMAP = 0xC020660B
_HEADER = struct.Struct("=QQLLLL")  # start, length, flags, mapped, room, reserved
_EXTENT = struct.Struct("=QQQQQLLLL")  # logical, physical, length, 2 x, flags, 3 x
_FLAGS = 5
#: Sync the file first: what is not on disk yet has no extent to look at.
_SYNC = 1
_SHARED = 0x2000
#: Extents that cannot be shared: lying in the inode, or not on disk yet.
_NOT_SHARABLE = 0x0002 | 0x0004 | 0x0200
#: As many extents are looked at: what we ask costs the same for every image.
_LOOK = 16


def data_extents(file: int) -> Iterator[tuple[int, int]]:
    """(start, end) of each stretch that the file system says has data; one for all where it cannot say."""
    size = os.fstat(file).st_size
    offset = 0
    while offset < size:
        try:
            start = os.lseek(file, offset, os.SEEK_DATA)
            end = min(os.lseek(file, start, os.SEEK_HOLE), size)
        except OSError as error:
            if error.errno == errno.ENXIO:  # only a hole is left
                return
            if error.errno not in {errno.EINVAL, errno.EOPNOTSUPP}:
                raise
            start, end = offset, size
        if start < end:
            yield start, end
        offset = end


def data_bytes(file: int) -> int:
    """Bytes of all its data. Allocated may be more (room that was only set aside) or less (compression)."""
    return sum(end - start for start, end in data_extents(file))


def shares_blocks(file: int) -> bool | None:
    """Whether the first extents of a file are shared with another file; None where that cannot be told."""
    room = bytearray(_HEADER.size + _LOOK * _EXTENT.size)
    _HEADER.pack_into(room, 0, 0, (1 << 64) - 1, _SYNC, 0, _LOOK, 0)
    try:
        fcntl.ioctl(file, _FIEMAP, room)
    except OSError:
        return None
    found = _HEADER.unpack_from(room)[3]
    flags = [
        _EXTENT.unpack_from(room, _HEADER.size + at * _EXTENT.size)[_FLAGS]
        for at in range(found)
    ]
    sharable = [each for each in flags if not each & _NOT_SHARABLE]
    return any(each & _SHARED for each in sharable) if sharable else None


def data_at(file: int, offset: int) -> int | None:
    """The first place with data at or behind `offset`; None when there is none, or nobody can say."""
    with contextlib.suppress(OSError):
        return os.lseek(file, offset, os.SEEK_DATA)
    return None
