"""The jobs of one node, as it tells them: listed, read and cancelled through the control plane."""

from __future__ import annotations

from typing import Any

from agents import selectors
from agents.client import NodeClient
from agents.nodes import words_of
from audit.services import record_quietly
from ipxeready.actors import OPERATOR, VIEWER, Actor
from ipxeready.errors import ApplicationError, Invalid
from ipxeready.said import said
from ipxeready.storage.jobs import STATES

#: A node gives so many at most.
MOST = 1000


def node_jobs(
    *, actor: Actor, agent_id: str, state: str | None = None, limit: str | None = None
) -> list[dict[str, Any]]:
    """A node's jobs, newest first."""
    actor.require(VIEWER)
    agent = selectors.agent_get(agent_id)
    if state is not None and state not in STATES:
        raise Invalid(
            said(
                "{text} must be one of {choices}",
                text=repr(state[:20]),
                choices=", ".join(STATES),
            ),
            field="state",
        )
    return NodeClient(agent).jobs(state=state, limit=_limit(limit))


def node_job_get(*, actor: Actor, agent_id: str, job_id: str) -> dict[str, Any]:
    """One job of a node."""
    actor.require(VIEWER)
    return NodeClient(selectors.agent_get(agent_id)).job(job_id)


def node_job_cancel(*, actor: Actor, agent_id: str, job_id: str) -> dict[str, Any]:
    """Ask a node for the end of a job; it comes a moment later."""
    actor.require(OPERATOR)
    agent = selectors.agent_get(agent_id)
    told: dict[str, Any] = {"op": "job.cancel", "agent": agent.id, "job": job_id[:64]}
    try:
        job = NodeClient(agent).job_cancel(job_id)
    except ApplicationError as error:
        record_quietly(actor=actor, status="failed", **told, error=words_of(error))
        raise
    about = job.get("about")
    iqn = about.get("iqn") if isinstance(about, dict) else None
    record_quietly(actor=actor, **told, kind=job.get("kind"), iqn=iqn)
    return job


def _limit(text: str | None) -> int | None:
    if text is None:
        return None
    if not text.isascii() or not text.isdigit() or not 1 <= int(text[:9]) <= MOST:
        raise Invalid(
            said("must be a whole number from 1 to {most}", most=MOST), field="limit"
        )
    return int(text)
