"""How each node was when it was last asked: remembered, so that no page has to wait for a node."""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from django.conf import settings

from agents.models import Agent

log = logging.getLogger(__name__)

# A file, because several processes serve: what one has asked, all know. Losing it means asking again.
_guard = threading.Lock()


@dataclass(frozen=True)
class Known:
    """What `agent_health` found, and when."""

    at: datetime
    found: dict[str, Any]

    @property
    def reachable(self) -> bool:
        """Whether it answered at all."""
        return self.found.get("reachable") is True

    @property
    def error(self) -> str:
        """Why there is no health; empty when there is."""
        return str(self.found.get("error") or "")

    @property
    def problems(self) -> list[str]:
        """What the node itself says somebody should look at."""
        health = self.found.get("health")
        told = health.get("problems") if isinstance(health, dict) else None
        return [str(words) for words in told] if isinstance(told, list) else []

    def number(self, part: str, name: str) -> int:
        """A number of its health (`room`, `free`); 0 where it does not tell."""
        health = self.found.get("health")
        fields = health.get(part) if isinstance(health, dict) else None
        value = fields.get(name) if isinstance(fields, dict) else None
        return value if isinstance(value, int) and not isinstance(value, bool) else 0

    def text(self, part: str, name: str) -> str:
        """A text of its health (`backend`, `name`)."""
        health = self.found.get("health")
        fields = health.get(part) if isinstance(health, dict) else None
        return str(fields.get(name) or "") if isinstance(fields, dict) else ""


def _path() -> Path:
    path: Path = settings.IPXE_LAYOUT.run / "node-health.json"
    return path


def _load() -> dict[str, Any]:
    try:
        notes = json.loads(_path().read_bytes())
    except (OSError, ValueError):
        return {}
    return notes if isinstance(notes, dict) else {}


def known(agents: list[Agent]) -> dict[str, Known]:
    """What is remembered of these nodes at their present addresses."""
    notes = _load()
    found = {}
    for agent in agents:
        match notes.get(agent.id):
            case [agent.base_url, int() | float() as at, dict() as health]:
                found[agent.id] = Known(datetime.fromtimestamp(at, UTC), health)
    return found


def note(told: dict[str, tuple[Agent, dict[str, Any]]]) -> None:
    """Remember what these nodes (by id) have just said, or that they said nothing."""
    now = time.time()
    path = _path()
    draft = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    with _guard:
        fresh = {
            name: [agent.base_url, now, found]
            for name, (agent, found) in told.items()
            if name
        }
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            draft.write_text(json.dumps({**_load(), **fresh}), encoding="utf-8")
            draft.replace(path)
        except OSError as error:
            draft.unlink(missing_ok=True)
            log.warning("%s could not be written: %s", path, error.strerror)
