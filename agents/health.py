"""The nodes' part of the verbose health answer."""

from __future__ import annotations

from typing import Any

from agents import nodes, selectors

#: Seconds: whoever looks at our health must not wait for a dead node.
LIMIT = 3.0


def nodes_section() -> list[dict[str, Any]]:
    """Each node's health, in a short time."""
    agents = list(selectors.agents())
    found = nodes.live(agents, timeout=LIMIT)
    return [
        {
            "agent": agent.id,
            "base_url": agent.base_url,
            "health": found[agent.id]["health"],
        }
        for agent in agents
    ]
