"""What is at an address: a node that is not registered yet."""

from __future__ import annotations

from typing import Any

from agents.client import NodeClient
from agents.models import Agent
from agents.validators import url_host
from ipxeready.errors import ApplicationError, NodeRefused, UpstreamFailed
from ipxeready.said import joined


def probe(base_url: str, token: str) -> dict[str, Any]:
    """What a node at this address would be registered as; UpstreamFailed when it is not there or refuses."""
    client = NodeClient(Agent(id="", base_url=base_url, token=token))
    try:
        client.health()
        found = client.capabilities()
    except ApplicationError as error:
        words = error.error if isinstance(error, NodeRefused) else error.message
        raise UpstreamFailed(
            words if base_url in words else joined(": ", base_url, words),
            code="probe.failed",
        ) from None
    return {
        "base_url": base_url,
        "role": {"disk": True, "cd": found["cd"]},
        "tags": ["storage", found["backend"]],
        "iscsi_server": url_host(base_url),
        "enabled": True,
        **{
            name: found[name]
            for name in (
                "backend",
                "fs_type",
                "base_iqn",
                "clone",
                "empty_disk",
                "persistent",
                "reflink",
                "free_bytes",
                "total_bytes",
            )
        },
    }
