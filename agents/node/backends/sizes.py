"""The size of a backing file, for listings."""

from __future__ import annotations

import os


def size_of(path: str, otherwise: int = 0) -> int:
    """Bytes of the file, or `otherwise` when it is gone."""
    try:
        return os.stat(path).st_size  # noqa: PTH116 - for thousands of targets at once
    except (OSError, ValueError):
        return otherwise
