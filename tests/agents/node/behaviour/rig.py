"""A storage node over a real target system, and real initiators: what the behaviour cases are run on. No pytest: the guest has none."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from agents.node import creating, deleting, rebuild, startup
from agents.node.backends.base import Backend, Export
from agents.node.runtime import Node
from agents.protocol.access import OFF, Access, Chap
from agents.protocol.answers import Created, Deleted, ScanResult, Target
from agents.protocol.requests import DiskRequest
from agents.protocol.systems import LUN_NUMBER
from ipxeready import conf
from tests.agents.node.behaviour import initiator as initiators
from tests.agents.node.behaviour.initiator import Session, Unit
from tests.processes import eventually

BASE = "iqn.2026-07.com.controller"
MIB = 1 << 20
_GET_FLAGS, _SET_FLAGS, _IMMUTABLE = 0x80086601, 0x40086602, 0x10
#: A name that others might have for a target of theirs.
FOREIGN = "iqn.2001-01.org.else:storage"


class Rig(ABC):
    """One node with a folder of its own; `stop` leaves nothing of it behind."""

    #: The target system, by its name in the protocol.
    kind: str
    port: int
    #: How many times longer a step takes than on this machine.
    slowness = 1.0

    def __init__(self, place: Path) -> None:
        self.place = place
        self.folder = place / "images"
        self.folder.mkdir(parents=True)
        self.environment = {
            "IPXE_MODE": "agent",
            "IPXE_ROOT": str(place),
            "IPXE_AGENT_TOKEN": "token-of-the-node",
            "IPXE_AGENT_BACKEND": self.kind,
            "IPXE_ISCSI_PORTAL": f"127.0.0.1:{self.port}",
        } | self._environment()
        self.node = self.restart()

    def _environment(self) -> dict[str, str]:
        return {}

    # -- the node ----------------------------------------------------------

    @property
    def backend(self) -> Backend:
        """Its target system."""
        return self.node.backend

    def restart(self, **environment: str) -> Node:
        """What a new process of the agent finds and does at its start."""
        self.environment |= environment
        self.node = startup.build(conf.load(self.environment))
        return self.node

    def image(self, name: str, size: int = MIB, content: bytes = b"") -> Path:
        """A file that somebody put there."""
        path = self.folder / name
        with path.open("xb") as stream:
            stream.write(content)
            stream.truncate(size)
        return path

    def disk(self, name: str, **fields: Any) -> Created:
        """Make a disk as the API does."""
        fields.setdefault("access", OFF)
        return creating.disk_create(self.node, DiskRequest(iqn_of(name), **fields))

    def delete(self, name: str, **options: bool) -> Deleted:
        """Delete one as the API does."""
        return deleting.target_delete(self.node, iqn_of(name), **options)

    def export(self, name: str, access: Access | None = None) -> None:
        """Export an image that is there, past the services."""
        path = str(self.folder / f"{name}.img")
        self.backend.export(Export(iqn_of(name), path, access=access))

    def scan(self) -> ScanResult:
        """Scan as the API does."""
        return rebuild.scan(self.node)

    def skipped(self) -> dict[str, str]:
        """What a scan leaves alone, and why."""
        return {entry["name"]: entry["reason"] for entry in self.scan()["skipped"]}

    def target(self, name: str) -> Target | None:
        """What the target system has under that name."""
        return self.backend.find(iqn_of(name))

    def targets(self) -> dict[str, str]:
        """Name behind the base -> file name, for every target."""
        return {
            t["iqn"].removeprefix(f"{BASE}:"): os.path.basename(t["luns"][0]["backing"])
            for t in self.backend.targets()
            if t["luns"]
        }

    def files(self) -> dict[str, tuple[int, int]]:
        """Every file: inode and size; to see that nothing changed."""
        found = {}
        for path in self.folder.iterdir():
            if not path.name.startswith("."):
                status = path.lstat()
                found[path.name] = (status.st_ino, status.st_size)
        return found

    # -- initiators ----------------------------------------------------------

    def unit(self, name: str) -> Unit:
        """The disk of that name, as machines address it."""
        return Unit(self.port, iqn_of(name), LUN_NUMBER[self.kind])

    def may_log_in(self, name: str, initiator: str, chap: Chap | None = None) -> bool:
        """Whether a real initiator gets in; it is out again when this returns."""

        def inside() -> int:
            target = self.target(name)
            sessions = target["sessions"] if target else []
            return sum(s["initiator"] == initiator for s in sessions)

        before = inside()
        may = initiators.may_log_in(self.unit(name), initiator, chap)
        eventually(lambda: inside() <= before, initiators.PATIENCE)
        return may

    @contextlib.contextmanager
    def session(
        self, name: str, initiator: str, chap: Chap | None = None
    ) -> Iterator[Session]:
        """A session for the length of the block."""

        def listed() -> bool:
            target = self.target(name)
            return any(
                s["initiator"] == initiator
                for s in (target or {})["sessions"]  # type: ignore[typeddict-item]
            )

        with initiators.session(self.unit(name), initiator, listed, chap) as held:
            yield held
        eventually(
            lambda: self.target(name) is None or not listed(), initiators.PATIENCE
        )

    # -- the target system past the product ------------------------------------

    @abstractmethod
    def make_foreign(self) -> None:
        """A target of somebody else's, with a disk that lies elsewhere."""

    @abstractmethod
    def foreign_state(self) -> object:
        """All that can be seen of it."""

    @abstractmethod
    def by_hand(self, name: str, file: str) -> None:
        """A target below our base that somebody made with the target system's own tools, of a file in our folder."""

    @abstractmethod
    def half_made(self) -> dict[str, Callable[[str], None]]:
        """What a call leaves of a target that dies on its way, by where it dies; each makes it for a name."""

    @abstractmethod
    def damaged(self) -> dict[str, Callable[[str], None]]:
        """What somebody's hand may have done to a target that is there; each makes and damages one."""

    @abstractmethod
    def left(self) -> list[str]:
        """Everything that the target system has, ours and others'."""

    @abstractmethod
    def lose_all(self) -> None:
        """Somebody restarts the target system, or clears it."""

    @abstractmethod
    def counting(self) -> contextlib.AbstractContextManager[Callable[[], int]]:
        """How many steps the target system has been asked for since the block began: what a change costs on every machine."""

    @abstractmethod
    def hanging(
        self, name: str
    ) -> contextlib.AbstractContextManager[Callable[[], None]]:
        """The target system does not come back from the call that is given, about this disk; the limit is short."""

    @abstractmethod
    def clear(self) -> None:
        """Take everything off."""

    def stop(self) -> None:
        """Leave nothing behind."""
        self.clear()
        shutil.rmtree(self.place)


def iqn_of(name: str) -> str:
    """The target of that name."""
    return f"{BASE}:{name}"


@contextlib.contextmanager
def immutable(path: Path) -> Iterator[None]:
    """A file that nobody may write to, not even root."""
    with path.open("rb") as file:
        flags = bytearray(8)
        fcntl.ioctl(file, _GET_FLAGS, flags)
        before = int.from_bytes(flags, sys.byteorder)
        fcntl.ioctl(file, _SET_FLAGS, (before | _IMMUTABLE).to_bytes(8, sys.byteorder))
        try:
            yield
        finally:
            fcntl.ioctl(file, _SET_FLAGS, before.to_bytes(8, sys.byteorder))
