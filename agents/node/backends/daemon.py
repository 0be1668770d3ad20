"""Which process listens at a local socket: asked of the kernel, so that it costs no answer of the process itself."""

from __future__ import annotations

import contextlib
import socket
import struct
from pathlib import Path

_CREDENTIALS = struct.Struct("3i")
#: Seconds; a backlog that is full belongs to a process that hangs.
_PATIENCE = 1.0


def life(path: str) -> str:
    """The process number and its start, so that the same number again is another text; empty where nobody listens."""
    pid = _listener(path)
    if pid is None:
        return ""
    with contextlib.suppress(OSError, IndexError):
        # The name stands in parentheses and may have any character in it.
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return f"{pid}@{fields[19]}"
    return str(pid)


def name(path: str) -> str:
    """The process's name; empty where nobody listens, or in another process namespace."""
    pid = _listener(path)
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().strip() if pid else ""
    return ""


def _listener(path: str) -> int | None:
    with socket.socket(socket.AF_UNIX) as peer:
        peer.settimeout(_PATIENCE)
        try:
            peer.connect(path)
            raw = peer.getsockopt(
                socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size
            )
        except OSError:
            return None
    return int(_CREDENTIALS.unpack(raw)[0]) or None
