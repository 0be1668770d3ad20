"""Which files of the image directory may be exported or deleted; a refusal says why not, and what to do."""

from __future__ import annotations

import errno
import os
import stat

from agents.node import formats
from agents.node.folder import Entry, Folder, entry_of
from ipxeready.errors import Conflict, Invalid, NotFound
from ipxeready.said import said
from ipxeready.storage import iqn as iqns
from ipxeready.storage.sizes import SECTOR


class JudgedFolder(Folder):
    """The image directory and what is right or wrong with a file in it. Nothing here changes it."""

    def check_disk(self, name: str) -> Entry:
        """The entry of an image that may be exported writable, else a refusal that says why not."""
        return self._check(name, os.O_RDWR)

    def check_iso(self, name: str) -> Entry:
        """The entry of an ISO that may be exported read-only, else a refusal."""
        return self._check(name, os.O_RDONLY)

    def _check(self, name: str, access: int) -> Entry:
        if "/" in name or name in {"", ".", ".."} or "\0" in name:
            raise Invalid(
                said("{name} is not a name in the image directory.", name=repr(name)),
                code="file.name",
            )
        with self.handle() as folder:
            flags = access | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            try:
                file = os.open(name, flags, dir_fd=folder)
            except FileNotFoundError as error:
                raise NotFound(
                    said("there is no {name} in the image directory.", name=name),
                    code="file.missing",
                ) from error
            except OSError as error:
                if error.errno == errno.ELOOP:
                    raise Conflict(
                        said(
                            "{name} is a symlink, and symlinks are no images. Put the file itself there.",
                            name=name,
                        ),
                        code="file.symlink",
                    ) from error
                words = (
                    said(
                        "{name} cannot be opened read-write ({why}). Correct its owner, mode or mount.",
                        name=name,
                        why=error.strerror,
                    )
                    if access == os.O_RDWR
                    else said(
                        "{name} cannot be opened for reading ({why}). Correct its owner, mode or mount.",
                        name=name,
                        why=error.strerror,
                    )
                )
                raise Conflict(words, code="file.access") from error
            try:
                entry = entry_of(name, os.fstat(file))
            finally:
                os.close(file)
        if not entry.regular:
            raise Conflict(
                said("{name} is not a regular file.", name=name), code="file.kind"
            )
        if entry.size <= 0 or (access == os.O_RDWR and entry.size % SECTOR):
            raise Conflict(
                said(
                    "{name} has {size} bytes; an image is more than 0 and a multiple of {sector}. It may "
                    "be half a copy: replace it.",
                    name=name,
                    size=entry.size,
                    sector=SECTOR,
                ),
                code="file.size",
            )
        if access == os.O_RDWR and entry.links > 1:
            raise Conflict(
                said(
                    "{name} has {links} hard links, so another name is the same file. Make it a copy of "
                    "its own.",
                    name=name,
                    links=entry.links,
                ),
                code="file.links",
            )
        return entry

    def container(self, name: str) -> str | None:
        """Why an image cannot be a disk as it is: qcow2 or the like inside. None for what cannot be read, too."""
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with self.handle() as folder:
            try:
                file = os.open(name, flags, dir_fd=folder)
            except OSError:
                return None
            try:
                regular = stat.S_ISREG(os.fstat(file).st_mode)
                kind = formats.inside(file) if regular else None
            finally:
                os.close(file)
        return formats.container_problem(kind, name)

    def check_deletable(self, name: str, *, master: bool = False) -> Entry:
        """The entry of an image that may be removed: no symlink, no second link, a master only where that was said."""
        if iqns.is_master(name) and not master:
            raise Conflict(
                said(
                    "{name} is a master; it is deleted only where that is said (--master, or master=true "
                    "with DELETE /images).",
                    name=name,
                ),
                code="file.master",
            )
        with self.handle() as folder:
            try:
                entry = entry_of(
                    name, os.stat(name, dir_fd=folder, follow_symlinks=False)
                )
            except FileNotFoundError as error:
                raise NotFound(
                    said("there is no {name} in the image directory.", name=name),
                    code="file.missing",
                ) from error
        if not entry.regular:
            raise Conflict(
                said(
                    "{name} is not a regular file (a symlink is no image); remove it by hand.",
                    name=name,
                ),
                code="file.kind",
            )
        if entry.links > 1:
            raise Conflict(
                said(
                    "{name} has {links} hard links; deleting it would not free it and may be a mistake. "
                    "Look with `find -samefile` and remove it by hand.",
                    name=name,
                    links=entry.links,
                ),
                code="file.links",
            )
        return entry
