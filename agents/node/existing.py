"""What works on a disk that is there: its target, its image and how to bring both back."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

from agents.node.access import wanted
from agents.node.backends.base import Export
from agents.node.folder import Entry, image_of
from agents.node.rebuild import restored
from agents.node.runtime import Node
from agents.protocol import paths
from agents.protocol.answers import Target
from agents.protocol.systems import CD
from ipxeready.errors import ApplicationError, Conflict, Invalid, NotFound
from ipxeready.said import said
from ipxeready.storage import iqn as iqns

logger = logging.getLogger(__name__)


def target_of(node: Node, iqn: str) -> Target | None:
    """The target of that name; failing that, one that an older hand made with capitals."""
    return named(restored(node, node.about(iqn)), iqn)


def named(targets: list[Target], iqn: str) -> Target | None:
    """The one of `targets` with that name; failing that, with that name in capitals."""
    exact = [t for t in targets if t["iqn"] == iqn]
    other = [t for t in targets if t["iqn"].lower() == iqn]
    return next(iter(exact + other), None)


def disk_target(node: Node, iqn: str) -> tuple[Export, Entry, Target]:
    """A disk's target, as it would be exported again, and its image. The caller holds the lock.

    Invalid for a CD, NotFound without such a target, Conflict when its image may not be changed.
    """
    name = iqns.split_target(iqn, node.base_iqn).name
    target = target_of(node, f"{node.base_iqn}:{name}")
    if target is None:
        raise NotFound(
            said(
                "there is no target {iqn} on this node.", iqn=f"{node.base_iqn}:{name}"
            ),
            code="target.missing",
        )
    if any(lun["type"] == CD for lun in target["luns"]):
        raise Invalid(
            said("{iqn} is a CD, not a disk.", iqn=target["iqn"]), code="target.cd"
        )
    backings = [lun["backing"] for lun in target["luns"]]
    image = image_of(backings[0], node.images.folder) if len(backings) == 1 else None
    if image is None:
        raise Conflict(
            said(
                "{iqn} is backed by {backings}, which is not one image of {folder}.",
                iqn=target["iqn"],
                backings=", ".join(backings),
                folder=node.images.folder,
            )
            if backings
            else said(
                "{iqn} is backed by nothing, which is not one image of {folder}.",
                iqn=target["iqn"],
                folder=node.images.folder,
            ),
            code="file.outside",
        )
    entry = node.images.check_disk(image)
    access = wanted(node, node.memory.read(), target["iqn"], None)
    return Export(target["iqn"], backings[0], access=access), entry, target


@contextlib.contextmanager
def put_back(node: Node, export: Export) -> Iterator[None]:
    """Undo what the block undoes, then export as before; what fails here is logged, as the first error counts."""
    try:
        yield
        node.backend.unexport(export.iqn)
        node.backend.export(export)
    except ApplicationError as error:
        node.doubtful.add(export.iqn)  # the watch tries it once more
        node.log.add("lun.put_back", "failed", iqn=export.iqn, error=error.message)
        logger.error(
            "%s could not be exported again: %s. It is tried once more in a moment; then POST %s does.",
            export.iqn,
            error.message,
            paths.LUN_SCAN,
        )
