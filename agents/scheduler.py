"""Which node a disk goes to when nobody names one, and whether a named one will do."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from dataclasses import dataclass

from django.conf import settings

from agents.client import NodeClient
from agents.models import Agent
from agents.protocol.answers import Capabilities, Master
from agents.protocol.systems import CD, DISK
from agents.together import ask_all
from ipxeready.errors import ApplicationError, Conflict, Invalid, Unavailable
from ipxeready.said import clipped, joined, said
from ipxeready.storage.sizes import format_size

#: A small reserve that every node keeps free for the clones that are growing already.
RESERVE = 1 << 30
#: More nodes than this are counted only, or a refusal would fill pages.
_NAMED = 20


@dataclass(frozen=True)
class _Asked:
    """What a node said of itself."""

    capabilities: Capabilities
    masters: list[Master]


def check_named_node(agent: Agent, role: str, *, field: str | None = None) -> None:
    """Refuse a node that somebody named: disabled is Conflict, without the role (disk or cd) is Invalid.

    `field` is where it was named, if it was a field.
    """
    what = {DISK: said("disks"), CD: said("install CDs")}[role]
    if not agent.enabled:
        raise Conflict(
            said(
                "node {agent} is disabled; enable it or name another node",
                agent=agent.id,
            ),
            code="agent.disabled",
            extra={"agent": agent.id},
        )
    if not (agent.role_disk if role == DISK else agent.role_cd):
        raise Invalid(
            said(
                "node {agent} takes no {what} (role.{role} is false); change its role or "
                "name another node",
                agent=agent.id,
                what=what,
                role=role,
            ),
            code="agent.role",
            field=field,
            extra={"agent": agent.id},
        )


def pick_disk_node(
    *,
    nodes: list[Agent],
    need_bytes: int | None = None,
    master: str | None = None,
    own_nodes: set[str],
    disk_counts: dict[str, int],
) -> Agent:
    """The node for a new disk, by the rules of `pick_disk_nodes`."""
    (picked,) = pick_disk_nodes(
        nodes=nodes,
        need_bytes=need_bytes,
        master=master,
        own_nodes=[own_nodes],
        disk_counts=disk_counts,
    )
    return picked


def pick_disk_nodes(
    *,
    nodes: list[Agent],
    need_bytes: int | None = None,
    master: str | None = None,
    own_nodes: Sequence[set[str]],
    disk_counts: dict[str, int],
) -> list[Agent]:
    """The nodes for like disks of several workers (`own_nodes` of each), one after the other; each node is asked once.

    Asks the nodes, so never inside `index.writing()`.

    1. enabled, `role.disk`, reachable; holds `master` when cloning; is not full
    2. the whole disk fits now (images are sparse and may be promised more than there is,
       so this is a wish, not a condition: the node itself refuses what cannot be)
    3. then a node with this worker's other disks, then the fewest disks, then the id

    Raises Conflict naming each node and why it was passed over, Unavailable when one that
    might have done is unreachable.
    """
    spare = _fitting(nodes, need_bytes, master)
    fitting = [agent for agent in nodes if agent.id in spare]
    counts = {agent.id: disk_counts.get(agent.id, 0) for agent in fitting}
    picked = []
    for own in own_nodes:
        best = min(
            fitting,
            key=lambda agent: preference(
                agent.id, spare=spare[agent.id], own=own, count=counts[agent.id]
            ),
        )
        spare[best.id] -= 1
        counts[best.id] += 1
        picked.append(best)
    return picked


def preference(
    name: str, *, spare: float, own: Set[str], count: int
) -> tuple[bool, bool, int, str]:
    """The order in which fitting nodes are taken: rules 2 and 3 of `pick_disk_nodes`, least first."""
    return spare < 1, name not in own, count, name


def unfit(found: Capabilities) -> str:
    """Why a node with these capabilities takes no empty disk, however small; empty when it does."""
    if not found["empty_disk"]:
        return said("makes no empty disks")
    return _full(found)


def _full(found: Capabilities) -> str:
    free, total = found["free_bytes"], found["total_bytes"]
    if total and free < min(RESERVE, total // 50):
        return said("is full ({free} free)", free=format_size(max(free, 0)))
    return ""


def closed(agent: Agent, role: str) -> str:
    """Why a node gets no disk or CD (its role), by the registry alone; empty when it may."""
    if not agent.enabled:
        return said("is disabled")
    if role == DISK:
        return "" if agent.role_disk else said("takes no disks (role.disk is false)")
    return "" if agent.role_cd else said("takes no install CDs (role.cd is false)")


def no_drive(found: Capabilities) -> str:
    """Why a node that answers can take no install CD; empty when it can."""
    if found["cd"]:
        return ""
    return said("has no CD drive (its backend is {backend})", backend=found["backend"])


def _fitting(
    nodes: list[Agent], need_bytes: int | None, master: str | None
) -> dict[str, float]:
    """How many whole disks fit now, by node that can take one at all."""
    passed: dict[str, str] = {}
    for agent in nodes:
        if words := closed(agent, DISK):
            passed[agent.id] = words
    asking = [agent for agent in nodes if agent.id not in passed]
    answers = ask_all(
        asking,
        lambda agent: _ask(agent, master is not None),
        2 * settings.IPXE.agent_timeout,
    )
    unreached = False
    fitting: dict[str, float] = {}
    for agent in asking:
        answer = answers[agent.id]
        if isinstance(answer, ApplicationError):
            unreached = True
            passed[agent.id] = _unusable(answer)
            continue
        reason, spare = _judge(answer, need_bytes, master)
        if reason:
            passed[agent.id] = reason
            continue
        fitting[agent.id] = spare
    if fitting:
        return fitting
    what = said("a clone of {master}", master=master) if master else said("the disk")
    raise nowhere(passed, what, unreached=unreached)


def cd_nodes(
    nodes: list[Agent], own_nodes: set[str]
) -> tuple[list[Agent], dict[str, str], bool]:
    """Nodes that can take an install CD, this worker's own first; why the others were passed over; whether one was unreachable.

    Nobody lists ISOs, so the caller tries them in this order. Asks the nodes.
    """
    passed: dict[str, str] = {}
    for agent in nodes:
        if words := closed(agent, CD):
            passed[agent.id] = words
    asking = [agent for agent in nodes if agent.id not in passed]
    answers = ask_all(
        asking,
        lambda agent: NodeClient(agent).capabilities(),
        settings.IPXE.agent_timeout,
    )
    unreached = False
    able = []
    for agent in asking:
        answer = answers[agent.id]
        if isinstance(answer, ApplicationError):
            unreached = True
            passed[agent.id] = _unusable(answer)
        elif words := no_drive(answer):
            passed[agent.id] = words
        else:
            able.append(agent)
    able.sort(key=lambda agent: (agent.id not in own_nodes, agent.id))
    return able, passed, unreached


def _unusable(error: ApplicationError) -> str:
    if isinstance(error, Unavailable):
        return said("is unreachable")
    return said("failed: {error}", error=error.message)


def _ask(agent: Agent, with_masters: bool) -> _Asked:
    client = NodeClient(agent)
    return _Asked(client.capabilities(), client.masters() if with_masters else [])


def _judge(
    asked: _Asked, need_bytes: int | None, master: str | None
) -> tuple[str, float]:
    """Why this node is passed over (empty when it is not), and how many whole disks fit now."""
    found = asked.capabilities
    need = need_bytes or 0
    if master is not None:
        held = next((m for m in asked.masters if m["name"] == master), None)
        if held is None:
            return said("has no master {master}", master=master), 0
        if problem := held.get("problem"):
            return clipped(str(problem), 200), 0
        if not found["clone"]:
            return said("cannot clone"), 0
        need = 0 if found["reflink"] else max(need, held.get("size", 0))
    if words := unfit(found) if master is None else _full(found):
        return words, 0
    return "", found["free_bytes"] // need if need else math.inf


def nowhere(
    passed: dict[str, str], what: str, *, unreached: bool = False
) -> ApplicationError:
    """The refusal that names each node and why it was passed over."""
    if not passed:
        return Conflict(
            said(
                "there is no storage node for {what}; register one with POST /agents or on "
                "the page of nodes",
                what=what,
            ),
            code="agent.none",
        )
    reasons = [joined(" ", name, why) for name, why in sorted(passed.items())]
    if len(reasons) > _NAMED:
        more = len(reasons) - _NAMED
        reasons[_NAMED:] = [said("and {count} more nodes", count=more)]
    message = said(
        "no storage node can take {what}: {reasons}",
        what=what,
        reasons=joined("; ", *reasons),
    )
    extra = {"passed_over": passed}
    if unreached:
        return Unavailable(message, code="agent.unreachable", extra=extra)
    return Conflict(message, code="agent.none_fits", extra=extra)
