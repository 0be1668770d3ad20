"""Long work of a node on its images, as our own jobs see it: progress goes up, the wish to cancel goes down."""

from __future__ import annotations

from agents.intake_client import IntakeClient
from agents.models import Agent
from agents.protocol.answers import Converted, Uploaded
from agents.watched import followed
from ipxeready.jobs.watch import Watch


def image_convert(
    agent: Agent, source: str, name: str, format_: str | None, watch: Watch
) -> Converted:
    """Have the node convert, watched."""
    client = IntakeClient(agent)
    return client.image_convert(source, name, format_, followed(watch))


def upload_finish(
    agent: Agent, upload_id: str, name: str | None, sha256: str | None, watch: Watch
) -> Uploaded:
    """Have the node verify and name an upload, watched."""
    client = IntakeClient(agent)
    return client.upload_finish(upload_id, name, sha256, followed(watch))
