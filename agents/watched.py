"""Long work on a node as our own jobs see it: progress goes up, the wish to cancel goes down, the node's job is noted."""

from __future__ import annotations

from agents.client import NodeClient
from agents.models import Agent
from agents.protocol import Created, DiskRequest
from ipxeready.jobs.watch import Watch


def create_disk(agent: Agent, request: DiskRequest, watch: Watch) -> Created:
    """Have the node make and export a disk, watched."""
    return NodeClient(agent).create_disk(request)
