"""Who may log in to a worker's targets: the worker's own word, else its node's, else everybody. The one home of that rule."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, NamedTuple

from agents.models import Agent
from agents.protocol.access import CHAP, OFF, Chap
from agents.selectors import agent_find
from agents.selectors import agents as all_agents
from ipxeready.actors import Actor
from ipxeready.index.kept import Kept
from ipxeready.index.writer import Transaction
from ipxeready.said import said
from workers import chap, selectors
from workers.models import Cd, Disk, Worker

#: Targets that one line names; more are counted only.
_NAMED = 5


def effective(own: str, agent: Agent | None) -> str:
    """The access that a target should have: `own` is the worker's word, empty where it has none."""
    return own or (OFF if agent is None else agent.access)


def wanted(worker: Worker, thing: Disk | Cd) -> str:
    """The access that this disk or CD of the worker should have."""
    return effective(worker.access, agent_find(thing.agent))


def needs_secret(worker: Worker, thing: Disk | Cd) -> bool:
    """Whether a machine needs the secret to log in there, or will once its target has what it should have."""
    return CHAP in (thing.access, wanted(worker, thing))


def grant(tx: Transaction, worker: Worker, entry: dict[str, Any]) -> Chap | None:
    """Say in a new disk's entry which access it is made with; the secret that goes with it, made where there is none."""
    mode = effective(worker.access, agent_find(entry["agent"]))
    _note(entry, mode)
    if mode != CHAP:
        return None
    return chap.ensure(tx, worker.worker_id, worker.hostname)


#: The access that a node gives to a CD of the worker, and the secret for it.
Granter = Callable[[Agent], tuple[str, Chap | None]]


def granter(actor: Actor, worker_id: str, hostname: str, own: str = "") -> Granter:
    """The same for what has no entry in the ledger yet: the secret is written before the node is asked."""

    def give(agent: Agent) -> tuple[str, Chap | None]:
        mode = effective(own, agent)
        if mode != CHAP:
            return mode, None
        return mode, chap.ensured(actor, worker_id, hostname)

    return give


def _note(entry: dict[str, Any], mode: str) -> None:
    """An entry says nothing of open targets, as before there was access control."""
    if mode == OFF:
        entry.pop("access", None)
    else:
        entry["access"] = mode


def noted(entry: dict[str, Any], mode: str) -> dict[str, Any]:
    """A disk's or CD's entry that says which access its target was given last."""
    found = dict(entry)
    _note(found, mode)
    return found


class Differing(NamedTuple):
    """A target whose access was last set to something else than what holds now."""

    worker_id: str
    agent: str
    iqn: str
    now: str
    wanted: str

    def words(self) -> str:
        """It in short."""
        name = self.iqn.rpartition(":")[2]
        return said(
            "{name}: {now} instead of {wanted}",
            name=name,
            now=self.now,
            wanted=self.wanted,
        )


def _find_differing() -> tuple[Differing, ...]:
    own = dict(selectors.workers().values_list("worker_id", "access"))
    agents = {agent.id: agent for agent in all_agents()}
    found = []
    for model in (Disk, Cd):
        # Without the rows themselves: a room has tens of thousands, and hardly any differs.
        things = model.objects.values_list("worker_id", "agent", "iqn", "access")
        for worker_id, agent, iqn, now in things:
            mode = effective(own.get(worker_id, ""), agents.get(agent))
            if now != mode:
                found.append(Differing(worker_id, agent, iqn, now, mode))
    return tuple(found)


#: Targets whose access is not what holds now.
differing = Kept(_find_differing)


def differences() -> list[str]:
    """The same in words, by node."""
    by_node: dict[str, list[str]] = defaultdict(list)
    for each in differing():
        by_node[each.agent].append(each.words())
    lines = []
    for agent, words in sorted(by_node.items()):
        more = len(words) - _NAMED
        told = ", ".join(words[:_NAMED]) + (f" and {more} more" if more > 0 else "")
        lines.append(
            f"node {agent}: the access of {len(words)} targets is not what the ledger says ({told}). "
            f"POST /agents/{agent}/access or PUT /workers/<id>/access sets it"
        )
    return lines
