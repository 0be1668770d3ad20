"""Which target system each node was last seen with: remembered so that a boot never has to ask a node."""

from __future__ import annotations

import json
import logging
import os
import threading
from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings

from agents.models import Agent
from agents.protocol.systems import BACKENDS
from ipxeready.storage.paths import Layout

log = logging.getLogger(__name__)

# A file, because several processes serve and any of them may get the boot: what one
# has learnt counts in all, and after a restart too. It is only a memory: losing it
# means asking again.
_guard = threading.Lock()
_known: dict[str, Any] = {"stamp": None, "nodes": {}}


def _path() -> Path:
    return _place(settings.IPXE_LAYOUT)


@lru_cache(maxsize=4)
def _place(layout: Layout) -> Path:
    return layout.run / "node-backends.json"


def stamp() -> tuple[str, int, int, int] | None:
    """Identifies the notes: as long as it stays equal, no node was seen with another backend."""
    path = _path()
    try:
        status = os.stat(path)  # noqa: PTH116 - in the boot path
    except OSError:
        return None
    return str(path), status.st_ino, status.st_mtime_ns, status.st_size


def _load() -> dict[str, list[str]]:
    """The notes of all processes, read again only when the file has changed."""
    present = stamp()
    if present is None:
        return {}
    with _guard:
        if _known["stamp"] == present:
            found: dict[str, list[str]] = _known["nodes"]
            return found
    try:
        nodes = json.loads(_path().read_bytes())
    except (OSError, ValueError):
        nodes = {}
    if not isinstance(nodes, dict):
        nodes = {}
    with _guard:
        _known.update(stamp=present, nodes=nodes)
    return nodes


def backend_of(agent: Agent) -> str | None:
    """The backend that this node had when it was last asked at its present address."""
    note = _load().get(agent.id)
    match note:
        case [agent.base_url, str(backend)] if backend in BACKENDS:
            return backend
    return None


def note_backend(agent: Agent, backend: str) -> None:
    """Remember what a node just said; only a change is written."""
    note = [agent.base_url, backend]
    if not agent.id or backend not in BACKENDS:
        return
    nodes = _load()
    if nodes.get(agent.id) == note:
        return
    path = _path()
    draft = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}.tmp")
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        draft.write_text(json.dumps({**nodes, agent.id: note}), encoding="utf-8")
        draft.replace(path)
    except OSError as error:
        draft.unlink(missing_ok=True)
        log.warning("%s could not be written: %s", path, error.strerror)
