"""Making a disk larger: only while nobody is logged in, as target systems read a size once."""

from __future__ import annotations

from agents.node.backends.base import in_use
from agents.node.existing import disk_target, put_back
from agents.node.runtime import Node
from agents.protocol.answers import Grown
from ipxeready.errors import ApplicationError, Conflict
from ipxeready.said import said
from ipxeready.storage.sizes import format_size, parse_size


def disk_grow(node: Node, iqn: str, size: int | str) -> Grown:
    """Make the disk of a target `size` bytes large; Conflict while it is in use, or that large already.

    The new part is a hole: it takes room only when it is written. A failure leaves disk and target as they were.
    """
    wanted = parse_size(size)
    with node.log.about("lun.grow", iqn=iqn, size=wanted), node.changing():
        export, entry, target = disk_target(node, iqn)
        if target["sessions"]:
            raise in_use(target)
        if wanted <= entry.size:
            raise Conflict(
                said(
                    "size: {name} has {human} ({size} bytes) already; a disk is only made larger, as "
                    "what lies at its end would be cut off.",
                    name=entry.name,
                    human=format_size(entry.size),
                    size=entry.size,
                ),
                code="disk.smaller",
            )
        node.unexport(target["iqn"])
        try:
            node.images.resize(entry, wanted)
            node.backend.export(export)
        except ApplicationError:
            with put_back(node, export):
                node.images.resize(entry, entry.size)
            raise
        return {
            "iqn": export.iqn,
            "backing": export.path,
            "size": wanted,
            "was": entry.size,
        }
