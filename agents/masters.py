"""Which masters can be offered for disks on some nodes: those that every one of them has. Never called inside `index.writing()`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from agents import selectors
from agents.client import NodeClient
from agents.nodes import words_of
from agents.protocol.answers import Master
from agents.together import ask_all, patience
from ipxeready.actors import VIEWER, Actor
from ipxeready.errors import ApplicationError, Conflict, Invalid, Unavailable
from ipxeready.said import clipped, joined, said


@dataclass
class MastersOffer:
    """What the nodes can clone, as they say now."""

    nodes: list[str]
    """Who was asked: the nodes that were named, or all that take disks."""
    named: bool
    masters: dict[str, int] = field(default_factory=dict)
    """Name and size in bytes of each master that may be chosen, by name."""
    lacking: dict[str, list[str]] = field(default_factory=dict)
    """Masters that only some of the named nodes have, with those that do not."""
    unusable: dict[str, str] = field(default_factory=dict)
    """Masters of which a node says that no disk can be cloned from them, and why."""
    silent: dict[str, str] = field(default_factory=dict)
    """Nodes that did not answer, and why."""

    def check(self, master: str) -> None:
        """Refuse a master that is not offered, naming the nodes that are in its way."""
        if master in self.masters:
            return
        if master in self.unusable:
            raise Conflict(self.unusable[master], code="master.unusable", field="name")
        if self.silent:
            words = joined(
                "; ", *(joined(": ", node, why) for node, why in self.silent.items())
            )
            raise Unavailable(
                said(
                    "cannot tell whether {master} is on every node: {words}. Try again, or "
                    "choose other nodes",
                    master=repr(master),
                    words=words,
                ),
                code="master.unknown",
            )
        missing = self.lacking.get(master, self.nodes)
        raise Invalid(
            said(
                "{master} is not on {nodes}: choose one that every chosen node has, or other "
                "nodes",
                master=repr(master),
                nodes=", ".join(missing) or said("any node"),
            ),
            code="master.missing",
            field="name",
        )


def masters_offered(*, actor: Actor, nodes: Sequence[str] = ()) -> MastersOffer:
    """The masters that every one of these nodes has; without nodes those that any enabled one has.

    A named node that does not answer cannot be said to have any: then nothing is offered, and it is named.
    NotFound for a node that there is not.
    """
    actor.require(VIEWER)
    named = sorted({name.lower() for name in nodes})
    asked = (
        [selectors.agent_get(name) for name in named]
        if named
        else selectors.agents_enabled_for_disks()
    )
    offer = MastersOffer(nodes=[agent.id for agent in asked], named=bool(named))
    limit = patience()
    answers = ask_all(
        asked, lambda agent: NodeClient(agent, timeout=limit).masters(), limit
    )
    there: dict[str, list[Master]] = {}
    for agent in asked:
        answer = answers[agent.id]
        if isinstance(answer, ApplicationError):
            offer.silent[agent.id] = words_of(answer)
        else:
            there[agent.id] = answer
    _compare(offer, there)
    return offer


def _compare(offer: MastersOffer, there: dict[str, list[Master]]) -> None:
    """Sort out who has what, and of what a disk can be made."""
    sizes: dict[str, int] = {}
    having: dict[str, set[str]] = {}
    spoilt: dict[str, dict[str, str]] = {}
    for node, masters in there.items():
        for master in masters:
            name = master["name"]
            sizes[name] = max(sizes.get(name, 0), master["size"])
            having.setdefault(name, set()).add(node)
            if problem := master.get("problem"):
                spoilt.setdefault(name, {})[node] = problem
    for name in sorted(having):
        problems = spoilt.get(name, {})
        # Of named nodes each has to clone it; else one that can is enough.
        if problems and (offer.named or len(problems) == len(having[name])):
            node, words = next(iter(problems.items()))
            offer.unusable[name] = joined(": ", node, clipped(words, 200))
            continue
        if not offer.named:
            offer.masters[name] = sizes[name]
            continue
        missing = [node for node in offer.nodes if node not in having[name]]
        if not missing:
            offer.masters[name] = sizes[name]
        elif lacking := [node for node in missing if node not in offer.silent]:
            offer.lacking[name] = lacking
