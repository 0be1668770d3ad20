"""System disks of a worker: reserve in the ledger, make on the node, confirm or take back; the same backwards for deletion.

The lock is never held while a node works. A disk under way carries `status`; `settle` decides about what a crash left.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any

from django.conf import settings

from agents import scheduler
from agents.client import NodeClient
from agents.models import Agent
from agents.protocol import DiskRequest, Target
from agents.selectors import agent_get
from agents.selectors import agents as all_agents
from agents.together import ask_all
from audit.services import record_quietly
from ipxeready.actors import OPERATOR, SYSTEM, Actor
from ipxeready.errors import (
    ApplicationError,
    Conflict,
    Invalid,
    NodeRefused,
    NotFound,
    Unavailable,
)
from ipxeready.index import ensure_fresh, writing
from ipxeready.index.writer import Transaction
from ipxeready.storage import iqn as iqns
from ipxeready.storage.hostnames import warn_windows
from ipxeready.storage.inflight import claim
from ipxeready.storage.sizes import parse_size
from workers import selectors
from workers.adapters import normalized
from workers.choices import CREATING, DELETING, DiskType
from workers.models import Disk, Worker
from workers.services import put_record
from workers.validators import check_os

log = logging.getLogger(__name__)


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
            f"{type!r:.100} must be one of {', '.join(DiskType.values)}", field="type"
        )
    system = check_os(os)
    if type == DiskType.EMPTY:
        if size in (None, ""):
            raise Invalid("is needed for an empty disk, such as 40G", field="size")
        if name:
            raise Invalid("does not go with type empty; leave it out", field="name")
        return DiskSpec(type, system, size=parse_size(size))
    if size not in (None, ""):
        raise Invalid(f"does not go with type {type}; leave it out", field="size")
    if not name:
        raise Invalid(f"is needed for type {type}: the image's file name", field="name")
    return DiskSpec(type, system, name=str(name))


def _mark(worker_id: str, os: str) -> str:
    return f"disk-{worker_id}.{os}"


def _node_for(worker: Worker, spec: DiskSpec, named: str | None) -> Agent:
    """The node that was named, or the scheduler's choice."""
    if named:
        agent = agent_get(named)
        scheduler.check_named_node(agent, role="disk")
        return agent
    return scheduler.pick_disk_node(
        nodes=list(all_agents()),
        need_bytes=spec.size,
        master=spec.name if spec.type == DiskType.MASTER else None,
        own_nodes={disk.agent for disk in selectors.disks_of(worker.worker_id)},
        disk_counts=selectors.disk_counts(),
    )


def disk_create(
    *,
    actor: Actor,
    worker_id: str,
    spec: DiskSpec,
    disk_agent: str | None = None,
) -> dict[str, Any]:
    """Make a system disk and attach it to the worker; the record (with `warnings` where there are any).

    Conflict when that system is there already; the node's refusals keep its status.
    """
    actor.require(OPERATOR)
    worker = selectors.worker_get(worker_id)
    iqn = iqns.target_iqn(settings.IPXE.iqn_base, worker.hostname, spec.os)
    filename = iqns.image_name(worker.hostname, spec.os)
    if spec.type == DiskType.EXISTING and spec.name != filename:
        raise Invalid(
            f"{spec.name!r} cannot be this disk's image: it must be {filename} "
            "(a rebuild makes the target's name from the file's)",
            field="name",
        )
    _refuse_present(worker, spec.os)
    with claim(settings.IPXE_LAYOUT.run, _mark(worker.worker_id, spec.os)) as mine:
        if not mine:
            raise Conflict(
                f"os: the {spec.os} disk of {worker.worker_id} is being worked on"
            )
        agent = _node_for(worker, spec, disk_agent)
        reserved = {
            "agent": agent.id,
            "iqn": iqn,
            "filename": filename,
            "backing": "",
            "os": spec.os,
            "source": spec.source(),
            "status": CREATING,
        }
        _reserve(actor, worker.worker_id, reserved)
        created = _make(actor, worker.worker_id, agent, spec, reserved)
        record = _confirm(actor, worker.worker_id, reserved, created["backing"])
    warning = warn_windows(worker.hostname) if spec.os == "windows" else None
    return record | ({"warnings": [warning]} if warning else {})


def _refuse_present(worker: Worker, os: str) -> None:
    disk = next((d for d in selectors.disks_of(worker.worker_id) if d.os == os), None)
    if disk is None:
        return
    if disk.status:
        # Left by a crash, or by a node that did not answer: look at the node now.
        settle_disk(disk)
        if not Disk.objects.filter(worker_id=worker.worker_id, os=os).exists():
            return
    raise Conflict(
        f"os: {worker.worker_id} has a {os} disk already on node {disk.agent}"
    )


def _reserve(actor: Actor, worker_id: str, disk: dict[str, Any]) -> None:
    with writing(actor=actor, op="worker.disk.create") as tx:
        worker = selectors.worker_get(worker_id)
        if any(each.os == disk["os"] for each in selectors.disks_of(worker_id)):
            raise Conflict(f"os: {worker_id} has a {disk['os']} disk already")
        if disk["filename"] != iqns.image_name(worker.hostname, disk["os"]):
            raise Conflict(f"{worker_id} was renamed meanwhile; try again")
        record = normalized(tx.yaml("workers").get(worker_id))
        record["disks"] = [*record["disks"], disk]
        put_record(tx, worker_id, record)
        tx.log(
            status="started",
            worker_id=worker_id,
            agent=disk["agent"],
            os=disk["os"],
            iqn=disk["iqn"],
            source=disk["source"],
        )


def _make(
    actor: Actor,
    worker_id: str,
    agent: Agent,
    spec: DiskSpec,
    disk: dict[str, Any],
) -> dict[str, Any]:
    """Have the node make it; on a refusal the reservation is taken back."""
    request = DiskRequest(
        iqn=disk["iqn"],
        master=spec.name if spec.type == DiskType.MASTER else None,
        size=spec.size,
        existing=spec.type == DiskType.EXISTING,
        filename=disk["filename"],
    )
    try:
        return dict(NodeClient(agent).create_disk(request))
    except NodeRefused as error:
        _take_back(actor, worker_id, disk, error)
        raise
    except ApplicationError as error:
        # No answer: the node may have made it all the same. Ask; if it cannot be asked, the
        # reservation stays `creating` and is settled later.
        if not _was_made(agent, disk["iqn"]):
            _take_back(actor, worker_id, disk, error)
            raise
        return {"iqn": disk["iqn"], "backing": ""}


def _was_made(agent: Agent, iqn: str) -> bool:
    try:
        return _target(agent, iqn) is not None
    except ApplicationError as error:
        raise Unavailable(
            f"node {agent.id} did not answer, and cannot be asked whether it made {iqn}: "
            f"{error.message}. The disk stays `creating`; it is settled when the node answers "
            "again, at the next try or the next start.",
            code="agent.unreachable",
        ) from error


def _target(agent: Agent, iqn: str) -> Target | None:
    return next((t for t in NodeClient(agent).targets() if t["iqn"] == iqn), None)


def _take_back(
    actor: Actor, worker_id: str, disk: dict[str, Any], error: ApplicationError
) -> None:
    with writing(actor=actor, op="worker.disk.create") as tx:
        drop_disk(tx, worker_id, disk["os"], status=CREATING)
        tx.log(
            status="rollback",
            worker_id=worker_id,
            agent=disk["agent"],
            os=disk["os"],
            iqn=disk["iqn"],
            error=error.message[:500],
        )


def _confirm(
    actor: Actor, worker_id: str, disk: dict[str, Any], backing: str
) -> dict[str, Any]:
    with writing(actor=actor, op="worker.disk.create") as tx:
        change_disk(tx, worker_id, disk["os"], backing=backing, status=None)
        tx.log(
            worker_id=worker_id,
            agent=disk["agent"],
            os=disk["os"],
            iqn=disk["iqn"],
            source=disk["source"],
        )
        return selectors.record_of(selectors.worker_get(worker_id))


def change_disk(tx: Transaction, worker_id: str, os: str, **values: Any) -> None:
    """Set fields of one disk in the ledger; None removes a field. NotFound when it is gone."""
    record = normalized(tx.yaml("workers").get(worker_id) or {"hostname": worker_id})
    disks = []
    found = False
    for disk in record["disks"]:
        if str(disk.get("os", "")).lower() == os:
            found = True
            merged = {**disk, **values}
            disk = {key: value for key, value in merged.items() if value is not None}
        disks.append(disk)
    if not found:
        raise NotFound(f"{worker_id} has no {os} disk any more")
    put_record(tx, worker_id, {**record, "disks": disks})


def drop_disk(
    tx: Transaction, worker_id: str, os: str, status: str | None = None
) -> None:
    """Take one disk out of the ledger (only with that status, if given) with the defaults that name it."""
    data = tx.yaml("workers").get(worker_id)
    if data is None:
        return
    record = normalized(data)
    left = [
        disk
        for disk in record["disks"]
        if str(disk.get("os", "")).lower() != os
        or (status is not None and disk.get("status") != status)
    ]
    if len(left) == len(record["disks"]):
        return
    record["disks"] = left
    if str(record.get("default_os") or "").lower() == os:
        record["default_os"] = None
    boot = dict(record.get("boot") or {})
    if str(boot.get("menu_default") or "").lower() == os:
        del boot["menu_default"]
    record["boot"] = boot
    put_record(tx, worker_id, record)


# --- deletion --------------------------------------------------------------------


@dataclass(frozen=True)
class Removal:
    """How to delete: the image too, whether a missing target is well, in use is forced, a lost node is forgotten."""

    delete_file: bool = False
    ignore_missing_target: bool = False
    force: bool = False
    forget: bool = False


def refuse_in_use(disks: list[Disk], removal: Removal) -> None:
    """Ask every node before anything goes: Conflict names the initiators, Unavailable the node that is gone."""
    for disk in disks:
        try:
            target = _target(agent_get(disk.agent), disk.iqn)
        except (Unavailable, NotFound) as error:
            if removal.forget:
                continue
            raise Unavailable(
                f"node {disk.agent} of the {disk.os} disk cannot be asked: {error.message}. "
                "Nothing was changed. forget=true takes the disk off the ledger only.",
                code="agent.unreachable",
            ) from error
        sessions = target["sessions"] if target else []
        if sessions and not removal.force:
            who = ", ".join(f"{s['initiator']} ({s['address']})" for s in sessions)
            raise Conflict(
                f"the {disk.os} disk of {disk.worker_id} is in use by {who}. Shut the machine "
                "down first; force=true cuts it off."
            )
        if target is None and not disk.status and not removal.ignore_missing_target:
            raise NotFound(
                f"node {disk.agent} has no target {disk.iqn}. ignore_missing_target=true "
                "deletes the disk all the same."
            )


def remove_on_node(disk: Disk, removal: Removal) -> None:
    """Delete the target, and the image when asked; what is missing already counts as done where allowed."""
    try:
        NodeClient(agent_get(disk.agent)).delete(
            disk.iqn, delete_file=removal.delete_file, force=removal.force
        )
    except NodeRefused as error:
        missing = error.status == 404
        if not missing or not (removal.ignore_missing_target or disk.status):
            raise
    except (Unavailable, NotFound):
        if not removal.forget:
            raise


def disk_delete(
    *, actor: Actor, worker_id: str, os: str, removal: Removal
) -> dict[str, Any]:
    """Delete one system disk of a worker; the record. Conflict while a session is open, unless forced."""
    actor.require(OPERATOR)
    worker = selectors.worker_get(worker_id)
    name = check_os(os)
    with claim(settings.IPXE_LAYOUT.run, _mark(worker.worker_id, name)) as mine:
        if not mine:
            raise Conflict(
                f"os: the {name} disk of {worker.worker_id} is being worked on"
            )
        disk = Disk.objects.filter(worker_id=worker.worker_id, os=name).first()
        if disk is None:
            raise NotFound(f"worker {worker.worker_id} has no {name} disk")
        refuse_in_use([disk], removal)
        with writing(actor=actor, op="worker.disk.delete") as tx:
            change_disk(tx, worker.worker_id, name, status=DELETING)
            tx.log(
                status="started",
                worker_id=worker.worker_id,
                agent=disk.agent,
                os=name,
                iqn=disk.iqn,
                delete_file=removal.delete_file,
            )
        try:
            remove_on_node(disk, removal)
        except ApplicationError as error:
            _keep(actor, disk, error)
            raise
        with writing(actor=actor, op="worker.disk.delete") as tx:
            drop_disk(tx, worker.worker_id, name)
            tx.log(
                worker_id=worker.worker_id,
                agent=disk.agent,
                os=name,
                iqn=disk.iqn,
                delete_file=removal.delete_file,
                forced=removal.force or None,
                forgotten=removal.forget or None,
            )
            return selectors.record_of(selectors.worker_get(worker.worker_id))


def _keep(actor: Actor, disk: Disk, error: ApplicationError) -> None:
    """The node refused: the disk is there as before. Without an answer it stays `deleting`, to be settled."""
    with writing(actor=actor, op="worker.disk.delete") as tx:
        if isinstance(error, NodeRefused):
            change_disk(tx, disk.worker_id, disk.os, status=disk.status or None)
        tx.log(
            status="failed",
            worker_id=disk.worker_id,
            agent=disk.agent,
            os=disk.os,
            iqn=disk.iqn,
            error=error.message[:500],
        )


# --- after a crash ---------------------------------------------------------------


def settle_disk(disk: Disk) -> None:
    """Decide about a disk under way that nobody works on: what the node has is true.

    Raises Unavailable when the node cannot be asked; the disk then stays as it is.
    """
    with claim(settings.IPXE_LAYOUT.run, _mark(disk.worker_id, disk.os)) as mine:
        if not mine:
            return
        target = _target(agent_get(disk.agent), disk.iqn)
        with writing(actor=SYSTEM, op=f"worker.disk.{_verb(disk)}") as tx:
            now = Disk.objects.filter(worker_id=disk.worker_id, os=disk.os).first()
            if now is None or now.status != disk.status:
                return
            if target is not None:
                backing = target["luns"][0]["backing"] if target["luns"] else None
                change_disk(tx, disk.worker_id, disk.os, status=None, backing=backing)
            else:
                drop_disk(tx, disk.worker_id, disk.os)
            made = disk.status == CREATING
            tx.log(
                status="ok" if (target is not None) == made else "rollback",
                worker_id=disk.worker_id,
                agent=disk.agent,
                os=disk.os,
                iqn=disk.iqn,
                note="settled against the node after an interruption",
            )


def _verb(disk: Disk) -> str:
    return "create" if disk.status == CREATING else "delete"


def settle_all() -> None:
    """Settle every disk that a crash left under way; nodes that do not answer are left for later.

    Nodes are looked at side by side first: a dead one costs the start one time limit, not one for each disk.
    """
    ensure_fresh(wait=True)
    left = list(Disk.objects.exclude(status=""))
    nodes = all_agents().filter(pk__in={disk.agent for disk in left})
    limit = settings.IPXE.agent_timeout
    answers = ask_all(nodes, lambda agent: NodeClient(agent).health(), limit)
    for disk in left:
        try:
            answer = answers.get(disk.agent)
            if isinstance(answer, ApplicationError):
                raise answer
            settle_disk(disk)
        except (ApplicationError, OSError) as error:
            log.warning("%s stays %s: %s", disk.iqn, disk.status, error)
            record_quietly(
                actor=SYSTEM,
                op=f"worker.disk.{_verb(disk)}",
                status="failed",
                worker_id=disk.worker_id,
                agent=disk.agent,
                os=disk.os,
                error=f"not settled: {error}"[:500],
            )
