"""The target systems that a node may have, and how each numbers and names what it serves."""

from __future__ import annotations

STGT = "stgt"
LIO = "lio"
FILES = "files"
AUTO = "auto"
BACKENDS = (STGT, LIO, FILES)
#: The LUN number that carries the disk or CD, by backend (tgt keeps 0 for its controller).
LUN_NUMBER = {STGT: 1, FILES: 1, LIO: 0}
#: What stands between server and target in an iPXE SAN path, by backend.
ISCSI_SEP = {STGT: ":::1:", FILES: ":::1:", LIO: "::::"}

DISK = "disk"
CD = "cd"
