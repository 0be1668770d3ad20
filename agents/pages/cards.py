"""One node as its card shows it: what is registered, what is on it, and how it was when it was last asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from django.utils.translation import gettext_lazy as _

from agents import selectors
from agents.known import Known
from agents.models import Agent
from agents.protocol.access import ACL, CHAP, OFF
from agents.seen import backend_of
from agents.services import Load

#: States of a card, in words.
OK, PROBLEMS, GONE, DISABLED, UNKNOWN = "ok", "problems", "gone", "disabled", "unknown"
STATES: dict[str, Any] = {
    OK: _("healthy"),
    PROBLEMS: _("has problems"),
    GONE: _("does not answer"),
    DISABLED: _("disabled"),
    UNKNOWN: _("not asked yet"),
}
_BAD = (PROBLEMS, GONE)
_ACCESS: dict[str, Any] = {
    OFF: _("off: every initiator"),
    ACL: _("acl: only the worker's own initiator name"),
    CHAP: _("chap: that name, and a secret"),
}


@dataclass(frozen=True)
class Room:
    """Bytes, and what a bar shows of them."""

    free: int
    total: int
    reserve: int
    promised: int

    @property
    def used(self) -> int:
        """What is taken."""
        return max(self.total - self.free, 0)

    @property
    def short(self) -> int:
        """From where on the bar is red: what is left then is the reserve."""
        return max(self.total - self.reserve, 0)

    @property
    def overdrawn(self) -> bool:
        """Whether the disks here may ask for more than there is."""
        return self.promised > max(self.free - self.reserve, 0)


@dataclass(frozen=True)
class Card:
    """What a template shows of a node."""

    agent: Agent
    load: Load
    state: str
    iscsi: str
    backend: str = ""
    alive: bool | None = None
    ours: bool | None = None
    fs_type: str = ""
    mount: str = ""
    reflink: bool | None = None
    room: Room | None = None
    foreign: int = 0
    sessions: int = 0
    images: dict[str, int] = field(default_factory=dict)
    asked: datetime | None = None
    answered: datetime | None = None
    seconds: float = 0.0
    problems: list[str] = field(default_factory=list)

    @property
    def state_name(self) -> Any:
        """The state in words."""
        return STATES[self.state]

    @property
    def bad(self) -> bool:
        """Whether somebody should look."""
        return self.state in _BAD

    @property
    def access(self) -> Any:
        """Who may log in to new targets, in words."""
        return _ACCESS.get(self.agent.access, self.agent.access)


def card(agent: Agent, note: Known | None, load: Load) -> Card:
    """The card of a node of which `note` is known."""
    iscsi = selectors.iscsi_server_of(agent)
    backend = backend_of(agent) or ""
    if note is None:
        state = UNKNOWN if agent.enabled else DISABLED
        return Card(agent, load, state, iscsi, backend)
    health = note.last
    part = {
        name: health.get(name) or {}
        for name in ("backend", "room", "fs", "targets", "images")
    }
    room = part["room"]
    problems = [note.error] if note.error else note.problems
    return Card(
        agent=agent,
        load=load,
        state=_state(agent, note, problems),
        iscsi=iscsi,
        backend=part["backend"].get("name") or backend,
        alive=part["backend"].get("alive"),
        ours=part["backend"].get("ours"),
        fs_type=part["fs"].get("type", ""),
        mount=part["fs"].get("mount", ""),
        reflink=part["fs"].get("reflink"),
        room=_room(room) if room.get("total") else None,
        foreign=part["targets"].get("foreign", 0),
        sessions=part["targets"].get("sessions", 0),
        images=part["images"],
        asked=note.at,
        answered=note.answered,
        seconds=_seconds(note),
        problems=problems if agent.enabled else [],
    )


def _state(agent: Agent, note: Known, problems: list[str]) -> str:
    if not agent.enabled:
        return DISABLED
    if note.error:
        return PROBLEMS if note.reachable else GONE
    backend = note.last.get("backend") or {}
    if problems or not backend.get("alive", True) or not backend.get("ours", True):
        return PROBLEMS
    return OK


def _seconds(note: Known) -> float:
    value = note.found.get("seconds")
    return value if isinstance(value, float) else 0.0


def _room(fields: dict[str, Any]) -> Room:
    return Room(
        *(int(fields.get(name, 0)) for name in ("free", "total", "reserve", "promised"))
    )
