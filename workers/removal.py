"""Deleting disks and workers: nodes and sessions are asked before anything goes; what was done stays recorded."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from agents.client import NodeClient
from agents.models import Agent
from agents.protocol.answers import Session, Target
from agents.selectors import agent_get
from audit.services import record_quietly
from ipxeready.actors import OPERATOR, Actor
from ipxeready.errors import (
    ApplicationError,
    Conflict,
    NodeRefused,
    NotFound,
    Unavailable,
    UpstreamFailed,
)
from ipxeready.index import writing
from ipxeready.index.writer import Transaction
from ipxeready.said import joined, said
from ipxeready.storage.hosts import HostsLine
from ipxeready.storage.inflight import claim
from workers import chap, selectors
from workers.cds import claimed
from workers.choices import DELETING
from workers.dnsmasq import reload_after
from workers.inuse import session_words
from workers.ledger import cd_put, disk_change, disk_drop
from workers.models import Cd, Disk, Worker
from workers.services import removed
from workers.settle import mark
from workers.validators import check_os

#: A node that is not there, is not registered, or is something else by now.
GONE = (Unavailable, NotFound, UpstreamFailed)


@dataclass(frozen=True)
class Removal:
    """How to delete: the image too, whether a missing target is well, in use is forced, a lost node is forgotten."""

    delete_file: bool = False
    ignore_missing_target: bool = False
    force: bool = False
    forget: bool = False


def disk_delete(
    *, actor: Actor, worker_id: str, os: str, removal: Removal
) -> dict[str, Any]:
    """Delete one system disk of a worker; the record. Conflict while a session is open, unless forced."""
    actor.require(OPERATOR)
    worker = selectors.worker_get(worker_id)
    system = check_os(os)
    with ExitStack() as stack:
        _claim(stack, worker.worker_id, system)
        disk = selectors.disk_get(worker.worker_id, system)
        refuse_in_use([disk], removal)
        with writing(actor=actor, op="worker.disk.delete") as tx:
            disk_change(tx, worker.worker_id, system, status=DELETING)
            tx.log(status="started", **told(disk, removal))
        try:
            closed = _remove(disk, removal)
        except ApplicationError as error:
            with writing(actor=actor, op="worker.disk.delete") as tx:
                as_before(tx, disk, error)
                tx.log(
                    status="failed", **told(disk, removal), error=error.message[:500]
                )
            raise
        with writing(actor=actor, op="worker.disk.delete") as tx:
            dropped(tx, disk, removal, closed)
            record = selectors.record_of(selectors.worker_get(worker.worker_id))
            return record | _closed(closed)


def cd_delete(*, actor: Actor, worker_id: str, removal: Removal) -> dict[str, Any]:
    """Detach the install CD; the record. The ISO stays, and a target that is gone already is well."""
    actor.require(OPERATOR)
    worker = selectors.worker_get(worker_id)
    with claimed(worker.hostname):
        cd = selectors.cd_of(worker.worker_id)
        if cd is None:
            raise NotFound(
                said("worker {worker_id} has no install CD", worker_id=worker.worker_id)
            )
        refuse_in_use([cd], removal)
        try:
            closed = _remove(cd, removal)
        except ApplicationError as error:
            record_quietly(
                actor=actor,
                op="lun.delete",
                status="failed",
                **told(cd, removal),
                error=error.message[:500],
            )
            raise
        with writing(actor=actor, op="lun.delete") as tx:
            dropped(tx, cd, removal, closed)
            record = selectors.record_of(selectors.worker_get(worker.worker_id))
            return record | _closed(closed)


def worker_delete(*, actor: Actor, worker_id: str, removal: Removal) -> dict[str, Any]:
    """Delete a worker with all that belongs to it: `{deleted, delete_disk, dnsmasq_removed}`."""
    actor.require(OPERATOR)
    worker = selectors.worker_get(worker_id)
    name = worker.worker_id
    with ExitStack() as stack:
        systems = {disk.os for disk in selectors.disks_of(name)}
        for system in sorted(systems):
            _claim(stack, name, system)
        stack.enter_context(claimed(worker.hostname))
        disks = selectors.disks_of(name)
        if late := [disk.os for disk in disks if disk.os not in systems]:
            raise given_meanwhile(name, late[0])
        cd = selectors.cd_of(name)
        things: list[Disk | Cd] = [*([cd] if cd else []), *disks]
        refuse_in_use(things, removal)
        if things:
            with writing(actor=actor, op="delete_worker") as tx:
                for disk in disks:
                    disk_change(tx, name, disk.os, status=DELETING)
                tx.log(status="started", worker_id=name, hostname=worker.hostname)
        closed = _remove_all(actor, worker, things, removal)
        return _forget(actor, name, removal) | _closed(closed)


def _claim(stack: ExitStack, worker_id: str, os: str) -> None:
    if not stack.enter_context(claim(settings.IPXE_LAYOUT.run, mark(worker_id, os))):
        raise Conflict(
            said(
                "os: the {os} disk of {worker_id} is being worked on; try again when that is "
                "done",
                os=os,
                worker_id=worker_id,
            )
        )


def given_meanwhile(worker_id: str, os: str) -> Conflict:
    """A disk came while the worker was being deleted."""
    return Conflict(
        said(
            "{worker_id} was given a {os} disk meanwhile; delete it again to go on",
            worker_id=worker_id,
            os=os,
        )
    )


def told(thing: Disk | Cd, removal: Removal) -> dict[str, Any]:
    """What every audit line of a deletion says."""
    how: dict[str, Any] = {
        "forced": removal.force or None,
        "forgotten": removal.forget or None,
    }
    if isinstance(thing, Disk):
        how |= {"os": thing.os, "delete_file": removal.delete_file}
    else:
        how |= {"iso": thing.iso}
    return {
        "worker_id": thing.worker_id,
        "agent": thing.agent,
        "iqn": thing.iqn,
        **how,
    }


def _closed(sessions: Sequence[Session]) -> dict[str, Any]:
    """What an answer says of the machines that were cut off."""
    return {"closed": list(sessions)} if sessions else {}


def dropped(
    tx: Transaction,
    thing: Disk | Cd,
    removal: Removal,
    closed: Sequence[Session] = (),
) -> None:
    """It is gone from the node: off the ledger too."""
    if isinstance(thing, Disk):
        disk_drop(tx, thing.worker_id, thing.os)
    elif selectors.cd_of(thing.worker_id) is not None:
        cd_put(tx, thing.worker_id, None)
    log_dropped(tx, thing, removal, closed)


def log_dropped(
    tx: Transaction,
    thing: Disk | Cd,
    removal: Removal,
    closed: Sequence[Session] = (),
) -> None:
    """The audit line of a disk or CD that is gone."""
    op = "worker.disk.delete" if isinstance(thing, Disk) else "lun.delete"
    tx.log(op=op, **told(thing, removal), **_closed(closed))


# --- before anything goes ----------------------------------------------------


def refuse_in_use(things: Sequence[Disk | Cd], removal: Removal) -> None:
    """Conflict names the initiators, Unavailable the node that is gone, NotFound the target."""
    asked: dict[str, list[Target]] = {}
    lost: set[str] = set()
    for thing in things:
        _refuse_shared(thing)
    for thing in things:
        if thing.agent in lost:
            continue
        try:
            if thing.agent not in asked:
                asked[thing.agent] = NodeClient(agent_get(thing.agent)).targets()
        except GONE as error:
            if not removal.forget:
                raise cannot_ask(thing, error) from error
            lost.add(thing.agent)
            continue
        target = next((t for t in asked[thing.agent] if t["iqn"] == thing.iqn), None)
        refuse_target(thing, target, removal)


def _refuse_shared(thing: Disk | Cd) -> None:
    if others := selectors.sharers(thing):
        raise Conflict(
            said(
                "{thing} is the target {iqn} of node {agent}, which {others} has in its "
                "record too: it would lose it. Nothing was changed; take it out of the wrong "
                "record in state/workers.yml first",
                thing=_what(thing),
                iqn=thing.iqn,
                agent=thing.agent,
                others=", ".join(others),
            )
        )


def cannot_ask(
    thing: Disk | Cd, error: ApplicationError, *, forget: bool = True
) -> ApplicationError:
    """The refusal for a node that is gone: nothing was changed."""
    words = said(
        "node {agent} of {thing} cannot be asked: {error}. Nothing was changed.",
        agent=thing.agent,
        thing=_what(thing),
        error=error.message,
    )
    if forget:
        way = said("forget=true takes it off the ledger only.")
        words = joined(" ", words, way)
    if isinstance(error, UpstreamFailed):
        return UpstreamFailed(words, code=error.code)
    return Unavailable(words, code="agent.unreachable")


def refuse_target(thing: Disk | Cd, target: Target | None, removal: Removal) -> None:
    """Conflict names the initiators of a target in use, NotFound the target that is missing."""
    if target is None:
        # A CD has nothing to lose, and a disk under way may have come that far already.
        if isinstance(thing, Disk) and not thing.status:
            if removal.ignore_missing_target:
                return
            raise NotFound(
                said(
                    "node {agent} has no target {iqn}. ignore_missing_target=true deletes the "
                    "disk all the same.",
                    agent=thing.agent,
                    iqn=thing.iqn,
                )
            )
        return
    if target["sessions"] and not removal.force:
        who = "; ".join(map(session_words, target["sessions"]))
        raise Conflict(
            said(
                "{thing} is in use by {who}. Shut the machine down first; force=true cuts it "
                "off.",
                thing=_what(thing),
                who=who,
            )
        )


def _what(thing: Disk | Cd) -> str:
    if isinstance(thing, Disk):
        return said(
            "the {os} disk of {worker_id}", os=thing.os, worker_id=thing.worker_id
        )
    return said("the install CD of {worker_id}", worker_id=thing.worker_id)


# --- on the nodes --------------------------------------------------------------


def _remove(thing: Disk | Cd, removal: Removal) -> list[Session]:
    """Delete the target, and a disk's image when asked; what is missing already counts as done where allowed.

    Returns the sessions that this cut off.
    """
    try:
        return remove_from(agent_get(thing.agent), thing, removal)
    except GONE:
        if not removal.forget:
            raise
    return []


def remove_from(agent: Agent, thing: Disk | Cd, removal: Removal) -> list[Session]:
    """Delete the target on a node, and return the sessions that this cut off; never asks the index."""
    is_disk = isinstance(thing, Disk)
    try:
        done = NodeClient(agent).delete(
            thing.iqn,
            delete_file=is_disk and removal.delete_file,
            force=removal.force,
        )
    except NodeRefused as error:
        under_way = not isinstance(thing, Disk) or bool(thing.status)
        if error.status != 404 or not (removal.ignore_missing_target or under_way):
            raise
        return []
    return done.get("closed", [])


def _remove_all(
    actor: Actor, worker: Worker, things: Sequence[Disk | Cd], removal: Removal
) -> list[Session]:
    done: list[str] = []
    closed: list[Session] = []
    for at, thing in enumerate(things):
        try:
            cut = _remove(thing, removal)
        except ApplicationError as error:
            with writing(actor=actor, op="delete_worker") as tx:
                as_before(tx, thing, error)
                for other in things[at + 1 :]:
                    restore(tx, other)
                tx.log(
                    status="failed",
                    worker_id=worker.worker_id,
                    hostname=worker.hostname,
                    agent=thing.agent,
                    done=done or None,
                    error=error.message[:500],
                )
            raise _with_done(error, done) from error
        done.append(thing.iqn)
        closed += cut
        with writing(actor=actor, op="delete_worker") as tx:
            dropped(tx, thing, removal, cut)
    return closed


def _with_done(error: ApplicationError, done: list[str]) -> ApplicationError:
    """The refusal, naming what is gone already."""
    if not done:
        return error
    refused = error.error if isinstance(error, NodeRefused) else error.message
    words = said(
        "already deleted: {things}; then: {error}",
        things=", ".join(done),
        error=refused,
    )
    if isinstance(error, NodeRefused):
        return NodeRefused(agent=error.agent, status=error.status, error=words)
    error.message = words
    return error


def as_before(tx: Transaction, thing: Disk | Cd, error: ApplicationError) -> None:
    """The node refused: the disk is there as before. Without an answer it stays `deleting`, to be settled."""
    if isinstance(error, NodeRefused) or error.extra.get("sent") is False:
        restore(tx, thing)


def restore(tx: Transaction, thing: Disk | Cd) -> None:
    """Nothing happened to it: its status is what it was."""
    if not isinstance(thing, Disk):
        return
    if selectors.disk_of(thing.worker_id, thing.os) is not None:
        disk_change(tx, thing.worker_id, thing.os, status=thing.status or None)


# --- the worker itself -----------------------------------------------------------


def _forget(actor: Actor, name: str, removal: Removal) -> dict[str, Any]:
    with writing(actor=actor, op="delete_worker") as tx:
        worker = selectors.worker_get(name)
        if left := selectors.disks_of(name):
            raise given_meanwhile(name, left[0].os)
        tx.yaml("workers").remove(name)
        chap.forget(tx, [name])
        gone = []
        if selectors.worker_named(worker.hostname) is None:
            gone = tx.hosts.unbind_hostname(worker.hostname)
        reloading = reload_after(tx) if gone else None
        tx.log(
            worker_id=name,
            hostname=worker.hostname,
            delete_disk=removal.delete_file,
            **removed(gone),
        )
    answer = {
        "deleted": name,
        "delete_disk": removal.delete_file,
        "dnsmasq_removed": bool(gone),
    }
    # An address, a tag or a comment that went along is worth a word; the plain line is not.
    more = [line for line in gone if not _plain(line)]
    return answer | removed(more) | (reloading.answer() if reloading else {})


def _plain(line: HostsLine) -> bool:
    return line.raw.strip() == f"{','.join(line.macs)},{line.hostname}".encode()
