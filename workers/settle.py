"""Disks that an interruption left under way: what the node has is true."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack

from django.conf import settings

from agents.client import NodeClient
from agents.models import Agent
from agents.protocol.answers import Target
from agents.selectors import agent_get
from agents.together import ask_all
from audit.services import record_quietly
from ipxeready.actors import SYSTEM
from ipxeready.errors import ApplicationError, Unavailable, UpstreamFailed
from ipxeready.index import ensure_fresh, writing
from ipxeready.index.writer import Transaction
from ipxeready.said import said
from ipxeready.storage import iqn as iqns
from ipxeready.storage.inflight import claim
from workers import selectors
from workers.choices import CREATING
from workers.ledger import disk_change, disk_drop
from workers.models import Disk

log = logging.getLogger(__name__)

#: Disks settled together: each is claimed by an open file meanwhile.
CHUNK = 100


def mark(worker_id: str, os: str) -> str:
    """The name under which work on a disk is claimed."""
    return f"disk-{worker_id}.{os}"


def target_of(agent: Agent, iqn: str) -> Target | None:
    """The target of that name on a node, None when the node has none."""
    return next((t for t in NodeClient(agent).targets() if t["iqn"] == iqn), None)


def image_of(iqn: str) -> str:
    """The file behind a disk's target: the last part of its name."""
    return iqn.rpartition(":")[2].lower() + iqns.IMAGE_SUFFIX


def look(agent: Agent) -> tuple[set[str], list[Target]]:
    """What a node is at right now (images by file name, targets that go by IQN), and its targets.

    In this order: what it was not at is as the targets say, and stays so.
    """
    client = NodeClient(agent)
    try:
        told = client.capabilities()
    except UpstreamFailed:
        return set(), client.targets()  # not ours to the letter: its targets count
    busy = {*(told.get("making") or ()), *(told.get("removing") or ())}
    return busy, client.targets()


#: The code of `still_at_it`.
BUSY = "disk.busy"


def still_at_it(
    agent_id: str, iqn: str, status: str = CREATING, *, code: str = BUSY
) -> Unavailable:
    """The node goes on with what nobody waits for any more."""
    does = said("making") if status == CREATING else said("deleting")
    return Unavailable(
        said(
            "node {agent} is still {does} {iqn}. The disk stays `{status}` until that "
            "has ended, and is settled then",
            agent=agent_id,
            does=does,
            iqn=iqn,
            status=status,
        ),
        code=code,
    )


def _is_at_it(disk: Disk, busy: set[str], target: Target | None) -> bool:
    if disk.status == CREATING:
        return target is None and image_of(disk.iqn) in busy
    return target is not None and disk.iqn in busy


def backing_of(target: Target) -> str | None:
    """The backing store of a target's first LUN."""
    return target["luns"][0]["backing"] if target["luns"] else None


def settle_disk(disk: Disk) -> None:
    """Decide about a disk under way that nobody works on.

    Raises Unavailable when the node cannot be asked; the disk then stays as it is.
    """
    for error in settle([disk]).values():
        raise error


def settle(disks: Sequence[Disk]) -> dict[int, ApplicationError]:
    """Decide about disks under way, except those that somebody works on: each node asked once, all of it one write.

    What could not be asked stays as it is: the error by the disk's key in the index.
    """
    failed: dict[int, ApplicationError] = {}
    with ExitStack() as stack:
        mine = [
            disk
            for disk in disks
            if stack.enter_context(
                claim(settings.IPXE_LAYOUT.run, mark(disk.worker_id, disk.os))
            )
        ]
        answers = _targets({disk.agent for disk in mine})
        known: list[tuple[Disk, Target | None]] = []
        for disk in mine:
            answer = answers[disk.agent]
            if isinstance(answer, ApplicationError):
                failed[disk.pk] = answer
                continue
            busy, targets = answer
            target = targets.get(disk.iqn)
            if _is_at_it(disk, busy, target):
                failed[disk.pk] = still_at_it(disk.agent, disk.iqn, disk.status)
            else:
                known.append((disk, target))
        if known:
            with writing(actor=SYSTEM, op="worker.disk.create") as tx:
                tx.yaml("workers")  # a broken file refuses all of them, not each
                for disk, target in known:
                    try:
                        _decide(tx, disk, target)
                    except ApplicationError as error:
                        failed[disk.pk] = error
    return failed


_Seen = tuple[set[str], dict[str, Target]]


def _targets(names: set[str]) -> dict[str, _Seen | ApplicationError]:
    """What each node is at, and its targets by IQN."""
    found: dict[str, _Seen | ApplicationError] = {}
    nodes = []
    for name in names:
        try:
            nodes.append(agent_get(name))
        except ApplicationError as error:
            found[name] = error
    answers = ask_all(nodes, look, settings.IPXE.agent_timeout)
    for name, answer in answers.items():
        if isinstance(answer, ApplicationError):
            found[name] = answer
        else:
            busy, targets = answer
            found[name] = busy, {target["iqn"]: target for target in targets}
    return found


def _decide(tx: Transaction, disk: Disk, target: Target | None) -> None:
    now = selectors.disk_of(disk.worker_id, disk.os)
    if now is None or now.status != disk.status:
        return
    if target is not None:
        backing = backing_of(target)
        disk_change(tx, disk.worker_id, disk.os, status=None, backing=backing)
    else:
        disk_drop(tx, disk.worker_id, disk.os)
    made = disk.status == CREATING
    tx.log(
        op=_op(disk),
        status="ok" if (target is not None) == made else "rollback",
        worker_id=disk.worker_id,
        agent=disk.agent,
        os=disk.os,
        iqn=disk.iqn,
        note="settled against the node after an interruption",
    )


def _op(disk: Disk) -> str:
    return f"worker.disk.{'create' if disk.status == CREATING else 'delete'}"


def settle_all() -> None:
    """Settle every disk that a crash left under way; nodes that do not answer are left for later.

    A dead node costs one time limit for each hundred of its disks.
    """
    ensure_fresh(wait=True)
    left = list(selectors.under_way())
    for start in range(0, len(left), CHUNK):
        part = left[start : start + CHUNK]
        try:
            failed = settle(part)
        except (ApplicationError, OSError) as error:
            log.warning("%d disks under way are not settled: %s", len(part), error)
            continue
        for disk in part:
            if disk.pk in failed:
                _not_settled(disk, failed[disk.pk])


def _not_settled(disk: Disk, error: ApplicationError) -> None:
    log.warning("%s stays %s: %s", disk.iqn, disk.status, error)
    record_quietly(
        actor=SYSTEM,
        op=_op(disk),
        status="failed",
        worker_id=disk.worker_id,
        agent=disk.agent,
        os=disk.os,
        error=f"not settled: {error}"[:500],
    )
