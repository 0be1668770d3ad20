"""Since when each initiator is logged in: first seen by this node, kept over the agent's restart, forgotten with the session."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import threading
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from agents.protocol.answers import Session, Target

logger = logging.getLogger(__name__)


class Sessions:
    """A small file under state/, written when somebody comes or goes. Nothing depends on it: a broken one starts anew.

    What tells a login from the next one is the target system's number, which counts from one again when that is
    started again: `incarnation` tells its lives apart.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._incarnation = ""
        self._since: dict[str, str] = {}
        self._said = False
        self._load()

    def note(
        self, targets: Sequence[Target], incarnation: str, *, whole: bool = True
    ) -> None:
        """Set `since` of every session of the listing; when it is a whole one, forget those that are not in it any more."""
        with self._lock:
            # Empty where it could not be told just now: no reason to take everybody for new.
            incarnation = incarnation or self._incarnation
            known = self._since if incarnation == self._incarnation else {}
            now = ""
            seen: dict[str, str] = {} if whole else dict(known)
            for target in targets:
                for session in target["sessions"]:
                    key = _key(target["iqn"], session)
                    if key not in known:
                        now = now or _now()
                    session["since"] = seen[key] = known.get(key) or now
            if (seen, incarnation) != (self._since, self._incarnation):
                self._since, self._incarnation = seen, incarnation
                self._save()

    def _load(self) -> None:
        with contextlib.suppress(OSError, ValueError, RecursionError):
            data = json.loads(self._path.read_bytes())
            if not isinstance(data, dict):
                return
            since, incarnation = data.get("since"), data.get("incarnation")
            if (
                isinstance(since, dict)
                and isinstance(incarnation, str)
                and all(isinstance(value, str) for value in since.values())
            ):
                self._since, self._incarnation = since, incarnation

    def _save(self) -> None:
        """Replaced whole, and not synced: after a crash of the machine there are no sessions to know of."""
        data = {"version": 1, "incarnation": self._incarnation, "since": self._since}
        temporary = self._path.with_name(f".{self._path.name}.{os.getpid()}.tmp")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            temporary.write_text(json.dumps(data, indent=1), encoding="utf-8")
            temporary.replace(self._path)
        except OSError as error:
            if not self._said:  # once: a listing comes every few seconds
                logger.warning("%s cannot be written: %s", self._path, error)
                self._said = True


def _key(iqn: str, session: Session) -> str:
    return " ".join(
        (iqn, session["initiator"], session["address"], session.get("id", ""))
    )


def _now() -> str:
    return datetime.now().astimezone().isoformat(timespec="seconds")
