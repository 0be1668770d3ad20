"""A disk back to its master: a fresh clone is swapped in while nobody is logged in, the old image kept until that is exported."""

from __future__ import annotations

import logging

from agents.node import rebuild
from agents.node.backends.base import in_use
from agents.node.creating import check_not_exported
from agents.node.existing import disk_target, put_back, target_of
from agents.node.images import Made
from agents.node.jobs import Step
from agents.node.runtime import Node
from agents.node.swapping import Swap, unfinished
from agents.protocol.answers import Created
from ipxeready.errors import ApplicationError

logger = logging.getLogger(__name__)

#: The job, and its operation in the log.
RESET_DISK = "lun.reset"


def disk_reset(node: Node, iqn: str, master: str, step: Step | None = None) -> Created:
    """Give the disk of a target the content of `master`; Conflict while it is in use.

    1. Under the lock: is it there and free? Reserve its name.
    2. Without the lock: the clone, beside the disk, which goes on as it is.
    3. Under the lock: free still? Target off, old image aside, clone in its place, target on, old image gone.
    What fails leaves the old disk and its target; what a crash leaves is decided at the start.
    """
    step = step or Step()
    source = node.masters.get(master).name
    with node.log.about(RESET_DISK, iqn=iqn, master=source) as note:
        with node.changing():
            name = _free(node, iqn)
            check_not_exported(node, node.about(iqn, node.images.path(source)), source)
            node.reserve(name.lower())
        try:
            swap = Swap(node.images, name)
            swap.forget_new()
            # Of an earlier reset, whose clone is exported: it has had its day, and is nothing to go back to.
            swap.forget_old()
            with node.reading(source):
                made = node.images.clone(
                    source, swap.new, progress=step.add, total=step.turn
                )
            note.update(how=made.how, seconds=made.seconds, bytes=made.copied)
            try:
                with node.changing():
                    return _swapped(node, iqn, swap, made)
            finally:
                swap.forget_new()
        finally:
            # First of all: the lock may not be had, and a name that stays reserved is never deleted or made again.
            node.release(name.lower())
            _bring_back(node, iqn)


def _bring_back(node: Node, iqn: str) -> None:
    """A target system that was restarted meanwhile was not given what was being made."""
    try:
        with node.changing():
            if target_of(node, iqn) is None:
                rebuild.scan(node, op="node.rebuild")
    except ApplicationError as error:
        # The reset has ended one way or the other; the watch looks again.
        node.doubtful.add(iqn)
        logger.warning("%s: %s", iqn, error.message)


def _free(node: Node, iqn: str) -> str:
    """The image of a disk that nobody is logged in to."""
    _, entry, target = disk_target(node, iqn)
    if target["sessions"]:
        raise in_use(target)
    return entry.name


def _swapped(node: Node, iqn: str, swap: Swap, made: Made) -> Created:
    """Under the lock: the clone takes the disk's place, or everything is as it was."""
    export, _, target = disk_target(node, iqn)
    if target["sessions"]:
        raise in_use(target)
    # Refuses by itself when somebody has logged in this very moment.
    node.unexport(target["iqn"])
    try:
        swap.turn()
        node.images.check_disk(swap.name)
        node.backend.export(export)
    except ApplicationError:
        with put_back(node, export):
            swap.turn_back()
        raise
    try:
        swap.forget_old()
    except ApplicationError as error:
        # The disk is reset all the same; the next reset, or the next start, removes it.
        logger.warning("%s", error.message)
    return {
        "iqn": export.iqn,
        "backing": export.path,
        "how": made.how,
        "seconds": made.seconds,
        "bytes": made.copied,
    }


def restore(node: Node) -> list[str]:
    """Before a rebuild: disks whose old image came back, as their clone had not taken its place yet when we were killed."""
    back = []
    for swap in unfinished(node.images):
        if node.is_making(swap.name):
            continue
        swap.forget_new()
        if swap.restore():
            back.append(swap.name)
    return back


def settle(node: Node) -> list[str]:
    """After a rebuild: old images go whose clone is exported by now; the disks whose old image stays."""
    left = []
    exported = {
        lun["backing"] for target in node.backend.targets() for lun in target["luns"]
    }
    for swap in unfinished(node.images):
        if node.is_making(swap.name):
            continue
        if node.images.path(swap.name) in exported:
            swap.forget_old()
        else:
            left.append(swap.name)
    return left
