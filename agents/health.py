"""How storage nodes are, as far as it can be told from here. Never called inside `index.writing()`."""

from __future__ import annotations

import time
from typing import Any

from django.conf import settings

from agents import known, seen, selectors
from agents.client import NodeClient
from agents.models import Agent
from agents.protocol.answers import NodeHealth
from agents.together import ask_all
from ipxeready.actors import VIEWER, Actor
from ipxeready.errors import ApplicationError, NodeRefused
from ipxeready.said import said


def agent_health(
    *, actor: Actor, agent_id: str, timeout: float | None = None
) -> dict[str, Any]:
    """`{agent, reachable, seconds, health}`; `health` is what the node says, or None with `error`.

    A node that hangs costs `timeout` seconds at most, and only so many callers at a time: the others are
    told at once.
    """
    actor.require(VIEWER)
    agent = selectors.agent_get(agent_id)
    return agents_health(actor=actor, agents=[agent], timeout=timeout)[agent.id]


def agents_health(
    *, actor: Actor, agents: list[Agent], timeout: float | None = None
) -> dict[str, dict[str, Any]]:
    """The same of many nodes by id, asked side by side within the one time limit; it is remembered (agents/known.py)."""
    actor.require(VIEWER)
    limit = min(timeout or _limit(), _limit())
    began = time.monotonic()

    def ask(node: Agent) -> tuple[NodeHealth, float]:
        health = NodeClient(node, timeout=limit).node_health()
        return health, time.monotonic() - began

    answers = ask_all(agents, ask, limit)
    found = {
        agent.id: told(agent, answers[agent.id], time.monotonic() - began)
        for agent in agents
    }
    remember(agents, found)
    return found


def remember(agents: list[Agent], found: dict[str, dict[str, Any]]) -> None:
    """Take down what nodes said, for pages that wait for none, and their target systems for boots."""
    known.note({agent.id: (agent, found[agent.id]) for agent in agents})
    for agent in agents:
        health = found[agent.id]["health"]
        backend = health["backend"].get("name") if health else None
        if isinstance(backend, str):
            seen.note_backend(agent, backend)


def told(agent: Agent, answer: Any, seconds: float) -> dict[str, Any]:
    found: dict[str, Any] = {
        "agent": agent.id,
        "reachable": _reached(answer),
        "seconds": round(seconds, 3),
        "health": None,
    }
    if isinstance(answer, ApplicationError):
        return {**found, "error": _words(answer, agent)}
    health, seconds = answer
    return {**found, "seconds": round(seconds, 3), "health": health}


def _reached(answer: object) -> bool:
    """Whether the node answered at all, with whatever."""
    return not isinstance(answer, ApplicationError) or isinstance(answer, NodeRefused)


def _words(error: ApplicationError, agent: Agent) -> str:
    if isinstance(error, NodeRefused):
        if error.status == 404:
            return said(
                "node {agent} is older than this control plane and does not tell its health; "
                "update it",
                agent=agent.id,
            )
        return error.error
    return error.message


def _limit() -> float:
    """Seconds for one quick question."""
    return float(settings.IPXE.agent_timeout)
