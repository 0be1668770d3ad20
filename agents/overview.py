"""Everything that one page about a node shows, asked in one go and within one time limit. Never called inside `index.writing()`."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

from agents import seen, selectors
from agents.client import NodeClient
from agents.health import remember, told
from agents.intake_client import IntakeClient
from agents.models import Agent
from agents.nodes import words_of
from agents.protocol.answers import Capabilities, Master, Target
from agents.protocol.filenames import KIND_ISO, check_iso, check_master, passes
from agents.together import ask_all
from ipxeready.actors import VIEWER, Actor
from ipxeready.errors import ApplicationError, Unavailable

#: Jobs of the node that are told at most.
JOBS = 20


@dataclass(frozen=True)
class Overview:
    """What a node said; what it did not say is None, and `errors` says why, by part."""

    capabilities: Capabilities | None
    targets: list[Target] | None
    jobs: list[dict[str, Any]] | None
    errors: dict[str, str]


def node_overview(*, actor: Actor, agent_id: str, timeout: float) -> Overview:
    """What it can do, its targets and its jobs; its health is asked too, and remembered (agents/known.py)."""
    actor.require(VIEWER)
    agent = selectors.agent_get(agent_id)
    began = time.monotonic()
    answer = ask_all([agent], lambda node: _parts(node, timeout), timeout)[agent.id]
    parts: dict[str, Any]
    if isinstance(answer, ApplicationError):
        parts = dict.fromkeys(_QUESTIONS, answer)
    else:
        parts = answer
    health = told(agent, parts.pop("health"), time.monotonic() - began)
    remember([agent], {agent.id: health})
    errors = {
        name: words_of(value)
        for name, value in parts.items()
        if isinstance(value, ApplicationError)
    }
    said = {name: None if name in errors else parts[name] for name in parts}
    if said["capabilities"]:
        seen.note_backend(agent, said["capabilities"]["backend"])
    return Overview(**said, errors=errors)


_QUESTIONS: dict[str, Callable[[NodeClient], Any]] = {
    "health": lambda client: client.node_health(),
    "capabilities": lambda client: client.capabilities(),
    "targets": lambda client: client.targets(),
    "jobs": lambda client: client.jobs(limit=JOBS),
}


def _parts(agent: Agent, timeout: float) -> dict[str, Any]:
    """Each part, or its error. A node that cannot be reached is not asked again for the next one."""
    client = NodeClient(agent, timeout=timeout)
    found: dict[str, Any] = {}
    for name, ask in _QUESTIONS.items():
        began = time.monotonic()
        try:
            answer = ask(client)
        except Unavailable as error:
            return {**found, **dict.fromkeys(list(_QUESTIONS)[len(found) :], error)}
        except ApplicationError as error:
            found[name] = error
        else:
            # As `health.told` takes it: with its seconds.
            timed = (answer, time.monotonic() - began)
            found[name] = timed if name == "health" else answer
    return found


def choices_of(
    *, actor: Actor, agent_id: str, timeout: float
) -> tuple[Capabilities, list[Master], list[str]]:
    """What a form for a new target offers: what the node can do, its masters and its ISOs, sorted by name."""
    actor.require(VIEWER)
    agent = selectors.agent_get(agent_id)

    def ask(node: Agent) -> tuple[Any, Any, Any]:
        client = IntakeClient(node, timeout=timeout)
        return client.capabilities(), client.masters(), client.images()

    answer = ask_all([agent], ask, timeout)[agent.id]
    if isinstance(answer, ApplicationError):
        raise answer
    capabilities, masters, images = answer
    return (
        cast(Capabilities, capabilities),
        sorted(
            (each for each in masters if passes(check_master, each["name"])),
            key=lambda each: str(each["name"]),
        ),
        sorted(
            image["name"]
            for image in images["images"]
            if image["kind"] == KIND_ISO and passes(check_iso, image["name"])
        ),
    )


def target_of(
    *, actor: Actor, agent_id: str, iqn: str, timeout: float
) -> Target | None:
    """One target as the node lists it now; None when it has none of that name."""
    actor.require(VIEWER)
    agent = selectors.agent_get(agent_id)
    answer = ask_all(
        [agent], lambda node: NodeClient(node, timeout=timeout).targets(), timeout
    )[agent.id]
    if isinstance(answer, ApplicationError):
        raise answer
    return next((target for target in answer if target["iqn"] == iqn), None)
