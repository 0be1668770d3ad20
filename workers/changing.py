"""Disks that are there: made larger, and given the content of their master again. The node refuses while one is in use."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from agents.client import NodeClient
from agents.models import Agent
from agents.protocol.filenames import check_master
from agents.selectors import agent_get
from agents.watched import reset_disk
from audit.services import record_quietly
from ipxeready.actors import OPERATOR, Actor
from ipxeready.errors import ApplicationError, Conflict, Invalid
from ipxeready.index import writing
from ipxeready.jobs.watch import NOBODY, Watch
from ipxeready.said import said
from ipxeready.storage.inflight import claim
from ipxeready.storage.sizes import parse_size
from workers import selectors
from workers.batch_items import Changed, left_alone
from workers.choices import DiskType
from workers.ledger import disk_change
from workers.models import Disk
from workers.settle import mark
from workers.validators import check_os


@dataclass
class _Change:
    """One change under way: its disk, the disk's node, and what the audit is told besides."""

    disk: Disk
    agent: Agent
    note: dict[str, Any] = field(default_factory=dict)


def disk_grow(*, actor: Actor, worker_id: str, os: str, size: Any) -> dict[str, Any]:
    """Make a system disk larger; the record. Conflict while it is in use, or that large already.

    The system inside has to use the new room itself (it sees it at its next start).
    """
    wanted = parse_size(size)
    with _changing(actor, "worker.disk.grow", worker_id, os, size=wanted) as change:
        grown = NodeClient(change.agent).grow(change.disk.iqn, wanted)
        change.note["was"] = grown["was"]
        # An empty disk's size is part of what it was made from.
        if change.disk.source.get("type") == DiskType.EMPTY:
            source = {**change.disk.source, "size": wanted}
            return _recorded(actor, "worker.disk.grow", change, source=source)
    return selectors.record_of(selectors.worker_get(worker_id))


def disk_reset(
    *,
    actor: Actor,
    worker_id: str,
    os: str,
    master: str | None = None,
    watch: Watch = NOBODY,
) -> dict[str, Any]:
    """Give a system disk the content of its master (or of another one) again; the record.

    All that was written to the disk is lost. Conflict while it is in use; a failure leaves it as it was.
    """
    reset_check(actor=actor, worker_id=worker_id, os=os, master=master)
    with _changing(actor, "worker.disk.reset", worker_id, os, master=master) as change:
        source = change.disk.source
        name = master or str(source.get("name"))
        change.note["master"] = name
        watch.note(agent=change.agent.id, iqn=change.disk.iqn, master=name)
        made = reset_disk(change.agent, change.disk.iqn, name, watch)
        change.note["how"] = made.get("how")
        if source != (now := made_from(name)):
            return _recorded(actor, "worker.disk.reset", change, source=now)
    return selectors.record_of(selectors.worker_get(worker_id))


def made_from(master: str) -> dict[str, Any]:
    """How the ledger says that a disk is a clone of a master."""
    return {"type": DiskType.MASTER.value, "name": master}


def reset_check(*, actor: Actor, worker_id: str, os: str, master: str | None) -> Disk:
    """What can be refused before a reset begins; the disk."""
    actor.require(OPERATOR)
    worker = selectors.worker_get(worker_id)
    system = check_os(os)
    disk = selectors.disk_get(worker.worker_id, system)
    if master is not None:
        check_master(master)
    elif disk.source.get("type") != DiskType.MASTER:
        raise Invalid(
            said(
                "the {os} disk of {worker_id} was not cloned from a master ({source}); name "
                "the one to reset it to",
                os=system,
                worker_id=worker.worker_id,
                source=disk.source.get("type") or said("its record says nothing of it"),
            ),
            field="master",
        )
    return disk


def disks_change(
    worker_ids: Sequence[str],
    change: Callable[[str], object],
    progress: Callable[[int, int], None] | None = None,
    watch: Watch = NOBODY,
) -> Changed:
    """`change` for each worker in turn; one that is refused does not hold up the others.

    In turn, because a copy has the node's disk busy by itself, and a reflink takes no time.
    """
    done = Changed()
    for at, worker_id in enumerate(worker_ids, 1):
        try:
            if (left := left_alone(watch)) is not None:
                raise left
            change(worker_id)
        except ApplicationError as error:
            done.failed.append((worker_id, error))
        else:
            done.succeeded.append(worker_id)
        if progress:
            progress(at, len(worker_ids))
    return done


@contextmanager
def _changing(
    actor: Actor, op: str, worker_id: str, os: str, **told: Any
) -> Iterator[_Change]:
    """A disk that nobody else works on meanwhile, and one line of the audit whichever way it ends."""
    actor.require(OPERATOR)
    worker = selectors.worker_get(worker_id)
    system = check_os(os)
    with claim(settings.IPXE_LAYOUT.run, mark(worker.worker_id, system)) as mine:
        disk = selectors.disk_get(worker.worker_id, system)
        if not mine or disk.status:
            raise Conflict(
                said(
                    "os: the {os} disk of {worker_id} is being worked on; try again when that is "
                    "done",
                    os=system,
                    worker_id=worker.worker_id,
                )
            )
        if others := selectors.sharers(disk):
            raise Conflict(
                said(
                    "the target {iqn} is also in the record of {others}; take it out of the "
                    "wrong record in state/workers.yml first",
                    iqn=disk.iqn,
                    others=", ".join(others),
                )
            )
        about = {
            "worker_id": worker.worker_id,
            "agent": disk.agent,
            "os": system,
            "iqn": disk.iqn,
        }
        change = _Change(disk, agent_get(disk.agent), dict(told))
        try:
            yield change
        except ApplicationError as error:
            words = error.message[:500]
            record_quietly(
                actor=actor,
                op=op,
                status="failed",
                **about,
                **change.note,
                error=words,
            )
            raise
        record_quietly(actor=actor, op=op, **about, **change.note)


def _recorded(
    actor: Actor, op: str, change: _Change, *, source: dict[str, Any]
) -> dict[str, Any]:
    """Write into the ledger what the node has done already."""
    disk = change.disk
    try:
        with writing(actor=actor, op=op) as tx:
            disk_change(tx, disk.worker_id, disk.os, source=source)
    except ApplicationError as error:
        error.message = said(
            "node {agent} has done it, but the ledger does not say so: {error}. The disk's "
            "source would be {source}",
            agent=disk.agent,
            error=error.message,
            source=source,
        )
        raise
    return selectors.record_of(selectors.worker_get(disk.worker_id))
