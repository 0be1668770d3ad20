"""The image directory as it lies there: names, files and room. Nothing here changes it."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from agents.node.pool import Pool
from ipxeready.errors import Unavailable
from ipxeready.said import said
from ipxeready.storage import iqn as iqns


@dataclass(frozen=True)
class Entry:
    """One name of the directory, as it lies there (a symlink is not followed)."""

    name: str
    device: int
    inode: int
    size: int
    allocated: int
    mtime: float
    links: int
    regular: bool
    folder: bool = False

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode: the file itself, whatever its name."""
        return self.device, self.inode


def entry_of(name: str, status: os.stat_result) -> Entry:
    """The entry of a name from its `stat`."""
    return Entry(
        name=name,
        device=status.st_dev,
        inode=status.st_ino,
        size=status.st_size,
        allocated=status.st_blocks * 512,
        mtime=status.st_mtime,
        links=status.st_nlink,
        regular=stat.S_ISREG(status.st_mode),
        folder=stat.S_ISDIR(status.st_mode),
    )


class Mount(NamedTuple):
    """A file system: its name, and where it is mounted."""

    kind: str
    point: str


class Folder:
    """The flat directory of images. Every call opens it anew, so that a pool mounted later is seen.

    With a `state` file a pool that is known and not mounted is Unavailable (see `pool`).
    """

    def __init__(self, folder: Path, *, state: Path | None = None) -> None:
        self.folder = Path(os.path.realpath(folder))
        self._pool = None if state is None else Pool(self.folder, state)

    @contextlib.contextmanager
    def handle(self) -> Iterator[int]:
        """The open directory; names are resolved below it and never through a symlink.

        What the disk says to it that nobody has words for (EIO, ESTALE, ENOSPC) is Unavailable.
        """
        try:
            folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise Unavailable(
                said(
                    "the image directory {folder} cannot be opened ({why}). Mount it, or correct "
                    "IPXE_DISK_DIR.",
                    folder=self.folder,
                    why=error.strerror,
                ),
                code="folder.missing",
            ) from error
        try:
            if self._pool is not None:
                self._pool.check(folder)
            yield folder
        except OSError as error:
            raise Unavailable(
                said(
                    "the image directory {folder} fails ({why}). Look at the node's disk and the "
                    "kernel's log.",
                    folder=self.folder,
                    why=error.strerror or error,
                ),
                code="folder.io",
            ) from error
        finally:
            os.close(folder)

    def adopt(self) -> None:
        """Know this directory from now on, once something is in it; Unavailable when another one is known."""
        with self.handle() as folder:
            if self._pool is not None:
                self._pool.adopt(folder)

    def path(self, name: str) -> str:
        """The absolute path that target systems open."""
        return str(self.folder / name)

    def entries(self) -> list[Entry]:
        """All that lies there, by name."""
        found = []
        with self.handle() as folder:
            for name in names_in(folder):
                with contextlib.suppress(FileNotFoundError):
                    found.append(
                        entry_of(
                            name, os.stat(name, dir_fd=folder, follow_symlinks=False)
                        )
                    )
        return found

    def find(self, name: str) -> Entry | None:
        """The entry of that name; failing that, one that differs only in case (dnsmasq and LIO lower-case names)."""
        with self.handle() as folder:
            # Only what is asked for is looked at: a batch asks for each of its disks.
            if (exact := _entry_at(folder, name)) is not None:
                return exact
            wanted = name.lower()
            others = [other for other in names_in(folder) if other.lower() == wanted]
            found = (_entry_at(folder, other) for other in others)
            return next((entry for entry in found if entry is not None), None)

    def stamp(self) -> tuple[int, int, int]:
        """What moves when a name comes or goes: device, inode and mtime of the directory."""
        with self.handle() as folder:
            status = os.fstat(folder)
        return status.st_dev, status.st_ino, status.st_mtime_ns

    def masters(self) -> list[Entry]:
        """The masters: regular files that follow the rule of `iqn.is_master`."""
        return [e for e in self.entries() if e.regular and iqns.is_master(e.name)]

    def room(self) -> tuple[int, int]:
        """Free and total bytes of the file system."""
        with self.handle() as folder:
            status = os.fstatvfs(folder)
        return status.f_bavail * status.f_frsize, status.f_blocks * status.f_frsize

    def writable(self) -> bool:
        """Whether files can be made here: neither the mount nor the mode forbids it."""
        with self.handle() as folder:
            return os.access(".", os.W_OK, dir_fd=folder)

    def fs_type(self) -> str:
        """The file system's name."""
        return self.mount().kind

    def mount(self) -> Mount:
        """The file system that the directory lies on, from the mount table."""
        with self.handle() as folder:
            device = os.fstat(folder).st_dev
        wanted = f"{os.major(device)}:{os.minor(device)}"
        best = (-1, -1, "unknown", "")
        for line in (
            Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
        ):
            left, _, right = line.partition(" - ")
            fields, kind = left.split(), right.split(" ", 1)[0]
            mount = fields[4].encode().decode("unicode_escape", errors="replace")
            # The same file system may also be seen elsewhere (bind mounts), and btrfs
            # numbers its subvolumes differently: then the nearest mount above counts.
            above = self.folder.is_relative_to(mount)
            rank = 2 * above + (fields[2] == wanted)
            if rank:
                best = max(best, (rank, len(mount), kind, mount))
        return Mount(best[2], best[3])


def _entry_at(folder: int, name: str) -> Entry | None:
    """The entry of exactly that name below an open directory; None when there is none."""
    if "/" in name or "\0" in name or name in {"", ".", ".."}:
        return None
    try:
        return entry_of(name, os.stat(name, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        return None


def names_in(folder: int) -> list[str]:
    """All names of an open directory, sorted."""
    with os.scandir(folder) as found:
        return sorted(entry.name for entry in found)


def image_of(path: str, folder: Path) -> str | None:
    """The file name of a backing path that lies directly in `folder`, else None."""
    parent, name = os.path.split(path)
    return name if parent == str(folder) and name not in {"", ".", ".."} else None
