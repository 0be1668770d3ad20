"""Where the index lies: on a local disk, one for each host, user and state folder."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path


def index_path(state_dir: Path) -> Path:
    """The index of `state_dir`: the user's id keeps root's files out of the service's way."""
    base = os.environ.get("RUNTIME_DIRECTORY", "").split(":")[0]
    folder = Path(base) if base else Path(tempfile.gettempdir())
    name = hashlib.blake2b(os.fsencode(state_dir.absolute()), digest_size=8).hexdigest()
    return folder / f"ipxeready-index-{os.getuid()}-{name}.sqlite3"
