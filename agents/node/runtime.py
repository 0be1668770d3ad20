"""The one node of this process: its parts, its lock, and where the API finds it."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from collections.abc import Iterator

from agents.node.backends import Backend
from agents.node.backends.base import Export
from agents.node.chap import Secrets
from agents.node.images import Images
from agents.node.jobs import Jobs
from agents.node.masters import Masters
from agents.node.memory import Memory
from agents.node.oplog import OperationLog
from agents.node.sessions import Sessions
from agents.node.uploads import Uploads
from agents.protocol.answers import Target
from ipxeready.errors import Conflict, Unavailable
from ipxeready.said import said

#: Changes of targets take milliseconds; who waits longer than this waits for something broken.
_WAIT = 30.0


class Node:
    """A storage node: what it owns and the lock that lets one change happen at a time."""

    def __init__(
        self,
        *,
        base_iqn: str,
        images: Images,
        backend: Backend,
        log: OperationLog,
        jobs: Jobs,
        sessions: Sessions,
    ) -> None:
        self.base_iqn = base_iqn
        self.images = images
        self.backend = backend
        self.log = log
        self.jobs = jobs
        self.sessions = sessions
        self.device = _device(images)
        """The file system that the images lay on at the start; None where there was no directory."""
        self.masters = Masters(images)
        self.memory = Memory(images, self.is_making)
        self.secrets = Secrets(images)
        self.uploads = Uploads(images)
        self.exported: set[str] = set()
        """What this process has seen exported, to notice a target system that lost it all."""
        self.scanned_in = ""
        """The life of the target system (see Backend.incarnation) in which the last scan was; empty where it tells none."""
        self.doubtful: set[str] = set()
        """Targets of which a call got no answer: the target system may do it all the same, at any later time."""
        self.unbuilt = False
        """The rebuild at the start did not run; the watch will try again."""
        self._lock = threading.RLock()
        self._guard = threading.Lock()
        self._making: set[str] = set()
        self._removing: Counter[str] = Counter()
        self._reading: Counter[str] = Counter()

    def targets(self) -> list[Target]:
        """The targets below our base, and since when who is logged in."""
        targets = self.backend.targets()
        self.sessions.note(targets, self.backend.incarnation())
        return targets

    def about(
        self, iqn: str, path: str | None = None, *, recent: bool = False
    ) -> list[Target]:
        """The targets that a change of one has to know of, see the backend's; at a cost that does not grow with the rest."""
        targets = self.backend.about(iqn, path, recent=recent)
        if not recent:
            self.sessions.note(targets, self.backend.incarnation(), whole=False)
        return targets

    def export(self, export: Export) -> None:
        """Make one target; without an answer nobody knows what came of it, and it is looked at again (`restored`)."""
        with self.in_doubt(export.iqn):
            self.backend.export(export)

    def unexport(self, iqn: str, *, force: bool = False) -> None:
        """Take one target off; the same without an answer."""
        with self.in_doubt(iqn):
            self.backend.unexport(iqn, force=force)

    @contextlib.contextmanager
    def in_doubt(self, *iqns: str) -> Iterator[None]:
        """Calls about these targets: where the target system does not answer they are to be looked at again."""
        try:
            yield
        except Unavailable:
            self.doubtful.update(iqns)
            raise

    @contextlib.contextmanager
    def changing(self) -> Iterator[None]:
        """The lock for changes of targets and memory. No copy ever runs under it."""
        if not self._lock.acquire(timeout=_WAIT):
            raise Unavailable(
                said(
                    "another change has been running for {seconds} s; the target system may hang.",
                    seconds=f"{_WAIT:g}",
                ),
                code="node.busy",
            )
        try:
            yield
        finally:
            self._lock.release()

    def reserve(self, filename: str) -> None:
        """Mark an image as being made (under the lock); Conflict when it is already."""
        if filename in self._making:
            raise Conflict(
                said("{name} is being made by another call.", name=filename),
                code="file.making",
            )
        self._making.add(filename)

    def release(self, filename: str) -> None:
        """The image is made, or not."""
        self._making.discard(filename)

    @contextlib.contextmanager
    def claimed(self, filename: str) -> Iterator[None]:
        """Nobody else gives a file that name for the length of the block; Conflict when somebody is at it."""
        with self.changing():
            self.reserve(filename.lower())
        try:
            yield
        finally:
            self.release(filename.lower())

    def making(self) -> list[str]:
        """The images that are being made right now."""
        return sorted(self._making.copy())

    @contextlib.contextmanager
    def taking_off(self, iqn: str) -> Iterator[None]:
        """A target is being taken off, from before the lock until it is gone or has stayed."""
        with self._guard:
            self._removing[iqn] += 1
        try:
            yield
        finally:
            with self._guard:
                self._removing[iqn] -= 1
                if not self._removing[iqn]:
                    del self._removing[iqn]

    def removing(self) -> list[str]:
        """The targets that are being taken off right now."""
        with self._guard:
            return sorted(self._removing)

    @contextlib.contextmanager
    def reading(self, filename: str) -> Iterator[None]:
        """A file is the source of a copy for the length of the block: it is not deleted or renamed meanwhile."""
        with self._guard:
            self._reading[filename] += 1
        try:
            yield
        finally:
            with self._guard:
                self._reading[filename] -= 1
                if not self._reading[filename]:
                    del self._reading[filename]

    def is_reading(self, filename: str) -> bool:
        """Whether some copy reads that file right now."""
        with self._guard:
            return filename in self._reading

    def is_making(self, filename: str) -> bool:
        """Whether some call is making that image right now."""
        return filename.lower() in self._making


def _device(images: Images) -> int | None:
    try:
        return images.stamp()[0]
    except Unavailable:
        return None


_current: Node | None = None


def install(node: Node | None) -> None:
    """Make `node` the one that the API serves."""
    global _current
    _current = node


def current() -> Node:
    """The node of this process; Unavailable before it has started."""
    if _current is None:
        raise Unavailable(
            said("this node has not started; run `python manage.py serve`.")
        )
    return _current
