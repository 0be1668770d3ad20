"""Throwing the index away and building it from the files, while others go on reading and writing."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path

from ipxeready.index import build, freshness
from ipxeready.index.connection import path
from ipxeready.index.selectors import problems
from ipxeready.index.sources import all_sources


@dataclass
class Rebuilt:
    """Where the index lies, how long it took, rows by table, problems of the files."""

    path: Path
    seconds: float
    rows: dict[str, int] = field(default_factory=dict)
    problems: int = 0


def rebuild() -> Rebuilt:
    """Build a new index beside the present one and put it in its place; Unavailable when the lock cannot be had."""
    started = time.monotonic()
    with freshness.lock().held("reindex"):
        # What a crash left is finished first, and edits by hand are written down, as at any other time.
        freshness.refresh_locked()
        build.build()
        freshness.forget()
    models = [model for source in all_sources() for model in source.models]
    return Rebuilt(
        path=path(),
        seconds=time.monotonic() - started,
        rows={
            str(model._meta.model_name): model._default_manager.count()
            for model in models
        },
        problems=problems().count(),
    )
