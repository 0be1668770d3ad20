"""What a file looked like when it was read, so that a change is noticed by one stat."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import NamedTuple

#: A file system with whole-second stamps may hide a second edit for this long.
_COARSE_NS = 2_000_000_000
#: Stamps with a fraction move with the kernel's tick (at most 10 ms).
_FINE_NS = 50_000_000


class Fingerprint(NamedTuple):
    """Device, inode, size and both stamps, as stat gives them."""

    dev: int
    ino: int
    size: int
    mtime_ns: int
    ctime_ns: int

    @classmethod
    def from_stat(cls, st: os.stat_result) -> Fingerprint:
        """The fingerprint of a stat result."""
        return cls(st.st_dev, st.st_ino, st.st_size, st.st_mtime_ns, st.st_ctime_ns)

    def racy(self, seen_ns: int) -> bool:
        """Whether an edit after `seen_ns` could carry the same stamps (git's "racy" rule)."""
        newest = max(self.mtime_ns, self.ctime_ns)
        grain = _FINE_NS if self.ctime_ns % 1_000_000_000 else _COARSE_NS
        return seen_ns - newest < grain


def fingerprint(path: Path | str) -> Fingerprint | None:
    """The fingerprint of the file behind `path`, None when there is none."""
    try:
        return Fingerprint.from_stat(os.stat(path))  # noqa: PTH116 - hot path
    except OSError:
        # Not there, or not to be reached: reading it says why.
        return None


def read_regular(path: Path) -> bytes:
    """The bytes of a regular file; OSError for anything else, such as a pipe, which would be waited for for ever."""
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "it is not a regular file", str(path))
    return path.read_bytes()
