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
from agents.protocol.limits import MAX_WORDS

log = logging.getLogger(__name__)

#: What is kept of a node's health, and as what: a node may say anything.
_KEPT: dict[str, dict[str, type]] = {
    "backend": {"name": str, "alive": bool, "ours": bool, "error": str},
    "room": {"free": int, "total": int, "reserve": int, "promised": int},
    "fs": {"type": str, "reflink": bool, "mount": str},
    "targets": {"ours": int, "foreign": int, "sessions": int},
    "images": {"disks": int, "masters": int, "isos": int, "kept": int},
}
_TEXT = MAX_WORDS
_PROBLEMS = 20
_LARGEST = 1 << 62

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

    @property
    def last(self) -> dict[str, Any]:
        """Its newest health: of this answer, or of an earlier one when this one has none."""
        health = self.found.get("health") or self.found.get("last")
        return health if isinstance(health, dict) else {}

    @property
    def answered(self) -> datetime | None:
        """When it told that."""
        if self.found.get("health"):
            return self.at
        stamp = self.found.get("answered")
        if not isinstance(stamp, int | float):
            return None
        return datetime.fromtimestamp(stamp, UTC)

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
    """Remember what these nodes (by id) have just said, or that they said nothing: then also what they said last."""
    now = time.time()
    path = _path()
    draft = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    with _guard:
        notes = _load()
        fresh = {
            name: [agent.base_url, now, _kept(agent, found, notes.get(name))]
            for name, (agent, found) in told.items()
            if name
        }
        try:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            draft.write_text(json.dumps({**notes, **fresh}), encoding="utf-8")
            draft.replace(path)
        except OSError as error:
            draft.unlink(missing_ok=True)
            log.warning("%s could not be written: %s", path, error.strerror)


def _kept(agent: Agent, found: dict[str, Any], before: Any) -> dict[str, Any]:
    """What is written of an answer."""
    if isinstance(found.get("health"), dict):
        return {**found, "health": tidy(found["health"])}
    kept = {**found, "error": str(found.get("error") or "")[:_TEXT]}
    match before:
        case [agent.base_url, int() | float() as at, {"health": dict() as health}]:
            kept |= {"last": health, "answered": at}
        case [agent.base_url, _, {"last": dict() as health, "answered": at}]:
            kept |= {"last": health, "answered": at}
    return kept


def tidy(health: dict[str, Any]) -> dict[str, Any]:
    """The parts of a node's health that are what they should be, none of them long."""
    found: dict[str, Any] = {}
    for part, fields in _KEPT.items():
        given = health.get(part)
        given = given if isinstance(given, dict) else {}
        found[part] = {
            name: _value(given[name], kind)
            for name, kind in fields.items()
            if type(given.get(name)) is kind
        }
    problems = health.get("problems")
    found["problems"] = [
        str(words)[:_TEXT]
        for words in (problems if isinstance(problems, list) else [])[:_PROBLEMS]
    ]
    return found


def _value(value: Any, kind: type) -> Any:
    if kind is str:
        return value[:_TEXT]
    if kind is int:
        return min(max(value, 0), _LARGEST)
    return value
