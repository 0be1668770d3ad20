"""Disks that an interruption left under way: what the node has is true."""

from __future__ import annotations

import logging

from django.conf import settings

from agents.client import NodeClient
from agents.models import Agent
from agents.protocol import Target
from agents.selectors import agent_get
from agents.selectors import agents as all_agents
from agents.together import ask_all
from audit.services import record_quietly
from ipxeready.actors import SYSTEM
from ipxeready.errors import ApplicationError
from ipxeready.index import ensure_fresh, writing
from ipxeready.storage.inflight import claim
from workers import selectors
from workers.choices import CREATING
from workers.ledger import disk_change, disk_drop
from workers.models import Disk

log = logging.getLogger(__name__)


def mark(worker_id: str, os: str) -> str:
    """The name under which work on a disk is claimed."""
    return f"disk-{worker_id}.{os}"


def target_of(agent: Agent, iqn: str) -> Target | None:
    """The target of that name on a node, None when the node has none."""
    return next((t for t in NodeClient(agent).targets() if t["iqn"] == iqn), None)


def backing_of(target: Target) -> str | None:
    """The backing store of a target's first LUN."""
    return target["luns"][0]["backing"] if target["luns"] else None


def settle_disk(disk: Disk) -> None:
    """Decide about a disk under way that nobody works on.

    Raises Unavailable when the node cannot be asked; the disk then stays as it is.
    """
    with claim(settings.IPXE_LAYOUT.run, mark(disk.worker_id, disk.os)) as mine:
        if not mine:
            return
        target = target_of(agent_get(disk.agent), disk.iqn)
        with writing(actor=SYSTEM, op=_op(disk)) as tx:
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

    A dead node costs one time limit, not one for each of its disks.
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
                op=_op(disk),
                status="failed",
                worker_id=disk.worker_id,
                agent=disk.agent,
                os=disk.os,
                error=f"not settled: {error}"[:500],
            )
