"""What is written down about boots: the same thing of the same machine once an hour, for machines loop."""

from __future__ import annotations

import threading
import time
from datetime import timedelta

from django.utils import timezone

from audit.selectors import operations
from audit.services import record_quietly
from ipxeready.actors import Actor

#: Seconds for which the same note is not repeated.
QUIET_S = 3600.0
#: Notes of a process in that time: whoever invents addresses must not fill the disk.
MOST = 500

_noted: dict[tuple[str, str | None, str], float] = {}
_guard = threading.Lock()


def note(
    actor: Actor,
    op: str,
    reason: str,
    *,
    mac: str | None = None,
    about: str | None = None,
    **fields: str | None,
) -> None:
    """Write it down unless that was done within the hour. `about` stands for the reason where that varies."""
    what = about or reason
    if not _new((op, mac, what)):
        return
    if mac is None and _written(op, reason):
        return
    record_quietly(
        actor=actor, op=op, status="failed", mac=mac, reason=reason, **fields
    )


def forget() -> None:
    """Let everything be written down again (tests)."""
    with _guard:
        _noted.clear()


def _new(key: tuple[str, str | None, str]) -> bool:
    now = time.monotonic()
    with _guard:
        if now - _noted.get(key, -QUIET_S) < QUIET_S:
            return False
        if len(_noted) >= MOST:
            for old in [k for k, at in _noted.items() if now - at >= QUIET_S]:
                del _noted[old]
            if len(_noted) >= MOST:
                return False
        _noted[key] = now
        return True


def _written(op: str, reason: str) -> bool:
    """Whether another process has written down what concerns no machine in particular."""
    since = timezone.now() - timedelta(seconds=QUIET_S)
    rows = operations(op=op).filter(ts__gte=since, data__reason=reason)
    return rows.exclude(data__has_key="mac").exists()
