"""New system disks: reserved in the ledger, made on the node, then confirmed or taken back.

The lock is never held while a node works. A disk under way carries `status`; `settle` decides about what is left over.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from agents import scheduler
from agents.intake import node_of_image
from agents.models import Agent
from agents.nodes import agent_create_disk
from agents.protocol.access import OFF, Chap
from agents.protocol.answers import Target
from agents.protocol.filenames import check_import, check_master
from agents.protocol.requests import DiskRequest
from agents.selectors import agent_get
from agents.selectors import agents as all_agents
from audit.services import record_quietly
from ipxeready.actors import OPERATOR, Actor
from ipxeready.errors import (
    ApplicationError,
    Conflict,
    Invalid,
    NodeRefused,
    NotFound,
    Unavailable,
)
from ipxeready.given import shown
from ipxeready.index import writing
from ipxeready.index.writer import Transaction
from ipxeready.jobs.watch import NOBODY, Watch
from ipxeready.said import joined, said
from ipxeready.storage import iqn as iqns
from ipxeready.storage.hostnames import warn_windows
from ipxeready.storage.inflight import claim
from ipxeready.storage.sizes import parse_size
from workers import selectors
from workers.access import grant
from workers.choices import CREATING, DiskType
from workers.ledger import disk_change, disk_drop, record_get, record_put
from workers.models import Worker
from workers.settle import (
    backing_of,
    image_of,
    look,
    mark,
    settle_disk,
    still_at_it,
)
from workers.validators import check_os

log = logging.getLogger(__name__)

#: Nobody knows whether the node has made it: the disk stays `creating`.
UNSETTLED = "disk.unsettled"


@dataclass(frozen=True)
class DiskSpec:
    """What disk to make; `size` in bytes. Made by `disk_spec`."""

    type: str
    os: str
    name: str | None = None
    size: int | None = None

    def source(self) -> dict[str, Any]:
        """How the ledger names where the content came from."""
        if self.type == DiskType.EMPTY:
            return {"type": self.type, "size": self.size}
        return {"type": self.type, "name": self.name}


def disk_spec(
    *, type: str, os: Any, name: str | None = None, size: Any = None
) -> DiskSpec:
    """Check the fields of a new disk; each type takes its own and refuses the other's."""
    if type not in DiskType.values:
        raise Invalid(
            said(
                "{text} must be one of {choices}",
                text=shown(type),
                choices=", ".join(DiskType.values),
            ),
            field="type",
        )
    system = check_os(os)
    if type == DiskType.EMPTY:
        if size in (None, ""):
            raise Invalid(
                said("is needed for an empty disk, such as 40G"), field="size"
            )
        if name:
            raise Invalid(
                said("does not go with type empty; leave it out"), field="name"
            )
        return DiskSpec(type, system, size=parse_size(size))
    if size not in (None, ""):
        raise Invalid(
            said("does not go with type {type}; leave it out", type=type), field="size"
        )
    if not name:
        raise Invalid(
            said("is needed for type {type}: the image's file name", type=type),
            field="name",
        )
    if type == DiskType.MASTER:
        name = check_master(name, field="name")
    if type == DiskType.IMPORT:
        name = check_import(name, field="name")
    return DiskSpec(type, system, name=name)


def disk_create(
    *,
    actor: Actor,
    worker_id: str,
    spec: DiskSpec,
    disk_agent: str | None = None,
    watch: Watch = NOBODY,
) -> dict[str, Any]:
    """Make a system disk and attach it to the worker; the record (with `warnings` where there are any).

    Conflict when that system is there already; the node's refusals keep its status.
    """
    worker = disk_check(actor=actor, worker_id=worker_id, spec=spec, named=disk_agent)
    with claim(settings.IPXE_LAYOUT.run, mark(worker.worker_id, spec.os)) as mine:
        if not mine:
            raise _busy(worker.worker_id, spec.os)
        agent = _node_for(worker, spec, disk_agent)
        disk = disk_entry(worker, agent, spec)
        watch.note(agent=agent.id, iqn=disk["iqn"])
        chap = _reserve(actor, worker.worker_id, disk)
        request = disk_request(spec, disk, chap)
        backing = _make(actor, worker.worker_id, agent, request, disk, watch)
        record = _confirm(actor, worker.worker_id, disk, backing)
    warning = warn_windows(worker.hostname) if spec.os == "windows" else None
    return record | ({"warnings": [warning]} if warning else {})


def disk_check(
    *, actor: Actor, worker_id: str, spec: DiskSpec, named: str | None = None
) -> Worker:
    """What is known to be refused before a node is asked to make anything; the worker."""
    actor.require(OPERATOR)
    worker = selectors.worker_get(worker_id)
    check_existing(worker, spec)
    _refuse_present(worker, spec.os)
    if named:
        _named(named)
    return worker


def check_existing(worker: Worker, spec: DiskSpec) -> None:
    """A kept image must have this disk's own name."""
    filename = iqns.image_name(worker.hostname, spec.os)
    if spec.type == DiskType.EXISTING and spec.name != filename:
        raise Invalid(
            said(
                "{name} cannot be this disk's image: it must be {filename} (a rebuild makes "
                "the target's name from the file's)",
                name=shown(spec.name),
                filename=filename,
            ),
            field="name",
        )


def disk_entry(worker: Worker, agent: Agent, spec: DiskSpec) -> dict[str, Any]:
    """The disk as the ledger reserves it."""
    return {
        "agent": agent.id,
        "iqn": iqns.target_iqn(settings.IPXE.iqn_base, worker.hostname, spec.os),
        "filename": iqns.image_name(worker.hostname, spec.os),
        "backing": "",
        "os": spec.os,
        "source": spec.source(),
        "status": CREATING,
    }


def disk_request(
    spec: DiskSpec, disk: dict[str, Any], chap: Chap | None = None
) -> DiskRequest:
    """What the node is asked to make."""
    return DiskRequest(
        iqn=disk["iqn"],
        master=spec.name if spec.type == DiskType.MASTER else None,
        size=spec.size,
        existing=spec.type == DiskType.EXISTING,
        import_=spec.name if spec.type == DiskType.IMPORT else None,
        filename=disk["filename"],
        access=disk.get("access", OFF),
        chap=chap,
    )


def _busy(worker_id: str, os: str) -> Conflict:
    return Conflict(
        said(
            "os: the {os} disk of {worker_id} is being worked on; try again when that is "
            "done",
            os=os,
            worker_id=worker_id,
        )
    )


def _node_for(worker: Worker, spec: DiskSpec, named: str | None) -> Agent:
    """The node that was named, or the scheduler's choice."""
    if named:
        return _named(named)
    if spec.type == DiskType.IMPORT:
        return node_of_image(name=spec.name or "", nodes=list(all_agents()))
    return scheduler.pick_disk_node(
        nodes=list(all_agents()),
        need_bytes=spec.size,
        master=spec.name if spec.type == DiskType.MASTER else None,
        own_nodes={disk.agent for disk in selectors.disks_of(worker.worker_id)},
        disk_counts=selectors.disk_counts(),
    )


def _named(name: str) -> Agent:
    agent = agent_get(name)
    scheduler.check_named_node(agent, role="disk", field="disk_agent")
    return agent


def _refuse_present(worker: Worker, os: str) -> None:
    disk = selectors.disk_of(worker.worker_id, os)
    if disk is not None and disk.status:
        # Left by a crash, or by a node that did not answer: look at the node now.
        settle_disk(disk)
        disk = selectors.disk_of(worker.worker_id, os)
        if disk is not None and disk.status:
            raise _busy(worker.worker_id, os)
    if disk is not None:
        raise Conflict(
            said(
                "os: {worker_id} has a {os} disk already on node {agent}",
                worker_id=worker.worker_id,
                os=os,
                agent=disk.agent,
            )
        )


def told(worker_id: str, disk: dict[str, Any]) -> dict[str, Any]:
    """What every audit line of a creation says."""
    told = {key: disk[key] for key in ("agent", "os", "iqn", "source")}
    if "access" in disk:
        told["access"] = disk["access"]
    return {"worker_id": worker_id, **told}


def disk_reserve(tx: Transaction, worker_id: str, disk: dict[str, Any]) -> Chap | None:
    """Put the disk into the record as one that is being made; Conflict when that cannot be any more.

    Decides the access of its target, and returns the secret where it takes one.
    """
    record = record_get(tx, worker_id)
    if any(str(each.get("os", "")).lower() == disk["os"] for each in record["disks"]):
        raise Conflict(
            said(
                "os: {worker_id} has a {os} disk already",
                worker_id=worker_id,
                os=disk["os"],
            )
        )
    hostname = str(record["hostname"]).lower()
    if disk["filename"] != iqns.image_name(hostname, disk["os"]):
        raise Conflict(
            said("{worker_id} was renamed meanwhile; try again", worker_id=worker_id)
        )
    chap = grant(tx, selectors.worker_get(worker_id), disk)
    record["disks"] = [*record["disks"], disk]
    record_put(tx, worker_id, record)
    tx.log(status="started", **told(worker_id, disk))
    return chap


def _reserve(actor: Actor, worker_id: str, disk: dict[str, Any]) -> Chap | None:
    with writing(actor=actor, op="worker.disk.create") as tx:
        return disk_reserve(tx, worker_id, disk)


def _make(
    actor: Actor,
    worker_id: str,
    agent: Agent,
    request: DiskRequest,
    disk: dict[str, Any],
    watch: Watch,
) -> str:
    """Have the node make it, and return its backing store; on a refusal the reservation is taken back."""
    try:
        made = agent_create_disk(
            actor=actor,
            agent=agent,
            request=request,
            worker_id=worker_id,
            watch=watch,
        )
        return made["backing"]
    except ApplicationError as error:
        certain = isinstance(error, NodeRefused) or error.extra.get("sent") is False
        if not certain:
            # The answer was lost, the disk may be there all the same.
            target = _ask_again(actor, worker_id, agent, disk)
            if target is not None:
                return backing_of(target) or ""
        _take_back(actor, worker_id, disk, error)
        raise


def _ask_again(
    actor: Actor, worker_id: str, agent: Agent, disk: dict[str, Any]
) -> Target | None:
    try:
        return look_again(agent, disk["iqn"])
    except Unavailable as error:
        _failed(actor, worker_id, disk, error.message)
        raise


def look_again(agent: Agent, iqn: str) -> Target | None:
    """Whether a node whose answer was lost has made the target all the same; Unavailable when it cannot be asked."""
    try:
        busy, targets = look(agent)
    except ApplicationError as error:
        raise Unavailable(
            said(
                "node {agent} did not answer, and cannot be asked whether it made {iqn}: "
                "{error}. The disk stays `creating`; it is settled when the node answers "
                "again.",
                agent=agent.id,
                iqn=iqn,
                error=error.message,
            ),
            code=UNSETTLED,
        ) from error
    target = next((target for target in targets if target["iqn"] == iqn), None)
    if target is None and image_of(iqn) in busy:
        words = still_at_it(agent.id, iqn).message
        raise Unavailable(
            said("its answer was lost: {words}", words=words), code=UNSETTLED
        )
    return target


def _failed(actor: Actor, worker_id: str, disk: dict[str, Any], words: str) -> None:
    record_quietly(
        actor=actor,
        op="worker.disk.create",
        status="failed",
        **told(worker_id, disk),
        error=words[:500],
    )


def _take_back(
    actor: Actor, worker_id: str, disk: dict[str, Any], error: ApplicationError
) -> None:
    try:
        with writing(actor=actor, op="worker.disk.create") as tx:
            disk_drop(tx, worker_id, disk["os"], status=CREATING)
            tx.log(
                status="rollback",
                **told(worker_id, disk),
                error=error.message[:500],
            )
    except ApplicationError as late:
        # What the node said matters more to the caller; the reservation is settled later.
        log.warning("%s stays %s: %s", disk["iqn"], CREATING, late)


def not_in_ledger(disk: dict[str, Any], error: ApplicationError) -> ApplicationError:
    """The error of a disk that a node has made and the ledger cannot say so."""
    words = said(
        "node {agent} has made {iqn}, but the ledger does not say so: {error}",
        agent=disk["agent"],
        iqn=disk["iqn"],
        error=error.message,
    )
    if isinstance(error, NotFound):
        way = said(
            "Delete that target on node {agent}, or create the worker again",
            agent=disk["agent"],
        )
        return Conflict(joined(". ", words, way))
    way = said("The disk is settled as soon as that works again")
    return Unavailable(joined(". ", words, way), code=error.code)


def _confirm(
    actor: Actor, worker_id: str, disk: dict[str, Any], backing: str
) -> dict[str, Any]:
    try:
        with writing(actor=actor, op="worker.disk.create") as tx:
            disk_change(tx, worker_id, disk["os"], backing=backing, status=None)
            tx.log(**told(worker_id, disk))
            return selectors.record_of(selectors.worker_get(worker_id))
    except ApplicationError as error:
        late = not_in_ledger(disk, error)
        _failed(actor, worker_id, disk, late.message)
        raise late from error
