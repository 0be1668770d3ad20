"""Disks with their targets, made and deleted by the node's services, against the loop that an administrator would write.

`python -m tests.bench.targets KIND FOLDER NUMBER...` measures over tgtd on this machine (`stgt`; the folder gets a mount
of its own, gone with the process) or over this kernel's target (`lio`, in a guest), and says JSON: seconds by name.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from agents.node.backends import configfs
from agents.protocol.access import OFF
from agents.protocol.systems import LIO, STGT
from ipxeready import lio
from tests.agents.node.behaviour.rig import MIB, Rig

#: The best of so many at each end of a run tells what a disk costs there: other work on the machine is not what is measured.
_END = 20
#: Names and numbers that are not the product's.
_RAW = "iqn.2001-01.org.bench"
_FIRST_TID = 20_000


class Loop(ABC):
    """The bare loop: what one disk and its target need, and not one call more."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def create(self, number: int) -> None:
        """Image and target."""
        with self.path(number).open("xb") as file:
            file.truncate(MIB)
        self.export(number)

    def delete(self, number: int) -> None:
        """Target and image."""
        self.take_off(number)
        self.path(number).unlink()

    def path(self, number: int) -> Path:
        """Where the image lies."""
        return self.folder / f"bench-{number}.img"

    @abstractmethod
    def export(self, number: int) -> None:
        """The target alone."""

    @abstractmethod
    def take_off(self, number: int) -> None:
        """The target alone."""


class TgtadmLoop(Loop):
    """Three calls of tgtadm make a target, one takes it off."""

    def __init__(self, folder: Path, adm: Callable[..., str]) -> None:
        super().__init__(folder)
        self._adm = adm

    def export(self, number: int) -> None:
        tid = str(_FIRST_TID + number)
        target = ("--mode", "target", "--tid", tid)
        lun = ("--mode", "logicalunit", "--tid", tid, "--lun", "1")
        self._adm("--op", "new", *target, "-T", f"{_RAW}:{number}")
        self._adm("--op", "new", *lun, "-b", str(self.path(number)))
        self._adm("--op", "bind", *target, "-I", "ALL")

    def take_off(self, number: int) -> None:
        tid = str(_FIRST_TID + number)
        self._adm("--op", "delete", "--mode", "target", "--tid", tid, "--force")


class ConfigfsLoop(Loop):
    """Directories and attributes of configfs, written straight."""

    portal = "127.0.0.1:3260"

    def export(self, number: int) -> None:
        path, store = self.path(number), self._store(number)
        os.makedirs(store)
        configfs.write(f"{store}/control", f"fd_dev_name={path},fd_dev_size={MIB}")
        configfs.write(f"{store}/enable", "1")
        configfs.write(f"{store}/wwn/vpd_unit_serial", f"{number:032x}")
        configfs.write(f"{store}/attrib/emulate_tpu", "1")
        group = self._group(number)
        os.makedirs(f"{group}/lun/lun_0")
        os.symlink(store, f"{group}/lun/lun_0/image")
        configfs.write(f"{group}/attrib/authentication", "0")
        configfs.write(f"{group}/attrib/generate_node_acls", "1")
        configfs.write(f"{group}/attrib/demo_mode_write_protect", "0")
        os.mkdir(f"{group}/np/{self.portal}")
        configfs.write(f"{group}/enable", "1")

    def take_off(self, number: int) -> None:
        group, store = self._group(number), self._store(number)
        os.rmdir(f"{group}/np/{self.portal}")
        os.unlink(f"{group}/lun/lun_0/image")
        os.rmdir(f"{group}/lun/lun_0")
        os.rmdir(group)
        os.rmdir(os.path.dirname(group))
        os.rmdir(store)
        os.rmdir(os.path.dirname(store))

    def _store(self, number: int) -> str:
        return f"{lio.TARGET}/core/fileio_{number}/bench-{number}"

    def _group(self, number: int) -> str:
        return f"{lio.ISCSI}/{_RAW}:{number}/tpgt_1"


def measure(rig: Rig, loop: Loop, number: int) -> dict[str, float]:
    """Each disk made, found at a start, made again at one, and deleted; the same by the loop."""
    numbers = range(1, number + 1)

    def make(at: int) -> None:
        rig.disk(_name(at), size=MIB, access=OFF)

    found = _both("create", _times(make, numbers), _times(loop.create, numbers))
    for at in numbers:
        loop.take_off(at)
    found["start"] = _timed(rig.restart)
    rig.lose_all()
    found["rebuild"] = _timed(rig.restart)
    if len(rig.backend.targets()) != number:
        raise RuntimeError("the start did not make every target again")
    found["rebuild, loop"] = sum(_times(loop.export, numbers))

    def delete(at: int) -> None:
        rig.delete(_name(at), delete_file=True)

    # The last first: the first one is deleted when it is alone.
    back = numbers[::-1]
    return found | _both("delete", _times(delete, back), _times(loop.delete, back))


def _name(number: int) -> str:
    return f"worker-{number:03d}.debian"


def _both(what: str, ours: Sequence[float], loop: Sequence[float]) -> dict[str, float]:
    return {
        key: value
        for side, times in (("", ours), (", loop", loop))
        for key, value in (
            (f"{what}{side}", sum(times)),
            (f"{what}, begin{side}", min(times[:_END])),
            (f"{what}, end{side}", min(times[-_END:])),
        )
    }


def _times(work: Callable[[int], object], numbers: Sequence[int]) -> list[float]:
    return [_timed(lambda number=number: work(number)) for number in numbers]  # type: ignore[misc]


def _timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


@contextlib.contextmanager
def _over_tgtd(folder: Path) -> Iterator[tuple[Rig, Loop]]:
    """A tgtd and a file system of our own, which the kernel takes off when this process ends, however it does."""
    from tests.agents.node import node_lab
    from tests.agents.node.behaviour.stgt_rig import StgtRig
    from tests.bench.clones import GIB, mounted

    node_lab.own_mounts()
    with mounted("ext4", folder, GIB) as point:
        daemon = node_lab.start_tgtd(point)
        try:
            rig = StgtRig(point / "node", daemon)
            yield rig, TgtadmLoop(point / "loop", daemon.adm)
        finally:
            daemon.kill()


@contextlib.contextmanager
def _over_lio(folder: Path) -> Iterator[tuple[Rig, Loop]]:
    from tests.agents.node.behaviour.lio_rig import LioRig

    yield LioRig(folder / "node"), ConfigfsLoop(folder / "loop")


_OVER = {STGT: _over_tgtd, LIO: _over_lio}


def main(words: list[str]) -> None:
    """Measure for each number, the node empty each time."""
    logging.disable(logging.WARNING)
    kind, folder, *numbers = words
    found: dict[str, Any] = {}
    with _OVER[kind](Path(folder)) as (rig, loop):
        for number in numbers:
            found[number] = measure(rig, loop, int(number))
            if left := rig.backend.targets():
                raise RuntimeError(f"{len(left)} targets are left")
    sys.stdout.write(f"{json.dumps(found)}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
