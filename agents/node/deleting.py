"""Targets that are taken off, and their images: target first and image last."""

from __future__ import annotations

import logging

from agents.node import access
from agents.node.backends.base import in_use
from agents.node.existing import named
from agents.node.folder import image_of
from agents.node.memory import CANNOT_WRITE, State
from agents.node.rebuild import restored
from agents.node.runtime import Node
from agents.node.swapping import Swap
from agents.protocol.answers import Deleted, Target
from agents.protocol.systems import CD
from ipxeready.errors import ApplicationError, Conflict, Invalid, NotFound, Unavailable
from ipxeready.said import said
from ipxeready.storage import iqn as iqns

logger = logging.getLogger(__name__)


def target_delete(
    node: Node, iqn: str, *, delete_file: bool = False, force: bool = False
) -> Deleted:
    """Remove a target and, if asked, its image: target first, image last.

    A kept image stays off until it is exported again. Repeating a call that died half-way
    finishes it: the target that is gone is no error while the image is still to be deleted.
    """
    name = iqns.split_target(iqn, node.base_iqn).name
    iqn = f"{node.base_iqn}:{name}"
    with (
        node.taking_off(iqn),
        node.log.about(
            "lun.delete", iqn=iqn, delete_file=delete_file, force=force or None
        ),
        node.changing(),
    ):
        path = node.images.path(name + iqns.IMAGE_SUFFIX)
        around = restored(node, node.about(iqn, path))
        target = named(around, iqn)
        if target is None:
            return _delete_rest(node, iqn, name, delete_file)
        if target["sessions"] and not force:
            raise in_use(target)
        if any(lun["backing"] != path for lun in target["luns"]):  # an older hand's
            around = node.targets()
        file = _file_to_delete(node, target, around) if delete_file else None
        returns = (
            node.images.find(name + iqns.IMAGE_SUFFIX) is not None
            or node.images.find(name) is not None
        )
        before = _remember_off(node, iqn, off=returns or None, needed=file is None)
        try:
            node.unexport(target["iqn"], force=force)
        except ApplicationError:
            if before is not None:
                node.memory.restore(iqn, before)
            raise
        node.exported.discard(iqn)
        if file is not None:
            node.images.delete(*file)
            Swap(node.images, file[0]).forget_old()
        if file is not None or not returns:
            _forget_deleted(node, iqn)
        answer: Deleted = {"deleted": iqn, "delete_file": delete_file}
        if target["sessions"]:
            answer["closed"] = target["sessions"]
        return answer


def _file_to_delete(
    node: Node, target: Target, around: list[Target]
) -> tuple[str, tuple[int, int]] | None:
    """The image behind a target, if it may be deleted; None when it is gone already. `around`: who else may have it."""
    if any(lun["type"] == CD for lun in target["luns"]):
        raise Invalid(
            said(
                "delete_file=true: an ISO may serve other machines and is never deleted here. Repeat "
                "without delete_file, and remove the ISO by hand."
            ),
            code="file.iso",
            field="delete_file",
        )
    backings = {lun["backing"] for lun in target["luns"]}
    if not backings:
        return None
    backing = backings.pop()
    name = image_of(backing, node.images.folder)
    if name is None or backings:
        raise Conflict(
            said(
                "{iqn} is backed by {backing}, which is not an image of {folder}. Repeat without "
                "delete_file.",
                iqn=target["iqn"],
                backing=backing,
                folder=node.images.folder,
            ),
            code="file.outside",
        )
    for other in around:
        if other["iqn"] != target["iqn"] and any(
            lun["backing"] == backing for lun in other["luns"]
        ):
            raise Conflict(
                said(
                    "{name} also backs {iqn}; delete that target first.",
                    name=name,
                    iqn=other["iqn"],
                ),
                code="file.shared",
            )
    try:
        return name, node.images.check_deletable(name).identity
    except NotFound:
        return None


def _delete_rest(node: Node, iqn: str, name: str, delete_file: bool) -> Deleted:
    """No such target: an error, unless its image is still to be deleted."""
    if node.is_making(name + iqns.IMAGE_SUFFIX):
        raise Conflict(
            said(
                "{name} is being made right now; delete it when that is done.",
                name=name + iqns.IMAGE_SUFFIX,
            ),
            code="file.making",
        )
    entry = node.images.find(name + iqns.IMAGE_SUFFIX) if delete_file else None
    if entry is None:
        raise NotFound(
            said("there is no target {iqn} on this node.", iqn=iqn),
            code="target.missing",
        )
    backing = node.images.path(entry.name)
    for other in node.about(iqn, backing):
        if any(lun["backing"] == backing for lun in other["luns"]):
            raise Conflict(
                said("{name} backs {iqn}.", name=entry.name, iqn=other["iqn"]),
                code="file.shared",
            )
    entry = node.images.check_deletable(entry.name)
    node.images.delete(entry.name, entry.identity)
    Swap(node.images, entry.name).forget_old()
    _forget_deleted(node, iqn)
    return {"deleted": iqn, "delete_file": True}


def _remember_off(
    node: Node, iqn: str, *, off: bool | None, needed: bool
) -> State | None:
    """Remember that a target is taken off, and return what was before.

    None on a full disk where it is not `needed`: an image that goes is what makes room, and a kill before
    it has gone leaves the disk as it was.
    """
    try:
        return node.memory.set(iqn, off=off, cd=False)
    except Unavailable as error:
        if needed or error.code != CANNOT_WRITE:
            raise
        return None


def _forget_deleted(node: Node, iqn: str) -> None:
    """Forget all of a target whose image is gone; a disk that is still too full to say so fails nothing any more."""
    try:
        access.forget(node, iqn)
    except Unavailable as error:
        logger.warning("%s is deleted; %s", iqn, error.message)
