"""Looking at what the registry's services left in the files."""

from __future__ import annotations

from typing import Any

from audit.models import Operation
from ipxeready.storage import yamlload
from ipxeready.storage.paths import Layout


def registry(layout: Layout) -> dict[str, Any]:
    """config/agents.yml as any reader of YAML sees it."""
    found: dict[str, Any] = yamlload.load(layout.agents_yml.read_text())["agents"]
    return found


def trail(op: str) -> list[dict[str, Any]]:
    """The audit's lines of one kind, oldest first."""
    return [row.data for row in Operation.objects.filter(op=op).order_by("id")]
