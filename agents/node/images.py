"""The image directory: the only code that makes, looks at and removes files there."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import secrets
import stat
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agents.node import copying
from agents.node.errors import NoRoom
from ipxeready.errors import ApplicationError, Conflict, Invalid, NotFound, Unavailable
from ipxeready.storage import iqn as iqns
from ipxeready.storage.sizes import SECTOR, format_size

#: What we are still writing: hidden, and never an image's ending.
PART = ".part"
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_MODE = 0o600


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

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode: the file itself, whatever its name."""
        return self.device, self.inode


@dataclass(frozen=True)
class Made:
    """A new image: its name, its file, and how its bytes came there."""

    name: str
    identity: tuple[int, int]
    how: str


def _entry(name: str, status: os.stat_result) -> Entry:
    return Entry(
        name=name,
        device=status.st_dev,
        inode=status.st_ino,
        size=status.st_size,
        allocated=status.st_blocks * 512,
        mtime=status.st_mtime,
        links=status.st_nlink,
        regular=stat.S_ISREG(status.st_mode),
    )


class Images:
    """The flat directory of images. Every call opens it anew, so that a pool mounted later is seen."""

    def __init__(self, folder: Path) -> None:
        self.folder = Path(os.path.realpath(folder))
        self._guard = threading.Lock()
        self._coming: dict[str, int] = {}
        """Bytes that copies under way will still take, by part name."""
        self._reflink: dict[int, bool] = {}

    # -- looking ---------------------------------------------------------

    @contextlib.contextmanager
    def handle(self) -> Iterator[int]:
        """The open directory; names are resolved below it and never through a symlink."""
        try:
            folder = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise Unavailable(
                f"the image directory {self.folder} cannot be opened ({error.strerror}). "
                "Mount it, or correct IPXE_DISK_DIR.",
                code="folder.missing",
            ) from error
        try:
            yield folder
        finally:
            os.close(folder)

    def path(self, name: str) -> str:
        """The absolute path that target systems open."""
        return str(self.folder / name)

    def entries(self) -> list[Entry]:
        """All that lies there, by name."""
        found = []
        with self.handle() as folder:
            for name in _names(folder):
                with contextlib.suppress(FileNotFoundError):
                    found.append(
                        _entry(
                            name, os.stat(name, dir_fd=folder, follow_symlinks=False)
                        )
                    )
        return found

    def find(self, name: str) -> Entry | None:
        """The entry of that name; failing that, one that differs only in case (dnsmasq and LIO lower-case names)."""
        others = []
        for entry in self.entries():
            if entry.name == name:
                return entry
            if entry.name.lower() == name.lower():
                others.append(entry)
        return others[0] if others else None

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

    def fs_type(self) -> str:
        """The file system's name, from the mount table."""
        with self.handle() as folder:
            device = os.fstat(folder).st_dev
        wanted = f"{os.major(device)}:{os.minor(device)}"
        best = (-1, "unknown")
        for line in (
            Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
        ):
            left, _, right = line.partition(" - ")
            fields, kind = left.split(), right.split(" ", 1)[0]
            mount = fields[4].encode().decode("unicode_escape", errors="replace")
            if fields[2] == wanted:  # btrfs numbers subvolumes differently: path below
                best = max(best, (1 << 20, kind))
            elif self.folder.is_relative_to(mount):
                best = max(best, (len(mount), kind))
        return best[1]

    # -- judging ---------------------------------------------------------

    def check_disk(self, name: str) -> Entry:
        """The entry of an image that may be exported writable, else a refusal that says why not."""
        return self._check(name, os.O_RDWR)

    def check_iso(self, name: str) -> Entry:
        """The entry of an ISO that may be exported read-only, else a refusal."""
        return self._check(name, os.O_RDONLY)

    def _check(self, name: str, access: int) -> Entry:
        if "/" in name or name in {"", ".", ".."} or "\0" in name:
            raise Invalid(
                f"{name!r} is not a name in the image directory.", code="file.name"
            )
        with self.handle() as folder:
            flags = access | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            try:
                file = os.open(name, flags, dir_fd=folder)
            except FileNotFoundError as error:
                raise NotFound(
                    f"there is no {name} in the image directory.", code="file.missing"
                ) from error
            except OSError as error:
                if error.errno == errno.ELOOP:
                    raise Conflict(
                        f"{name} is a symlink, and symlinks are no images. Put the file itself there.",
                        code="file.symlink",
                    ) from error
                raise Conflict(
                    f"{name} cannot be opened {'read-write' if access == os.O_RDWR else 'for reading'} "
                    f"({error.strerror}). Correct its owner, mode or mount.",
                    code="file.access",
                ) from error
            try:
                entry = _entry(name, os.fstat(file))
            finally:
                os.close(file)
        if not entry.regular:
            raise Conflict(f"{name} is not a regular file.", code="file.kind")
        if entry.size <= 0 or (access == os.O_RDWR and entry.size % SECTOR):
            raise Conflict(
                f"{name} has {entry.size} bytes; an image is more than 0 and a multiple of {SECTOR}. "
                "It may be half a copy: replace it.",
                code="file.size",
            )
        if access == os.O_RDWR and entry.links > 1:
            raise Conflict(
                f"{name} has {entry.links} hard links, so another name is the same file. Make it a copy of its own.",
                code="file.links",
            )
        return entry

    def check_deletable(self, name: str) -> Entry:
        """The entry of an image that a worker's deletion may remove: no master, no symlink, no second link."""
        if iqns.is_master(name):
            raise Conflict(
                f"{name} is a master; masters are never deleted here.",
                code="file.master",
            )
        with self.handle() as folder:
            try:
                entry = _entry(
                    name, os.stat(name, dir_fd=folder, follow_symlinks=False)
                )
            except FileNotFoundError as error:
                raise NotFound(
                    f"there is no {name} in the image directory.", code="file.missing"
                ) from error
        if not entry.regular:
            raise Conflict(
                f"{name} is not a regular file (a symlink is no image); remove it by hand.",
                code="file.kind",
            )
        if entry.links > 1:
            raise Conflict(
                f"{name} has {entry.links} hard links; deleting it would not free it and may be a mistake. "
                "Look with `find -samefile` and remove it by hand.",
                code="file.links",
            )
        return entry

    # -- changing --------------------------------------------------------

    def create_empty(self, name: str, size: int) -> Made:
        """A new sparse image of `size` bytes; Conflict when the name is there, NoRoom when the disk is full."""
        free, total = self.room()
        reserve = _reserve(total)
        if free < reserve:
            raise NoRoom.of(name, needed=0, free=free, reserve=reserve)

        def fill(part: int, _: str) -> str:
            try:
                os.ftruncate(part, size)
            except OSError as error:
                if error.errno == errno.EFBIG:
                    raise NoRoom(
                        f"no room for {name}: {format_size(size)} is more than one file of this "
                        f"file system can have ({self.fs_type()}).",
                    ) from error
                raise
            return "empty"

        return self._make(name, fill, needed=0)

    def clone(
        self,
        master: str,
        name: str,
        *,
        progress: Callable[[int], None] = lambda _: None,
    ) -> Made:
        """A new image with the bytes of `master`, by FICLONE or in full; all or nothing, never over an existing name."""
        with self.handle() as folder:
            try:
                source = os.open(
                    master,
                    os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC,
                    dir_fd=folder,
                )
            except OSError as error:
                raise NotFound(
                    f"master {master!r} cannot be opened ({error.strerror}).",
                    field="master",
                ) from error
        try:
            status = _entry(master, os.fstat(source))
            if not status.regular or status.size <= 0 or status.size % SECTOR:
                raise Conflict(
                    f"master {master} is not a regular file of a multiple of {SECTOR} bytes; "
                    "it may still be uploading. Replace it.",
                    code="master.broken",
                )

            def fill(part: int, part_name: str) -> str:
                why = copying.reflink(source, part)
                if why is None:
                    return "reflink"
                self._claim(part_name, name, status.allocated)

                def step(count: int) -> None:
                    with self._guard:
                        self._coming[part_name] -= count
                    progress(count)

                copying.sparse_copy(source, part, progress=step)
                if os.fstat(part).st_size != os.fstat(source).st_size:
                    raise Conflict(
                        f"master {master} changed its size while it was copied; try again.",
                        code="master.changed",
                    )
                return f"full copy, because {why}"

            return self._make(name, fill, needed=status.allocated)
        finally:
            os.close(source)

    def delete(self, name: str, identity: tuple[int, int]) -> None:
        """Remove `name` if it still is that very file; done already is fine."""
        with self.handle() as folder:
            try:
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                return
            if (status.st_dev, status.st_ino) != identity:
                raise Conflict(
                    f"{name} was replaced by another file meanwhile; it was left there.",
                    code="file.replaced",
                )
            try:
                os.unlink(name, dir_fd=folder)
                os.fsync(folder)
            except OSError as error:
                raise Unavailable(
                    f"{name} could not be deleted ({error.strerror}). Look at the node's disk.",
                    code="file.delete",
                ) from error

    def clean(self) -> list[str]:
        """Remove what killed copies left, i.e. parts that no process is writing; their names."""
        gone = []
        with self.handle() as folder:
            for name in _names(folder):
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

    def reflink(self) -> bool:
        """Whether FICLONE works here: a real clone of a real, synced block, tried once for each file system."""
        with self.handle() as folder:
            device = os.fstat(folder).st_dev
            known = self._reflink.get(device)
            if known is None:
                known = self._reflink[device] = self._probe(folder)
        return known

    # -- inside ----------------------------------------------------------

    def _probe(self, folder: int) -> bool:
        names = [f".probe-{secrets.token_hex(6)}{PART}" for _ in range(2)]
        files: list[int] = []
        block = secrets.token_bytes(64 << 10)
        try:
            for name in names:
                files.append(_open_part(name, folder))
            os.write(files[0], block)
            if copying.reflink(files[0], files[1]) is not None:
                return False
            return os.pread(files[1], len(block), 0) == block
        except OSError:
            return False
        finally:
            for file in files:
                os.close(file)
            for name in names:
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=folder)

    def _claim(self, part_name: str, name: str, needed: int) -> None:
        """Set room aside for a full copy, beside what other copies still need, or NoRoom."""
        free, total = self.room()
        reserve = _reserve(total)
        with self._guard:
            free -= sum(max(left, 0) for left in self._coming.values())
            if needed > free - reserve:
                raise NoRoom.of(name, needed=needed, free=free, reserve=reserve)
            self._coming[part_name] = needed

    def _make(self, name: str, fill: Callable[[int, str], str], *, needed: int) -> Made:
        """Fill a hidden part, sync it, then give it its name, unless that is taken."""
        part_name = f".{name[:180]}.{secrets.token_hex(6)}{PART}"
        with self.handle() as folder:
            part = _open_part(part_name, folder)
            try:
                how = fill(part, part_name)
                os.fsync(part)
                # link() instead of rename(): it never replaces.
                os.link(part_name, name, src_dir_fd=folder, dst_dir_fd=folder)
                status = os.fstat(part)
            except FileExistsError as error:
                raise Conflict(f"{name} exists already.", code="file.exists") from error
            except OSError as error:
                raise self._failed(error, name, needed) from error
            finally:
                with self._guard:
                    self._coming.pop(part_name, None)
                with contextlib.suppress(OSError):
                    os.unlink(part_name, dir_fd=folder)
                os.close(part)
            os.fsync(folder)
        return Made(name, (status.st_dev, status.st_ino), how)

    def _failed(self, error: OSError, name: str, needed: int) -> ApplicationError:
        if error.errno in _FULL:
            free, total = self.room()
            return NoRoom.of(name, needed=needed, free=free, reserve=_reserve(total))
        return Unavailable(
            f"{name} could not be written: {error.strerror}. Look at the node's disk.",
            code="file.write",
        )


def _names(folder: int) -> list[str]:
    with os.scandir(folder) as found:
        return sorted(entry.name for entry in found)


def _reserve(total: int) -> int:
    """What stays free for the clones that are already growing: 1 GiB, or a fiftieth of a small disk."""
    return min(1 << 30, total // 50)


def _open_part(name: str, folder: int) -> int:
    """A new hidden file, locked for as long as we write it (so that a start elsewhere leaves it alone)."""
    try:
        part = os.open(
            name,
            os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC,
            _MODE,
            dir_fd=folder,
        )
    except OSError as error:
        if error.errno in _FULL:
            raise NoRoom(f"no room for {name}: the image directory is full.") from error
        raise Unavailable(
            f"the image directory takes no new file ({error.strerror}). Look at its mount and owner.",
            code="folder.write",
        ) from error
    fcntl.flock(part, fcntl.LOCK_EX)
    return part


def image_of(path: str, folder: Path) -> str | None:
    """The file name of a backing path that lies directly in `folder`, else None."""
    parent, name = os.path.split(path)
    return name if parent == str(folder) and name not in {"", ".", ".."} else None
