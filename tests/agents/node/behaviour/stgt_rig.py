"""The rig over a real tgtd, on this machine."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

from agents.node.backends import tgtadm, tgtlisting
from agents.node.backends.stgt import StgtBackend
from tests.agents.node.behaviour.rig import FOREIGN, Rig, iqn_of
from tests.agents.node.node_lab import Tgtd

_FOREIGN_TID = "900"


class StgtRig(Rig):
    """A node over a tgtd that the test has started."""

    kind = "stgt"

    def __init__(self, place: Path, tgtd: Tgtd) -> None:
        self.tgtd = tgtd
        self.port = tgtd.port
        super().__init__(place)

    def _environment(self) -> dict[str, str]:
        return {
            "IPXE_STGT_SOCKET": str(self.tgtd.socket),
            "IPXE_STGT_CONTROL_PORT": str(self.tgtd.control_port),
        }

    def make_foreign(self) -> None:
        path = self.place / "foreign.raw"
        path.write_bytes(bytes(1 << 20))
        target = ("--mode", "target", "--tid", _FOREIGN_TID)
        lun = ("--mode", "logicalunit", "--tid", _FOREIGN_TID, "--lun", "1")
        self.tgtd.adm("--op", "new", *target, "-T", FOREIGN)
        self.tgtd.adm("--op", "new", *lun, "-b", str(path))

    def foreign_state(self) -> object:
        return [
            part
            for part in self.tgtd.listing().split("\nTarget ")
            if f": {FOREIGN}\n" in part
        ]

    def by_hand(self, name: str, file: str) -> None:
        tid = str(300 + len(self.left()))
        where = ("--mode", "logicalunit", "--tid", tid, "--lun", "1")
        self.tgtd.adm("--op", "new", "--mode", "target", "--tid", tid, "-T", iqn_of(name))  # fmt: skip
        self.tgtd.adm("--op", "new", *where, "-b", str(self.folder / file))

    def half_made(self) -> dict[str, Callable[[str], None]]:
        def target(name: str) -> str:
            tids = [
                line for line in self.tgtd.listing().splitlines() if "Target " in line
            ]
            tid = str(100 + len(tids))
            self.tgtd.adm("--op", "new", "--mode", "target", "--tid", tid, "-T", iqn_of(name))  # fmt: skip
            return tid

        def shut(name: str) -> None:
            tid, path = target(name), str(self.folder / f"{name}.img")
            where = ("--mode", "logicalunit", "--tid", tid, "--lun", "1")
            self.tgtd.adm("--op", "new", *where, "-b", path)

        return {
            "a target without a disk": lambda name: void(target(name)),
            "a target that lets nobody in": shut,
        }

    def damaged(self) -> dict[str, Callable[[str], None]]:
        def no_rule(name: str) -> None:
            self.export(name)
            tid = str((self.target(name) or {})["tid"])  # type: ignore[typeddict-item]
            self.tgtd.adm("--op", "unbind", "--mode", "target", "--tid", tid, "-I", "ALL")  # fmt: skip

        return {"a target that lets nobody in any more": no_rule}

    def left(self) -> list[str]:
        lines = self.tgtd.listing().splitlines()
        return [line for line in lines if line.startswith("Target ")]

    def lose_all(self) -> None:
        self.tgtd.kill()
        self.tgtd.again()

    @contextlib.contextmanager
    def counting(self) -> Iterator[Callable[[], int]]:
        """Calls of tgtadm, and targets that are read out of its listings."""
        backend = self.backend
        assert isinstance(backend, StgtBackend)
        run, parse = backend._tgtadm.run, tgtlisting.parse
        steps = 0

        def counted_run(operation: str, mode: str, *arguments: str) -> str:
            nonlocal steps
            steps += 1
            return run(operation, mode, *arguments)

        def counted_parse(text: str) -> list[tgtlisting.Shown]:
            nonlocal steps
            found = parse(text)
            steps += len(found)
            return found

        backend._tgtadm.run = counted_run  # type: ignore[method-assign]
        tgtlisting.parse = counted_parse
        try:
            yield lambda: steps
        finally:
            backend._tgtadm.run = run  # type: ignore[method-assign]
            tgtlisting.parse = parse

    @contextlib.contextmanager
    def hanging(self, name: str) -> Iterator[Callable[[], None]]:
        backend = self.backend
        assert isinstance(backend, StgtBackend)
        before, tgtadm.TIMEOUT = tgtadm.TIMEOUT, 0.5
        os.kill(self.tgtd.process.pid, signal.SIGSTOP)
        try:
            yield lambda: self.export(name)
        finally:
            os.kill(self.tgtd.process.pid, signal.SIGCONT)
            tgtadm.TIMEOUT = before
            backend._tgtadm._until = 0

    def clear(self) -> None:
        """The tgtd goes with its test."""


def void(_: object) -> None:
    """Done."""
