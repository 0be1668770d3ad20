"""How a storage node is: its target system, its room, its images, and what somebody should look at, in words."""

from __future__ import annotations

from agents.node.folder import Entry
from agents.node.images import reserve_of
from agents.node.rebuild import orphans
from agents.node.runtime import Node
from agents.protocol.answers import (
    BackendHealth,
    FileSystem,
    ImageCount,
    NodeHealth,
    Room,
    Target,
)
from ipxeready.errors import ApplicationError, Unavailable
from ipxeready.said import joined, said
from ipxeready.storage import iqn as iqns
from ipxeready.storage.sizes import format_size

#: So many targets without a file are named; the rest is counted.
_NAMED = 5


def node_health(node: Node) -> NodeHealth:
    """Everything in one short look; what does not answer is a problem, not an error."""
    problems: list[str] = []
    backend, targets, foreign = _backend(node, problems)
    entries: list[Entry] = []
    try:
        entries = node.images.entries()
    except Unavailable as error:
        problems.append(error.message)
    images = _images(entries, targets)
    room, fs = _folder(node, entries, problems)
    for read in (node.memory.read, node.secrets.read):
        try:
            read()
        except ApplicationError as error:
            problems.append(error.message)
    if node.unbuilt:
        problems.append(
            said(
                "the rebuild at the agent's start did not run; it is tried again every few seconds"
            )
        )
    if entries and targets:
        gone = orphans(node, {target["iqn"]: target for target in targets})
        problems += [joined(": ", iqn, reason) for iqn, reason in gone[:_NAMED]]
        if len(gone) > _NAMED:
            problems.append(
                said(
                    "and {count} more targets without a file", count=len(gone) - _NAMED
                )
            )
    return {
        "backend": backend,
        "room": room,
        "fs": fs,
        "targets": {
            "ours": len(targets),
            "foreign": foreign,
            "sessions": sum(len(target["sessions"]) for target in targets),
        },
        "images": images,
        "problems": problems,
    }


def _backend(
    node: Node, problems: list[str]
) -> tuple[BackendHealth, list[Target], int]:
    """Whether the target system answers, and is the one that this node was told of."""
    backend = node.backend
    shown: BackendHealth = {"name": backend.name, "alive": True, "ours": True}
    try:
        backend.check()
        stranger = backend.stranger()
        targets, foreign = node.targets(), backend.foreign()
    except ApplicationError as error:
        problems.append(error.message)
        return {**shown, "alive": False, "ours": False, "error": error.message}, [], 0
    if stranger is not None:
        problems.append(stranger)
        shown = {**shown, "ours": False, "error": stranger}
    return shown, targets, foreign


def _images(entries: list[Entry], targets: list[Target]) -> ImageCount:
    backings = {lun["backing"].rpartition("/")[2] for t in targets for lun in t["luns"]}
    disks = [entry for entry in entries if is_disk(entry)]
    return {
        "disks": len(disks),
        "masters": sum(e.regular and iqns.is_master(e.name) for e in entries),
        "isos": sum(
            e.regular
            and not e.name.startswith(".")
            and e.name.lower().endswith(iqns.ISO_SUFFIX)
            for e in entries
        ),
        "kept": sum(entry.name not in backings for entry in disks),
    }


def is_disk(entry: Entry) -> bool:
    """Whether an entry is the image of a worker's disk."""
    return (
        entry.regular
        and entry.name.lower().endswith(iqns.IMAGE_SUFFIX)
        and not entry.name.startswith(".")
        and not iqns.is_master(entry.name)
    )


def _folder(
    node: Node, entries: list[Entry], problems: list[str]
) -> tuple[Room, FileSystem]:
    """The room and the file system below the images."""
    room: Room = {"free": 0, "total": 0, "reserve": 0, "promised": 0}
    fs: FileSystem = {"type": "unknown", "reflink": False, "mount": ""}
    images = node.images
    try:
        free, total = images.room()
        mount = images.mount()
        writable = images.writable()
        fs = {"type": mount.kind, "reflink": False, "mount": mount.point}
        device = images.stamp()[0]
        if writable:
            fs["reflink"] = images.reflink()
    except ApplicationError:  # said already
        return room, fs
    promised = sum(max(0, e.size - e.allocated) for e in entries if is_disk(e))
    room = {
        "free": free,
        "total": total,
        "reserve": reserve_of(total),
        "promised": promised,
    }
    if not writable:
        problems.append(
            said(
                "the image directory {folder} is read-only: no disk can be made or written; look at "
                "its mount and owner",
                folder=images.folder,
            )
        )
    if device != node.device and node.device is not None:
        problems.append(
            said(
                "the image directory {folder} is on another file system than at the agent's start "
                "(now {kind} at {place}); mount the right one, or restart the agent if this is it",
                folder=images.folder,
                kind=mount.kind,
                place=mount.point,
            )
        )
    if free < room["reserve"]:
        problems.append(
            said(
                "only {free} are free, less than the {reserve} that stay in reserve",
                free=format_size(free),
                reserve=format_size(room["reserve"]),
            )
        )
    if promised > free:
        problems.append(
            said(
                "the disks here may still grow by {promised}, and {free} are free: machines fail "
                "when it runs out",
                promised=format_size(promised),
                free=format_size(free),
            )
        )
    return room, fs
