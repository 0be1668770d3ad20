"""How a storage node is, as far as it can be told from here. Never called inside `index.writing()`."""

from __future__ import annotations

import time
from typing import Any

from django.conf import settings

from agents import selectors
from agents.client import NodeClient
from agents.models import Agent
from agents.together import ask_all
from ipxeready.actors import VIEWER, Actor
from ipxeready.errors import ApplicationError, NodeRefused


def agent_health(
    *, actor: Actor, agent_id: str, timeout: float | None = None
) -> dict[str, Any]:
    """`{agent, reachable, seconds, health}`; `health` is what the node says, or None with `error`.

    A node that hangs costs `timeout` seconds at most, and only so many callers at a time: the others are
    told at once.
    """
    actor.require(VIEWER)
    agent = selectors.agent_get(agent_id)
    limit = min(timeout or _limit(), _limit())
    began = time.monotonic()
    answer = ask_all(
        [agent], lambda node: NodeClient(node, timeout=limit).node_health(), limit
    )[agent.id]
    found: dict[str, Any] = {
        "agent": agent.id,
        "reachable": _reached(answer),
        "seconds": round(time.monotonic() - began, 3),
        "health": None,
    }
    if isinstance(answer, ApplicationError):
        return {**found, "error": _words(answer, agent)}
    return {**found, "health": answer}


def _reached(answer: object) -> bool:
    """Whether the node answered at all, with whatever."""
    return not isinstance(answer, ApplicationError) or isinstance(answer, NodeRefused)


def _words(error: ApplicationError, agent: Agent) -> str:
    if isinstance(error, NodeRefused):
        if error.status == 404:
            return f"node {agent.id} is older than this control plane and does not tell its health; update it"
        return error.error
    return error.message


def _limit() -> float:
    """Seconds for one quick question."""
    return float(settings.IPXE.agent_timeout)
