"""The list of masters: kept for half a minute, renewed sooner when the directory has moved."""

from __future__ import annotations

import threading
import time

from agents.node.folder import Entry
from agents.node.images import Images
from agents.protocol import paths
from agents.protocol.filenames import check_master
from agents.protocol.limits import MASTERS_PERIOD
from ipxeready.errors import NotFound
from ipxeready.said import said

#: A directory's mtime comes from a clock with a grain: what changed so shortly before we
#: looked may change again without moving it.
_GRAIN_NS = 50_000_000


class Masters:
    """The masters of one image directory."""

    def __init__(self, images: Images) -> None:
        self._images = images
        self._lock = threading.Lock()
        self._found: dict[str, Entry] = {}
        self._problems: dict[str, tuple[tuple[float, ...], str | None]] = {}
        self._stamp: tuple[int, int, int] | None = None
        self._at = 0.0

    def renew(self) -> dict[str, Entry]:
        """Read the directory now."""
        with self._lock:
            return self._renew()

    def all(self) -> dict[str, Entry]:
        """The masters by name, at most half a minute old and never older than the directory's last change."""
        with self._lock:
            old = time.monotonic() - self._at > MASTERS_PERIOD
            if old or self._stamp is None or self._stamp != self._images.stamp():
                return self._renew()
            return self._found

    def get(self, name: str) -> Entry:
        """The master of that name; the directory is read again before "no such master" is said."""
        check_master(name)
        entry = self.all().get(name) or self.renew().get(name)
        if entry is None:
            raise NotFound(
                said(
                    "there is no master {name} on this node. GET {masters} lists those that are.",
                    name=repr(name),
                    masters=paths.MASTERS,
                ),
                code="master.missing",
            )
        return entry

    def problem(self, entry: Entry) -> str | None:
        """Why disks cannot be cloned from it: it is no raw disk. Read again only when the file has changed."""
        was = (*entry.identity, entry.size, entry.mtime)
        known = self._problems.get(entry.name)
        if known is None or known[0] != was:
            known = (was, self._images.container(entry.name))
            self._problems[entry.name] = known
        return known[1]

    def _renew(self) -> dict[str, Entry]:
        stamp = self._images.stamp()
        young = time.time_ns() - stamp[2] < _GRAIN_NS
        self._found = {entry.name: entry for entry in self._images.masters()}
        for gone in self._problems.keys() - self._found.keys():
            self._problems.pop(gone, None)
        self._stamp = None if young else stamp
        self._at = time.monotonic()
        return self._found
