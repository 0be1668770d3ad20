"""Two images change places under one name: hidden names, no replacing renames, and what a crash left is decided at the start."""

from __future__ import annotations

import contextlib
import os

from agents.node.folder import Folder, names_in
from ipxeready.errors import Conflict, Unavailable
from ipxeready.said import said

#: Fixed hidden names, so that a start knows what a crash left. They end in no image's suffix.
_NEW = ".reset-new."
_OLD = ".reset-old."
_END = ".kept"


class Swap:
    """The image `name`, the new one beside it, and the old one put aside."""

    def __init__(self, folder: Folder, name: str) -> None:
        self._folder = folder
        self.name = name
        self.new = f"{_NEW}{name}{_END}"
        self.old = f"{_OLD}{name}{_END}"
        self._taken: tuple[int, int] | None = None
        """The new image, from the moment that the old one was put aside for it by us."""

    def turn(self) -> None:
        """The image goes aside, the new one takes its name; a failure leaves the image where it was."""
        new = self._identity(self.new)
        if new is None:
            raise Conflict(
                said(
                    "{name} is gone from the image directory; the disk was left as it is.",
                    name=self.new,
                ),
                code="file.missing",
            )
        self._move(self.name, self.old)
        self._taken = new
        try:
            self._move(self.new, self.name)
        except Exception:
            self.turn_back()
            raise

    def turn_back(self) -> None:
        """The old image gets its name again; the new one goes. Harmless where we turned nothing: an old image that
        was there before is not the one that was exported."""
        if self._taken is None or self._identity(self.old) is None:
            return
        if self._identity(self.name) == self._taken:
            self._remove(self.name)
        self._move(self.old, self.name)
        self._taken = None

    def restore(self) -> bool:
        """After a crash: the old image comes back where its name is free; whether it did."""
        old, there = self._identity(self.old), self._identity(self.name)
        if old is None:
            return False
        if old == there:  # killed between the two steps of a move
            self._remove(self.old)
            return True
        if there is not None:
            return False
        self._move(self.old, self.name)
        return True

    def forget_new(self) -> None:
        """Remove a new image that was not taken."""
        self._remove(self.new)

    def forget_old(self) -> None:
        """Remove the old image: the new one is exported, or the disk is deleted and must not come back at a start."""
        self._remove(self.old)

    def _identity(self, name: str) -> tuple[int, int] | None:
        """The file of that name, None when there is none."""
        with self._folder.handle() as folder:
            try:
                status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                return None
        return status.st_dev, status.st_ino

    def _move(self, source: str, destination: str) -> None:
        """Rename without ever replacing: a second name first, then the first one goes. What fails changes nothing."""
        with self._folder.handle() as folder:
            try:
                os.link(
                    source,
                    destination,
                    src_dir_fd=folder,
                    dst_dir_fd=folder,
                    follow_symlinks=False,
                )
                try:
                    os.unlink(source, dir_fd=folder)
                except OSError:
                    with contextlib.suppress(OSError):
                        os.unlink(destination, dir_fd=folder)
                    raise
                os.fsync(folder)
            except FileExistsError as error:
                raise Conflict(
                    said(
                        "{destination} exists in the image directory; look at it, and move it away.",
                        destination=destination,
                    ),
                    code="file.exists",
                ) from error
            except OSError as error:
                raise Unavailable(
                    said(
                        "{source} could not be renamed to {destination} ({why}). Look at the node's disk.",
                        source=source,
                        destination=destination,
                        why=error.strerror,
                    ),
                    code="file.write",
                ) from error

    def _remove(self, name: str) -> None:
        with self._folder.handle() as folder:
            try:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)
                os.fsync(folder)
            except OSError as error:
                raise Unavailable(
                    said(
                        "{name} could not be removed ({why}). Look at the node's disk.",
                        name=name,
                        why=error.strerror,
                    ),
                    code="file.delete",
                ) from error


def unfinished(folder: Folder) -> list[Swap]:
    """The swaps that a crash left half done, by image."""
    with folder.handle() as handle:
        names = {
            name.removeprefix(prefix).removesuffix(_END)
            for name in names_in(handle)
            for prefix in (_NEW, _OLD)
            if name.startswith(prefix) and name.endswith(_END)
        }
    return [Swap(folder, name) for name in sorted(names)]
