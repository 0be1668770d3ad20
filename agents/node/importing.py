"""An image that lies in the directory becomes a worker's disk: it gets that disk's name, without a moment in which it has none."""

from __future__ import annotations

import contextlib
import os
import re
import secrets

from agents.node.folder import Entry, names_in
from agents.node.images import Images
from agents.node.runtime import Node
from agents.protocol.filenames import check_import
from ipxeready.errors import ApplicationError, Conflict, NotFound, Unavailable
from ipxeready.said import said
from ipxeready.storage import iqn as iqns

#: A symlink that nobody follows: its text is `old/new` (no file name has a slash), made whole or not at all.
_MARK = re.compile(r"\.[0-9a-f]{12}\.import")


def check_importable(node: Node, old: str, new: str) -> Entry:
    """The entry of an image that may become `new`: no master, whole, not exported, not being made or read. Under the node's lock."""
    check_import(old)
    if words := node.images.container(old):
        raise Conflict(words, code="image.format")
    entry = node.images.check_disk(old)
    clash = node.images.find(new)
    if clash is not None and clash.name != old:
        raise Conflict(
            said(
                "the image {name} exists already; it was left as it is. Export it with existing: "
                "true, or delete it first.",
                name=clash.name,
            ),
            code="file.exists",
        )
    if node.is_making(old) or node.is_reading(old):
        raise Conflict(
            said(
                "{name} is being made or copied by another call; import it when that is done.",
                name=old,
            ),
            code="file.making",
        )
    path = node.images.path(old)
    for target in node.backend.targets():
        if any(lun["backing"] == path for lun in target["luns"]):
            raise Conflict(
                said(
                    "{name} is exported already, as {iqn}; delete that target first (without the file).",
                    name=old,
                    iqn=target["iqn"],
                ),
                code="file.exported",
            )
    return entry


def forget_old(node: Node, old: str) -> None:
    """The target of the old name, if it was taken off on purpose, is nobody's any more."""
    with contextlib.suppress(ApplicationError):
        name = iqns.check_name(old[: -len(iqns.IMAGE_SUFFIX)])
        node.memory.set(iqns.join(node.base_iqn, name), off=False)


def rename(images: Images, old: str, new: str) -> None:
    """Give an image another name, never over one that is there; what a crash cuts short, `recover` finishes."""
    if old == new:
        return
    mark = f".{secrets.token_hex(6)}.import"
    with images.handle() as folder:
        try:
            os.symlink(f"{old}/{new}", mark, dir_fd=folder)
            os.fsync(folder)
            os.link(
                old, new, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False
            )
            os.fsync(folder)
            os.unlink(old, dir_fd=folder)
            os.fsync(folder)
        except FileNotFoundError as error:
            raise NotFound(
                said("there is no {name} in the image directory.", name=old),
                code="file.missing",
            ) from error
        except FileExistsError as error:
            raise Conflict(
                said("{name} exists already.", name=new), code="file.exists"
            ) from error
        except OSError as error:
            raise Unavailable(
                said(
                    "{name} could not be renamed ({why}). Look at the node's disk.",
                    name=old,
                    why=error.strerror,
                ),
                code="file.rename",
            ) from error
        finally:
            _finish(folder, mark)


def recover(images: Images) -> list[tuple[str, str]]:
    """Finish renames that a crash cut short: the old and the new name of each."""
    done = []
    with images.handle() as folder:
        for name in names_in(folder):
            if _MARK.fullmatch(name) and (pair := _finish(folder, name)):
                done.append(pair)
    return done


def _finish(folder: int, mark: str) -> tuple[str, str] | None:
    """Where both names are the same file, the old one goes; then the mark does."""
    finished = None
    try:
        old, _, new = os.readlink(mark, dir_fd=folder).partition("/")
    except OSError:
        return None
    with contextlib.suppress(OSError):
        one, two = (
            os.stat(name, dir_fd=folder, follow_symlinks=False) for name in (old, new)
        )
        if (
            new
            and "/" not in new
            and (one.st_dev, one.st_ino) == (two.st_dev, two.st_ino)
        ):
            os.unlink(old, dir_fd=folder)
            os.fsync(folder)
            finished = (old, new)
    with contextlib.suppress(OSError):
        os.unlink(mark, dir_fd=folder)
        os.fsync(folder)
    return finished
