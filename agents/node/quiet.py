"""A source must lie still while it is cloned or converted: nobody has it open for writing, and it is afterwards what it was before."""

from __future__ import annotations

import fcntl
import os
import signal
import time
from dataclasses import dataclass
from typing import Literal

from ipxeready.errors import Conflict
from ipxeready.said import said

#: A file gets its name a moment before whoever made it lets go of it.
_PATIENCE = 1.0
_PAUSE = 0.05


#: What is read: a master that is cloned, or a source that is converted.
Kind = Literal["master", "source"]


@dataclass(frozen=True)
class Stamp:
    """What moves when a file is written, cut, replaced or removed."""

    size: int
    mtime: int
    ctime: int

    @classmethod
    def of(cls, file: int) -> Stamp:
        """The stamp of an open file now."""
        status = os.fstat(file)
        return cls(status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def check_no_writer(file: int, name: str, *, kind: Kind = "master") -> None:
    """Return unless somebody has the file open for writing: an upload, a target of somebody's hand, a virtual machine.

    A file that a finished `mv` has just put there has no writer, however young it is.
    """
    until = time.monotonic() + _PATIENCE
    while _is_written(file):
        if time.monotonic() >= until:
            words = (
                said(
                    "master {name} is open for writing: it is still being copied there, or "
                    "something uses it as a disk. Wait until that is done, or end it "
                    "(`fuser -v {name}` in the image directory names it).",
                    name=name,
                )
                if kind == "master"
                else said(
                    "source {name} is open for writing: it is still being copied there, or "
                    "something uses it as a disk. Wait until that is done, or end it "
                    "(`fuser -v {name}` in the image directory names it).",
                    name=name,
                )
            )
            raise Conflict(words, code=f"{kind}.in_use")
        time.sleep(_PAUSE)


def check_unchanged(
    file: int, name: str, before: Stamp, *, kind: Kind = "master"
) -> None:
    """Refuse when the file is not what it was: the new image would be half of one source and half of another."""
    if Stamp.of(file) != before:
        words = (
            said(
                "master {name} changed while it was copied, so that the copy was removed. Try "
                "again when nobody works on it.",
                name=name,
            )
            if kind == "master"
            else said(
                "source {name} changed while it was copied, so that the copy was removed. Try "
                "again when nobody works on it.",
                name=name,
            )
        )
        raise Conflict(words, code=f"{kind}.changed")


def _is_written(file: int) -> bool:
    """Whether a read lease is refused, which the kernel does exactly while there is a writer.

    Where leases are not to be had (a network file system, no right to them) the answer is no, and
    only the comparison of the stamps is left.
    """
    try:
        # Whoever opens it for writing just now breaks the lease, and SIGIO would end this process; SIGURG is ignored.
        fcntl.fcntl(file, fcntl.F_SETSIG, signal.SIGURG)
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_RDLCK)
    except BlockingIOError:
        return True
    except OSError:
        return False
    fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    return False
