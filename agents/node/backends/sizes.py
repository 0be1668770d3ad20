"""The size of a backing file, for listings."""

from __future__ import annotations

from pathlib import Path


def size_of(path: str, otherwise: int = 0) -> int:
    """Bytes of the file, or `otherwise` when it is gone."""
    try:
        return Path(path).stat().st_size
    except (OSError, ValueError):
        return otherwise
