"""What lies in the image directory, for people who look after it: every file with what it is, who uses it, and its deletion."""

from __future__ import annotations

import logging
import os
from datetime import datetime

from agents.node import qemuimg
from agents.node.folder import Entry
from agents.node.rebuild import restored
from agents.node.runtime import Node
from agents.node.swapping import Swap
from agents.protocol.answers import ImageDeleted, ImageFile, ImageList, Target
from agents.protocol.filenames import FORMATS, KIND_DISK, KIND_MASTER, kind_of
from ipxeready.errors import ApplicationError, Conflict, Invalid, Unavailable
from ipxeready.said import said
from ipxeready.storage import iqn as iqns

logger = logging.getLogger(__name__)

#: No file system here has longer names, in bytes.
_LONGEST = 255


def image_list(node: Node) -> ImageList:
    """Every file that is not hidden, by name; folders are left out."""
    users = _users(node.backend.targets())
    return {
        "images": [
            _shown(node, entry, users)
            for entry in node.images.entries()
            if not entry.name.startswith(".") and not entry.folder
        ],
        "formats": list(FORMATS) if qemuimg.available() else [],
    }


def image_delete(node: Node, name: str, *, master: bool = False) -> ImageDeleted:
    """Remove a file that nobody uses. A master only with `master`, which says that its disks' clones stay and new ones end."""
    if (
        not name
        or "/" in name
        or "\0" in name
        or name.startswith(".")
        or len(os.fsencode(name)) > _LONGEST
    ):
        raise Invalid(
            said(
                "name {name} is not a file that is shown in the image directory.",
                name=repr(name),
            ),
            code="file.name",
            field="name",
        )
    with (
        node.log.about("image.delete", name=name, master=master or None) as note,
        node.changing(),
    ):
        entry = node.images.check_deletable(name, master=master)
        # A target system that was restarted just now shows none, and machines run from these files all the same.
        users = _users(restored(node, node.targets()))
        if user := users.get(node.images.path(name)):
            raise Conflict(
                said(
                    "{name} is exported as {user}; delete that target first.",
                    name=name,
                    user=user,
                ),
                code="file.exported",
            )
        if node.is_making(name):
            raise Conflict(
                said(
                    "{name} is being made right now; delete it when that is done.",
                    name=name,
                ),
                code="file.making",
            )
        if node.is_reading(name):
            raise Conflict(
                said(
                    "{name} is being copied right now; delete it when that is done.",
                    name=name,
                ),
                code="file.reading",
            )
        node.images.delete(name, entry.identity)
        Swap(node.images, name).forget_old()
        note["freed"] = entry.allocated
        _forget(node, name)
    return {"deleted": name, "freed": entry.allocated}


def _users(targets: list[Target]) -> dict[str, str]:
    """Which target serves a path."""
    return {
        lun["backing"]: target["iqn"] for target in targets for lun in target["luns"]
    }


def _shown(node: Node, entry: Entry, users: dict[str, str]) -> ImageFile:
    stamp = datetime.fromtimestamp(entry.mtime).astimezone()
    shown: ImageFile = {
        "name": entry.name,
        "kind": kind_of(entry.name),
        "size": entry.size,
        "allocated": entry.allocated,
        "mtime": stamp.isoformat(timespec="seconds"),
    }
    if user := users.get(node.images.path(entry.name)):
        shown["target"] = user
    if problem := _problem(node, entry, shown["kind"], used=bool(user)):
        shown["problem"] = problem
    return shown


def _problem(node: Node, entry: Entry, kind: str, *, used: bool) -> str | None:
    if node.is_making(entry.name):
        return said("is being made")
    try:
        if kind in (KIND_DISK, KIND_MASTER):
            # What a machine writes on its disk is its own affair.
            if not used and (words := node.images.container(entry.name)):
                return words
            node.images.check_disk(entry.name)
        else:
            node.images.check_iso(entry.name)
    except ApplicationError as error:
        return error.message
    return None


def _forget(node: Node, name: str) -> None:
    """A file that is gone is not off on purpose."""
    stem = name.removesuffix(iqns.IMAGE_SUFFIX)
    try:
        iqn = iqns.join(node.base_iqn, iqns.check_name(stem))
    except ApplicationError:
        return  # never was a target
    try:
        node.memory.set(iqn, off=False)
    except Unavailable as error:  # the disk is still full
        logger.warning("%s is deleted; %s", name, error.message)
