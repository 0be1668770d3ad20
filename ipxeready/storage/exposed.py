"""Whether a file with secrets can be read by others than its owner."""

from __future__ import annotations

import stat
from pathlib import Path


def exposed(path: Path) -> int | None:
    """The file's mode when others may read or write it; None when they may not, or there is no such file."""
    try:
        mode = stat.S_IMODE(path.stat().st_mode)
    except OSError:
        return None
    return mode if mode & 0o077 else None
