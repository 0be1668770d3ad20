"""Start and scan: adopt the targets that are there, export the images that have none, cut nothing. Repeatable."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from agents.node import access as rules
from agents.node.backends.base import Export, same, shown_as
from agents.node.folder import Entry, image_of
from agents.node.memory import State
from agents.node.runtime import Node
from agents.protocol.access import OFF, Access, access_of
from agents.protocol.answers import ScanCreated, ScanResult, Skipped, Target
from agents.protocol.filenames import check_iso
from agents.protocol.systems import CD
from ipxeready.errors import ApplicationError, Conflict, Unavailable
from ipxeready.said import said
from ipxeready.storage import iqn as iqns

logger = logging.getLogger(__name__)


@dataclass
class _Plan:
    """What a scan will do."""

    exports: dict[str, Export] = field(default_factory=dict)
    skipped: list[Skipped] = field(default_factory=list)
    claimed: dict[str, str] = field(default_factory=dict)
    """Which file stands for an IQN: the first one that comes along, exported or not."""
    asked: str | None = None
    """Who may log in to targets of which nothing is remembered, where the call says so."""

    def skip(self, name: str, reason: str) -> None:
        self.skipped.append({"name": name, "reason": reason})


def scan(
    node: Node,
    *,
    op: str = "lun.scan",
    access: str | None = None,
    only: Collection[str] | None = None,
) -> ScanResult:
    """Export every image and remembered CD that has no target; say which were left alone, and why.

    `access` is for targets of which nothing is remembered, and is then remembered of those that are made. With `only`
    other targets are not made.
    """
    try:
        with node.changing():
            result = _scan(node, access, only)
    except ApplicationError as error:
        node.log.add(op, "failed", error=error.message)
        raise
    node.log.add(
        op, "ok", created=len(result["created"]), skipped=result["skipped"] or None
    )
    return result


def restored(node: Node, targets: list[Target]) -> list[Target]:
    """The targets that are there, from those that were just seen. The caller holds the lock.

    A target system that lost all of ours was restarted: they are made again before anything else is,
    or a new one beside them would hide the loss, and their machines would stay without disks.
    The same where a call got no answer: what came of it is taken off, and made as it should be.
    """
    only = None
    if lost(node, targets):
        logger.warning("the target system has lost all targets; making them again")
    elif node.doubtful:
        only = node.doubtful.copy()
    else:
        return targets
    for skipped in scan(node, op="node.rebuild", only=only)["skipped"]:
        logger.info("not exported: %s: %s", skipped["name"], skipped["reason"])
    return node.targets()


def lost(node: Node, targets: list[Target]) -> bool:
    """Whether the target system was restarted since the last scan: it has none of ours, or lives another life.

    It may have some of ours all the same: made by a call in whose midst the restart was.
    """
    if node.backend.persistent or not (node.exported or node.unbuilt):
        return False
    life = node.backend.incarnation()
    return not targets or bool(life and life != node.scanned_in)


def same_life(node: Node) -> bool:
    """Whether the target system is known to live the life of the last scan, so that what it had then is not lost."""
    return bool(node.scanned_in) and node.backend.incarnation() == node.scanned_in


def _scan(node: Node, asked: str | None, only: Collection[str] | None) -> ScanResult:
    life, doubtful = node.backend.incarnation(), node.doubtful.copy()
    node.images.adopt()  # before anything is removed: is this our pool at all?
    node.backend.tidy()
    state = node.memory.read()
    for iqn in sorted(doubtful):
        # What came of a call without an answer may serve a file that was taken back since.
        with contextlib.suppress(Conflict):  # somebody is in it, so it is well there
            node.backend.unexport(iqn)
    targets = {target["iqn"]: target for target in node.targets()}
    node.exported.update(targets)
    _forget_half_deletions(node, state, targets)
    users = {lun["backing"]: iqn for iqn, t in targets.items() for lun in t["luns"]}
    plan = _Plan(asked=asked)
    if node.backend.cd:
        _plan_cds(node, state, targets, plan)
    entries = [e for e in node.images.entries() if _is_shown(e)]
    # An exact lower-case name goes before one that differs in case, so that the
    # same one wins at every start.
    for entry in sorted(entries, key=lambda e: (e.name != e.name.lower(), e.name)):
        _plan_entry(node, entry, state, targets, users, plan)
    for iqn, reason in orphans(node, targets):
        plan.skip(iqn, reason)
    if only is not None:
        plan.exports = {iqn: e for iqn, e in plan.exports.items() if iqn in only}
        plan.skipped.clear()
    _plan_access(node, state, targets, plan)
    if plan.exports:
        with contextlib.suppress(Unavailable):  # a read-only mount: decided again later
            node.memory.settle()
    failures = (
        node.backend.export_all(list(plan.exports.values())) if plan.exports else {}
    )
    created: list[ScanCreated] = []
    made: dict[str, str] = {}
    unanswered: set[str] = set()
    for iqn, export in plan.exports.items():
        error = failures[iqn]
        if error is None:
            node.exported.add(iqn)
            if iqn not in targets:
                created.append({"iqn": iqn, "cd": export.cd})
                if asked is not None and not rules.is_shared(iqn, export.path):
                    made[iqn] = asked
        else:
            plan.skip(export.path.rpartition("/")[2], error.message)
            if isinstance(error, Unavailable) and iqn not in targets:
                unanswered.add(iqn)
    if made := {iqn: mode for iqn, mode in made.items() if iqn not in state.access}:
        state.access.update(made)
        node.memory.write(state)
    node.scanned_in = life
    node.doubtful = (node.doubtful - doubtful) | unanswered
    return {"created": created, "skipped": plan.skipped}


def _forget_half_deletions(
    node: Node, state: State, targets: dict[str, Target]
) -> None:
    """A target that is there was not taken off: whoever was about to was killed before.

    Remembered as off, or a CD forgotten, it would be there until the target system's next restart, and then a machine
    had no disk.
    """
    there = state.off & targets.keys()
    cds = {
        iqn: name
        for iqn, target in targets.items()
        for lun in target["luns"]
        if lun["type"] == CD
        and iqn not in state.cds
        and not rules.is_shared(iqn, lun["backing"])
        and (name := image_of(lun["backing"], node.images.folder)) is not None
    }
    if there or cds:
        state.off -= there
        state.cds.update(cds)
        with contextlib.suppress(Unavailable):  # a read-only mount: at the next start
            node.memory.write(state)


def _is_shown(entry: Entry) -> bool:
    """Our own hidden files and plain folders (lost+found) are nobody's concern."""
    if entry.name.startswith("."):
        return entry.name.lower().endswith((iqns.IMAGE_SUFFIX, iqns.ISO_SUFFIX))
    return entry.regular or entry.name.lower().endswith(
        (iqns.IMAGE_SUFFIX, iqns.ISO_SUFFIX)
    )


def _plan_cds(
    node: Node, state: State, targets: dict[str, Target], plan: _Plan
) -> None:
    """CD targets that were there come back with their ISO."""
    for iqn, iso in sorted(state.cds.items()):
        export = Export(iqn, node.images.path(iso), cd=True)
        if iqn in targets and same(targets[iqn], export):
            plan.exports[iqn] = export
            continue
        try:
            iqns.split_target(iqn, node.base_iqn)
            check_iso(iso)
            node.images.check_iso(iso)
        except ApplicationError as error:
            plan.skip(iqn, said("this CD does not come back: {why}", why=error.message))
            continue
        plan.exports[iqn] = export


def _plan_entry(
    node: Node,
    entry: Entry,
    state: State,
    targets: dict[str, Target],
    users: dict[str, str],
    plan: _Plan,
) -> None:
    name, lower = entry.name, entry.name.lower()
    iso = lower.endswith(iqns.ISO_SUFFIX)
    if not iso and not lower.endswith(iqns.IMAGE_SUFFIX):
        plan.skip(name, said("neither an image (.img) nor an ISO (.iso)"))
        return
    if iso and not node.backend.cd:
        plan.skip(
            name,
            said("the {backend} backend has no CD drive", backend=node.backend.name),
        )
        return
    if name.startswith("."):
        plan.skip(name, said("a leading dot: the worker part of the name is empty"))
        return
    if iqns.is_master(name):
        plan.skip(name, said("a master; masters are cloned, never exported"))
        return
    if node.is_making(name):
        plan.skip(name, said("is being made"))
        return
    try:
        iqn = iqns.join(
            node.base_iqn,
            iqns.check_name(name if iso else name[: -len(iqns.IMAGE_SUFFIX)]),
        )
    except ApplicationError as error:
        plan.skip(name, error.message)
        return
    path = node.images.path(name)
    _plan_target(node, Export(iqn, path, cd=iso), name, state, targets, users, plan)


def _plan_target(
    node: Node,
    export: Export,
    name: str,
    state: State,
    targets: dict[str, Target],
    users: dict[str, str],
    plan: _Plan,
) -> None:
    iqn = export.iqn
    there = next((t for t in targets.values() if t["iqn"].lower() == iqn), None)
    if there is not None and same(there, export):
        plan.claimed[iqn] = name
        if there["iqn"] == iqn:
            # Accepted as it is, or its missing last step and its access repaired.
            plan.exports[iqn] = export
        return
    other = plan.claimed.setdefault(iqn, name)
    if iqn in plan.exports:
        other = plan.exports[iqn].path
    elif there is not None and there["luns"]:
        other = there["luns"][0]["backing"]
    if other != name:
        plan.skip(
            name,
            said(
                "conflict: {iqn} already stands for {file}. Names that differ only in case are one "
                "target; rename one of them",
                iqn=iqn,
                file=other.rpartition("/")[2],
            ),
        )
        return
    if not export.cd and export.path in users:
        plan.skip(name, said("exported already, as {user}", user=users[export.path]))
        return
    if iqn in state.off:
        plan.skip(
            name, said("taken off on purpose; export it again with existing: true")
        )
        return
    if not export.cd and export.iqn.endswith(iqns.ISO_SUFFIX):
        plan.skip(
            name, said("an image whose name without .img ends in .iso; rename it")
        )
        return
    try:
        if export.cd:
            node.images.check_iso(name)
        else:
            node.images.check_disk(name)
    except ApplicationError as error:
        plan.skip(name, error.message)
        return
    plan.exports[iqn] = export


def _plan_access(
    node: Node, state: State, targets: dict[str, Target], plan: _Plan
) -> None:
    """Say of each export who may log in. What has no secret for its CHAP stays as it is: shut, or not there at all.

    A target that is there keeps what it has, unless something is remembered or asked for. One with a session that
    could not come back is left as it is.
    """
    for iqn, export in list(plan.exports.items()):
        there = targets.get(iqn)
        mode = None if iqn in state.access else plan.asked
        if rules.is_shared(iqn, export.path):
            allowed = access_of(iqn, OFF)
        else:
            try:
                allowed = rules.wanted(node, state, iqn, mode)
            except ApplicationError as error:
                del plan.exports[iqn]
                plan.skip(export.path.rpartition("/")[2], error.message)
                continue
        kept = allowed.mode == OFF and iqn not in state.access
        if there is None or not kept:
            plan.exports[iqn] = replace(export, access=allowed)
        if (
            there is not None
            and there["sessions"]
            and (kept or shown_as(there, allowed) or _strangers(there, allowed))
        ):
            del plan.exports[iqn]


def _strangers(target: Target, allowed: Access) -> bool:
    """Whether somebody is logged in who may not be: the target is left alone until that one has gone."""
    return allowed.mode != OFF and any(
        session["initiator"] != allowed.initiator for session in target["sessions"]
    )


def orphans(node: Node, targets: dict[str, Target]) -> list[tuple[str, str]]:
    """Targets whose image is gone from the directory: reported, and left to whoever uses them."""
    names = {node.images.path(entry.name) for entry in node.images.entries()}
    return [
        (
            iqn,
            said(
                "its file {backing} is gone; the target was left as it is",
                backing=lun["backing"],
            ),
        )
        for iqn, target in targets.items()
        for lun in target["luns"]
        if lun["backing"].startswith(f"{node.images.folder}/")
        and lun["backing"] not in names
    ]
