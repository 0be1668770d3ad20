"""Install CDs: an ISO of a node, exported for one worker and written into its record.

The target's name is the worker's own, so nothing needs to be reserved: a claim keeps others out while a node works, and
what a crash leaves on a node is taken over by the next try.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePosixPath
from typing import Any

from django.conf import settings

from agents import scheduler
from agents.client import NodeClient
from agents.models import Agent
from agents.protocol.answers import Target
from agents.protocol.filenames import check_iso
from agents.protocol.requests import CdRequest
from agents.protocol.systems import CD
from agents.selectors import agent_get
from agents.selectors import agents as all_agents
from audit.services import record_quietly
from ipxeready.actors import OPERATOR, Actor
from ipxeready.errors import (
    ApplicationError,
    Conflict,
    NodeRefused,
    NotFound,
    Unavailable,
)
from ipxeready.index import writing
from ipxeready.said import said
from ipxeready.storage import iqn as iqns
from ipxeready.storage.inflight import claim
from workers import selectors
from workers.access import Granter, effective, granter, noted
from workers.ledger import cd_put
from workers.models import Worker
from workers.settle import backing_of, target_of

_OP = "lun.create_cd"


def cd_attach(
    *, actor: Actor, worker_id: str, iso: str, agent: str | None = None
) -> dict[str, Any]:
    """Attach an install CD; the record, whose state is `installing` then. Conflict when there is a CD already."""
    actor.require(OPERATOR)
    worker = selectors.worker_get(worker_id)
    iso = check_iso(iso)
    own = {disk.agent for disk in selectors.disks_of(worker.worker_id)}
    with claimed(worker.hostname):
        _refuse_present(worker.worker_id)
        # Read under the claim, which a change of access takes too.
        access = selectors.worker_get(worker.worker_id).access
        with (
            exported(
                actor=actor,
                worker_id=worker.worker_id,
                hostname=worker.hostname,
                iso=iso,
                agent=agent,
                own_nodes=own,
                access=access,
            ) as cd,
            writing(actor=actor, op=_OP) as tx,
        ):
            _same_still(worker)
            cd_put(tx, worker.worker_id, cd)
            tx.log(**told(worker.worker_id, cd))
            return selectors.record_of(selectors.worker_get(worker.worker_id))


def told(worker_id: str, cd: dict[str, Any]) -> dict[str, Any]:
    """What every audit line of a CD says."""
    return {"worker_id": worker_id, **{key: cd[key] for key in ("agent", "iqn", "iso")}}


@contextmanager
def claimed(hostname: str) -> Iterator[None]:
    """Keep everybody else from this hostname's CD for the block; Conflict when somebody works on it."""
    with claim(settings.IPXE_LAYOUT.run, f"cd-{hostname}") as mine:
        if not mine:
            raise Conflict(
                said(
                    "the install CD of {hostname} is being worked on; try again when that is done",
                    hostname=hostname,
                )
            )
        yield


@contextmanager
def exported(
    *,
    actor: Actor,
    worker_id: str,
    hostname: str,
    iso: str,
    agent: str | None = None,
    own_nodes: set[str] | None = None,
    access: str = "",
) -> Iterator[dict[str, Any]]:
    """Export the ISO on a node (the one named, else the first that has it) and yield the record's `cd`.

    `access` is the worker's own word about who may log in, empty where it has none.

    When the block fails, what this call made on the node is taken off again. Enter it claimed, and outside of a write.
    """
    iqn = iqns.cd_iqn(settings.IPXE.iqn_base, hostname)
    request = CdRequest(iso=iso, iqn=iqn)
    give = granter(actor, worker_id, hostname, access)
    cd: dict[str, Any] = {"agent": agent or "", "iqn": iqn, "iso": iso, "backing": ""}
    try:
        node, cd["backing"], made = _export(request, agent, own_nodes or set(), give)
    except ApplicationError as error:
        record_quietly(
            actor=actor,
            op=_OP,
            status="failed",
            **{**told(worker_id, cd), "agent": error.extra.get("agent") or agent},
            error=error.message[:500],
        )
        raise
    cd = noted({**cd, "agent": node.id}, effective(access, node))
    try:
        yield cd
    except ApplicationError as error:
        if made:
            _take_off(actor, worker_id, node, cd, error)
        raise


def _refuse_present(worker_id: str) -> None:
    cd = selectors.cd_of(worker_id)
    if cd is not None:
        raise Conflict(
            said(
                "iso: {worker_id} has an install CD already, {iso} on node {agent}; take it "
                "off with DELETE /workers/{worker_id}/luns/cd first",
                worker_id=worker_id,
                iso=cd.iso or cd.iqn,
                agent=cd.agent,
            )
        )


def _same_still(worker: Worker) -> None:
    """Inside the write: nobody gave the worker a CD or another name meanwhile."""
    now = selectors.worker_get(worker.worker_id)
    _refuse_present(worker.worker_id)
    if now.hostname != worker.hostname:
        raise Conflict(
            said(
                "{worker_id} was renamed meanwhile; try again",
                worker_id=worker.worker_id,
            )
        )


# --- on the nodes --------------------------------------------------------------


def _export(
    request: CdRequest, named: str | None, own_nodes: set[str], give: Granter
) -> tuple[Agent, str, bool]:
    """The node, the backing store, and whether this call made the target."""
    if named:
        agent = agent_get(named)
        scheduler.check_named_node(agent, role=CD, field="agent")
        return agent, *_export_on(agent, request, give)
    able, passed, unreached = scheduler.cd_nodes(list(all_agents()), own_nodes)
    refused: list[NodeRefused] = []
    for agent in able:
        try:
            return agent, *_export_on(agent, request, give)
        except NodeRefused as error:
            refused.append(error)
            passed[agent.id] = said("refused: {error}", error=error.error)
    if len(refused) == len(passed) == 1:
        raise refused[0]
    found = scheduler.nowhere(
        passed,
        said("the install CD {iso}", iso=request.iso),
        unreached=unreached,
    )
    if refused and not unreached and all(error.status == 404 for error in refused):
        raise NotFound(found.message, code="iso.missing", extra=found.extra)
    raise found


def _export_on(agent: Agent, request: CdRequest, give: Granter) -> tuple[str, bool]:
    access, chap = give(agent)
    request = dataclasses.replace(request, access=access, chap=chap)
    try:
        return NodeClient(agent).create_cd(request)["backing"], True
    except NodeRefused as error:
        if error.status != 409:
            raise
        # Left by an earlier try that never reached the ledger; another ISO stays refused.
        target = target_of(agent, request.iqn or "")
        if target is None or not _carries(target, request.iso):
            raise
        # Nor did anybody set its access since.
        NodeClient(agent).set_access(target["iqn"], access, chap)
        return backing_of(target) or "", False
    except Unavailable as error:
        if error.extra.get("sent") is False:
            raise
        # The answer was lost: the CD may be there all the same.
        target = target_of(agent, request.iqn or "")
        if target is None or not _carries(target, request.iso):
            raise
        return backing_of(target) or "", True


def _carries(target: Target, iso: str) -> bool:
    return any(
        lun["type"] == CD and PurePosixPath(lun["backing"]).name == iso
        for lun in target["luns"]
    )


def _take_off(
    actor: Actor,
    worker_id: str,
    node: Agent,
    cd: dict[str, Any],
    error: ApplicationError,
) -> None:
    try:
        NodeClient(node).delete(cd["iqn"], delete_file=False)
    except ApplicationError as late:
        if not isinstance(late, NodeRefused) or late.status != 404:
            error.message = said(
                "{error}. Node {agent} keeps the CD's target {iqn}, because it could not be "
                "taken off again: {late}",
                error=error.message,
                agent=node.id,
                iqn=cd["iqn"],
                late=late.message,
            )
    record_quietly(
        actor=actor,
        op=_OP,
        status="rollback",
        **told(worker_id, cd),
        error=error.message[:500],
    )
