"""The images: the only code that makes and removes files of the image directory."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from agents.node import copying, extents, formats, parts, sample
from agents.node.errors import NoRoom
from agents.node.folder import Entry, entry_of
from agents.node.judging import JudgedFolder
from agents.node.parts import FULL, PART
from agents.node.quiet import Stamp, check_no_writer, check_unchanged
from ipxeready.errors import ApplicationError, Conflict, NotFound, Unavailable
from ipxeready.said import said
from ipxeready.storage.sizes import SECTOR, format_size


@dataclass(frozen=True)
class Made:
    """A new image: its name, its file, how its bytes came there, in what time, and how many were really copied."""

    name: str
    identity: tuple[int, int]
    how: str
    seconds: float
    copied: int


@dataclass(frozen=True)
class Filled:
    """How a part got its bytes, and the seconds in which it only waited for its turn."""

    how: str
    copied: int = 0
    waited: float = 0


class Images(JudgedFolder):
    """The image directory and what may be done in it: flat safe names, all or nothing, never over a file."""

    def __init__(
        self, folder: Path, *, state: Path | None = None, may_reflink: bool = True
    ) -> None:
        super().__init__(folder, state=state)
        self.may_reflink = may_reflink
        self._guard = threading.Lock()
        self._coming: dict[str, int] = {}
        """Bytes that copies under way will still take, by part name."""
        self._reflink: dict[int, bool] = {}

    # -- changing --------------------------------------------------------

    def create_empty(self, name: str, size: int) -> Made:
        """A new sparse image of `size` bytes; Conflict when the name is there, NoRoom when the disk is full."""
        self._check_reserve(name)

        def fill(part: int, _: str) -> Filled:
            try:
                os.ftruncate(part, size)
            except OSError as error:
                if error.errno == errno.EFBIG:
                    raise NoRoom(
                        said(
                            "no room for {name}: {size} is more than one file of this file system can have "
                            "({kind}).",
                            name=name,
                            size=format_size(size),
                            kind=self.fs_type(),
                        ),
                    ) from error
                raise
            return Filled("empty")

        return self._make(name, fill, needed=0)

    def clone(
        self,
        master: str,
        name: str,
        *,
        progress: Callable[[int], None] = lambda _: None,
        total: Callable[[int], None] = lambda _: None,
    ) -> Made:
        """A new image with the bytes of `master`, by FICLONE or in full; all or nothing, never over an existing name.

        The master must lie still meanwhile. A full copy calls `total` once with the bytes that it will go through, when
        it has its room and before it begins, and `progress` with those of each step (0 around a reflink); what either
        raises ends it, and nothing is left.
        """
        with self._master(master) as source:
            before = Stamp.of(source)
            self._check_reserve(name)
            if not self.reflink():
                # Said before the progress begins, not at the end of a job; set aside when its turn has come.
                self.check_room(name, _needed(source))

            def fill(part: int, part_name: str) -> Filled:
                progress(0)
                why = self._reflinked(source, part)
                progress(0)
                if why is None:
                    filled = self._shared(part)
                else:
                    self._claim(part_name, name, _needed(source))
                    turn = time.monotonic()
                    total(extents.data_bytes(source))  # may wait for other copies
                    waited = time.monotonic() - turn
                    copied = self._copied(source, part, part_name, name, progress)
                    filled = Filled(f"full copy, because {why}", copied, waited)
                check_unchanged(source, master, before)
                return filled

            allocated = os.fstat(source).st_blocks * 512
            return self._make(name, fill, needed=allocated)

    def fill_new(
        self,
        name: str,
        fill: Callable[[int, Callable[[int], None]], str],
        *,
        needed: int,
    ) -> Made:
        """A new image that `fill` writes: it gets the open part, and tells how many more bytes of `needed` are written."""

        def claimed(part: int, part_name: str) -> Filled:
            self._claim(part_name, name, needed)

            def step(count: int) -> None:
                with self._guard:
                    self._coming[part_name] -= count

            return Filled(fill(part, step), needed)

        return self._make(name, claimed, needed=needed)

    def check_room(self, name: str, needed: int) -> None:
        """NoRoom unless `needed` bytes fit beside the reserve and what copies under way will still take."""
        room = self.room()
        with self._guard:
            self._check_left(name, needed, room)

    def delete(self, name: str, identity: tuple[int, int]) -> None:
        """Remove `name` if it still is that very file; done already is fine."""
        with self.handle() as folder:
            try:
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                return
            if (status.st_dev, status.st_ino) != identity:
                raise Conflict(
                    said(
                        "{name} was replaced by another file meanwhile; it was left there.",
                        name=name,
                    ),
                    code="file.replaced",
                )
            try:
                os.unlink(name, dir_fd=folder)
                os.fsync(folder)
            except OSError as error:
                raise Unavailable(
                    said(
                        "{name} could not be deleted ({why}). Look at the node's disk.",
                        name=name,
                        why=error.strerror,
                    ),
                    code="file.delete",
                ) from error

    def resize(self, entry: Entry, size: int) -> None:
        """Give an image `size` bytes, a hole at its end where that is more; Conflict when it was replaced meanwhile."""
        with self.handle() as folder:
            try:
                file = os.open(
                    entry.name, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder
                )
                try:
                    if entry_of(entry.name, os.fstat(file)).identity != entry.identity:
                        raise Conflict(
                            said(
                                "{name} was replaced by another file meanwhile; it was left as it is.",
                                name=entry.name,
                            ),
                            code="file.replaced",
                        )
                    os.ftruncate(file, size)
                    os.fsync(file)
                finally:
                    os.close(file)
            except OSError as error:
                if error.errno in FULL:
                    raise NoRoom(
                        said(
                            "no room for {name}: {size} is more than one file of this file system can have "
                            "({kind}).",
                            name=entry.name,
                            size=format_size(size),
                            kind=self.fs_type(),
                        ),
                    ) from error
                raise Unavailable(
                    said(
                        "{name} could not be made {size} bytes large ({why}). Look at the node's disk.",
                        name=entry.name,
                        size=size,
                        why=error.strerror,
                    ),
                    code="file.write",
                ) from error

    def clean(self) -> list[str]:
        """Remove what killed copies left; their names."""
        with self.handle() as folder:
            return parts.clean(folder)

    def reflink(self) -> bool:
        """Whether clones share blocks here: a real clone of a real, synced block, tried once for each file system."""
        if not self.may_reflink:
            return False
        with self.handle() as folder:
            device = os.fstat(folder).st_dev
            if device not in self._reflink:
                found = parts.probe(folder)
                if found is None:
                    return False
                self._reflink[device] = found
            return self._reflink[device]

    # -- inside ----------------------------------------------------------

    @contextlib.contextmanager
    def _master(self, name: str) -> Iterator[int]:
        """A master, open for reading: a whole disk, and nobody is writing it."""
        with self.handle() as folder:
            try:
                source = os.open(
                    name,
                    os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC,
                    dir_fd=folder,
                )
            except OSError as error:
                raise NotFound(
                    said(
                        "master {name} cannot be opened ({why}).",
                        name=repr(name),
                        why=error.strerror,
                    ),
                    field="master",
                ) from error
        try:
            status = entry_of(name, os.fstat(source))
            if status.regular:
                formats.check_raw(source, name)
            if not status.regular or status.size <= 0 or status.size % SECTOR:
                raise Conflict(
                    said(
                        "master {name} is not a regular file of a multiple of {sector} bytes; it may still "
                        "be uploading. Replace it.",
                        name=name,
                        sector=SECTOR,
                    ),
                    code="master.broken",
                )
            check_no_writer(source, name)
            yield source
        finally:
            os.close(source)

    def _reflinked(self, source: int, part: int) -> str | None:
        """None when the part is a clone of the source now, else why it is not."""
        if not self.may_reflink:
            return "IPXE_AGENT_REFLINK=never"
        return copying.reflink(source, part)

    @staticmethod
    def _shared(part: int) -> Filled:
        """A clone, and what it took: a file system that copies behind our back is not called cheap."""
        if extents.shares_blocks(part) is False:
            taken = os.fstat(part).st_blocks * 512
            return Filled("reflink, but the file system shares nothing", taken)
        return Filled("reflink")

    def _copied(
        self,
        source: int,
        part: int,
        part_name: str,
        name: str,
        progress: Callable[[int], None],
    ) -> int:
        """Copy in full, in room that was set aside; the bytes written.

        Reading it all again would compare memory with memory, so only a sample is, for the one thing that a
        copy can miss: data where the file system spoke of a hole.
        """
        needed, gone = self._coming[part_name], 0

        def step(count: int) -> None:
            nonlocal gone
            gone += count
            # What is not on its way to the disk yet is not missing in the free bytes of every file system.
            left = needed - max(0, gone - 2 * copying.WINDOW)
            with self._guard:
                self._coming[part_name] = left
            progress(count)

        copied = copying.sparse_copy(source, part, progress=step)
        place = sample.differs(source, part)
        if place is not None or os.fstat(part).st_size != os.fstat(source).st_size:
            where = (
                said("in size")
                if place is None
                else said("at byte {place}", place=place)
            )
            raise Conflict(
                said(
                    "the copy of {name} differs from its master {where}: the master changed meanwhile, "
                    "or the disk does not tell the truth. It was removed; try again, and look at the "
                    "node's disk if it stays so.",
                    name=name,
                    where=where,
                ),
                code="master.changed",
            )
        return copied

    def _check_reserve(self, name: str) -> None:
        """Refuse a new image when even those that are there have too little room to grow."""
        free, total = self.room()
        reserve = reserve_of(total)
        if free < reserve:
            raise NoRoom.of(name, needed=0, free=free, reserve=reserve)

    def _claim(self, part_name: str, name: str, needed: int) -> None:
        """Set room aside for a full copy, beside what other copies still need, or NoRoom."""
        room = self.room()
        with self._guard:
            self._check_left(name, needed, room)
            self._coming[part_name] = needed

    def _check_left(self, name: str, needed: int, room: tuple[int, int]) -> None:
        """What `check_room` says of a room that was measured; the caller holds the guard."""
        free, total = room
        reserve = reserve_of(total)
        free -= sum(max(left, 0) for left in self._coming.values())
        if needed > free - reserve:
            raise NoRoom.of(name, needed=needed, free=free, reserve=reserve)

    def _make(
        self, name: str, fill: Callable[[int, str], Filled], *, needed: int
    ) -> Made:
        """Fill a hidden part, sync it, then give it its name, unless that is taken."""
        begin = time.monotonic()
        part_name = f".{name[:180]}.{secrets.token_hex(6)}{PART}"
        with self.handle() as folder:
            part = parts.open_part(part_name, folder)
            try:
                filled = fill(part, part_name)
                os.fsync(part)
                # link() instead of rename(): it never replaces.
                os.link(part_name, name, src_dir_fd=folder, dst_dir_fd=folder)
                status = os.fstat(part)
            except FileExistsError as error:
                raise Conflict(
                    said("{name} exists already.", name=name), code="file.exists"
                ) from error
            except OSError as error:
                raise self._failed(error, name, needed) from error
            finally:
                with self._guard:
                    self._coming.pop(part_name, None)
                with contextlib.suppress(OSError):
                    os.unlink(part_name, dir_fd=folder)
                os.close(part)
            try:
                os.fsync(folder)
            except OSError as error:
                # Whoever is told that it was not made must not find it there.
                with contextlib.suppress(OSError):
                    os.unlink(name, dir_fd=folder)
                raise self._failed(error, name, needed) from error
            if self._pool is not None:
                self._pool.adopt(folder)
        return Made(
            name,
            (status.st_dev, status.st_ino),
            filled.how,
            seconds=round(time.monotonic() - begin - filled.waited, 3),
            copied=filled.copied,
        )

    def _failed(self, error: OSError, name: str, needed: int) -> ApplicationError:
        if error.errno == errno.EDQUOT:
            return NoRoom(
                said(
                    "no room for {name}: the quota of the image directory is used up. Raise it or free "
                    "some space.",
                    name=name,
                ),
                extra={"needed": needed},
            )
        if error.errno in FULL:
            free, total = self.room()
            return NoRoom.of(name, needed=needed, free=free, reserve=reserve_of(total))
        return Unavailable(
            said(
                "{name} could not be written: {why}. Look at the node's disk.",
                name=name,
                why=error.strerror,
            ),
            code="file.write",
        )


def _needed(source: int) -> int:
    """Bytes that a full copy takes: the data, or what is allocated where that is less (compressed)."""
    return min(extents.data_bytes(source), os.fstat(source).st_blocks * 512)


def reserve_of(total: int) -> int:
    """What stays free for the clones that are already growing: 1 GiB, or a fiftieth of a small disk."""
    return min(1 << 30, total // 50)
