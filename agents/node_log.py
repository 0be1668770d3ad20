"""A node's own log of operations, read through the control plane."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from agents import selectors
from agents.client import NodeClient
from agents.together import ask_all
from ipxeready.actors import VIEWER, Actor
from ipxeready.errors import ApplicationError, Invalid
from ipxeready.said import said

#: Lines that one call gives at most.
MOST = 1000
_LARGEST = 1 << 62


def node_log(
    *,
    actor: Actor,
    agent_id: str,
    since: int | None = None,
    before: int | None = None,
    limit: int = 100,
    timeout: float | None = None,
) -> dict[str, Any]:
    """`{next_cursor, entries}`: above `since`, oldest first; or below `before`, newest first (0: from the newest)."""
    actor.require(VIEWER)
    if since is not None and before is not None:
        raise Invalid(said("give either since or before, not both"), field="before")
    agent = selectors.agent_get(agent_id)
    if since is None and before is None:
        before = 0
    seconds = float(settings.IPXE.agent_timeout)
    seconds = min(timeout or seconds, seconds)
    answer = ask_all(
        [agent],
        lambda node: NodeClient(node, timeout=seconds).logs(
            since=since, before=before, limit=limit
        ),
        seconds,
    )[agent.id]
    if isinstance(answer, ApplicationError):
        raise answer
    cursor = answer.get("next_cursor")
    return {
        "next_cursor": cursor if type(cursor) is int and cursor > 0 else 0,
        "entries": answer["entries"][:limit],
    }


def check_number(text: str | None, field: str, *, most: int = _LARGEST) -> int | None:
    """A whole number of a query, None when it is not given."""
    if text is None:
        return None
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 20 else -1
    if not 0 <= number <= most:
        raise Invalid(
            said("must be a whole number from 0 to {most}", most=most), field=field
        )
    return number
