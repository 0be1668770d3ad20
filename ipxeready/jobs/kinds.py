"""What the apps say of their kinds of jobs: a name for people, and how one that lost its process is ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ipxeready.storage.jobs import Running

#: Ends an abandoned job (`finish`, `fail`, `cancel`), or leaves it open when that cannot be told yet: it is asked again.
Recovery = Callable[[Running], None]

#: Why an abandoned job failed whose kind knows nothing better.
RESTARTED = (
    "the service was restarted while this was under way; look at what is there, "
    "then send it again"
)

_recoveries: dict[str, Recovery] = {}
_names: dict[str, Any] = {}


def recover(kind: str, function: Recovery, *, name: Any = None) -> None:
    """Have abandoned jobs of a kind ended by a function; `name` (translatable) is what pages call the kind."""
    _recoveries[kind] = function
    if name is not None:
        _names[kind] = name


def recovery_of(kind: str) -> Recovery:
    """How an abandoned job of that kind is ended: without a better way it has failed."""
    return _recoveries.get(kind, lost)


def lost(running: Running) -> None:
    """End a job of which nobody knows how far it came."""
    running.fail(status=503, detail=RESTARTED)


def name_of(kind: str) -> str:
    """What people call the kind."""
    return str(_names.get(kind, kind))
