"""What the node can do, its targets, and who may log in to one."""

from __future__ import annotations

from agents.node import access
from agents.node.backends.base import access_shown
from agents.node.rebuild import lost, restored
from agents.node.runtime import Node
from agents.protocol.answers import Capabilities, Target
from agents.protocol.requests import AccessRequest
from ipxeready.errors import NotFound
from ipxeready.said import said
from ipxeready.storage import iqn as iqns


def capabilities(node: Node) -> Capabilities:
    """What this node can do, measured now; Unavailable when its target system does not answer."""
    node.backend.check()
    free, total = node.images.room()
    making, removing = node.making(), node.removing()
    return {
        "backend": node.backend.name,
        "cd": node.backend.cd,
        "persistent": node.backend.persistent,
        "base_iqn": node.base_iqn,
        "fs_type": node.images.fs_type(),
        "clone": True,
        "empty_disk": True,
        "reflink": node.images.reflink(),
        "free_bytes": free,
        "total_bytes": total,
        "making": making,
        "removing": removing,
    }


def target_list(node: Node) -> list[Target]:
    """The targets below this node's base. A target system that has just lost them all has them again first.

    Or whoever asks would take its disks for gone.
    """
    targets = node.targets()
    if node.exported and lost(node, targets):
        with node.changing():
            targets = restored(node, node.targets())
    return targets


def access_set(node: Node, request: AccessRequest) -> Target:
    """Change who may log in to a target that is there, remember it, and return the target as it is then.

    A machine that is connected stays connected; where it could not come back after a break of
    its connection, that is Conflict unless `force`.
    """
    name = iqns.split_target(request.iqn, node.base_iqn).name
    iqn = f"{node.base_iqn}:{name}"
    with (
        node.log.about(
            "lun.access", iqn=iqn, access=request.access, force=request.force or None
        ),
        node.changing(),
    ):
        targets = restored(node, node.about(iqn))
        target = next((t for t in targets if t["iqn"] == iqn), None)
        if target is None or not target["luns"]:
            raise NotFound(
                said("there is no target {iqn} on this node.", iqn=iqn),
                code="target.missing",
            )
        access.check_shared(iqn, target["luns"][0]["backing"], request.access)
        with access.remembered(
            node, iqn, request.access, request.chap, targets, force=request.force
        ) as allowed:
            node.export(access.export_of(target, allowed))
        # It was read back already; asking once more could fail, and would tell of a change that was not made.
        return {**target, **access_shown(allowed)}
