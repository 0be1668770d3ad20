"""The rig over the kernel's LIO, for a guest that has one."""

from __future__ import annotations

import contextlib
import functools
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from agents.node.backends import configfs, limits
from agents.node.backends.configfs import Tree, store_index
from agents.node.backends.lio import LioBackend
from ipxeready import conf, lio
from tests.agents.node.behaviour.rig import BASE, FOREIGN, Rig, iqn_of

_FOREIGN_STORE = "fileio_0/somebodys"


_EVENTS = frozenset({"open", "os.listdir", "os.scandir", "os.mkdir", "os.rmdir", "os.symlink", "os.remove"})  # fmt: skip
_steps = 0


@functools.cache
def _listen() -> None:
    """Count from now on: nobody can take such a hook off again."""
    root = os.fsencode(lio.TARGET)

    def heard(event: str, words: tuple[Any, ...]) -> None:
        global _steps
        if event in _EVENTS and isinstance(words[0], str | bytes | os.PathLike):
            _steps += os.fsencode(words[0]).startswith(root)

    sys.addaudithook(heard)


class LioRig(Rig):
    """A node over this kernel's target; its images lie on `/data`."""

    kind = "lio"
    port = 3260
    slowness = 6.0  # an emulated processor

    def __init__(self, place: Path) -> None:
        self.tree = Tree(BASE)
        super().__init__(place)

    def make_foreign(self) -> None:
        path = self.place / "foreign.raw"
        path.write_bytes(bytes(1 << 20))
        self._make_past_us(_FOREIGN_STORE, path, FOREIGN)

    def by_hand(self, name: str, file: str) -> None:
        store = f"fileio_{len(self._adapters())}/{name}"
        self._make_past_us(store, self.folder / file, iqn_of(name))

    def _make_past_us(self, store: str, path: Path, iqn: str) -> None:
        place = f"{lio.TARGET}/core/{store}"
        os.makedirs(place)
        size = path.stat().st_size
        configfs.write(f"{place}/control", f"fd_dev_name={path},fd_dev_size={size}")
        configfs.write(f"{place}/udev_path", str(path))
        configfs.write(f"{place}/enable", "1")
        group = f"{lio.ISCSI}/{iqn}/tpgt_1"
        os.makedirs(f"{group}/lun/lun_0")
        os.symlink(place, f"{group}/lun/lun_0/theirs")
        os.mkdir(f"{group}/np/127.0.0.1:{self.port}")
        configfs.write(f"{group}/enable", "1")

    def foreign_state(self) -> object:
        group = f"{lio.ISCSI}/{FOREIGN}/tpgt_1"
        if not os.path.isdir(group):
            return []
        store = f"{lio.TARGET}/core/{_FOREIGN_STORE}"
        return [
            [configfs.read(f"{store}/{n}") for n in ("info", "udev_path", "enable")],
            [configfs.read(f"{group}/enable"), configfs.entries(f"{group}/np")],
            os.readlink(f"{group}/lun/lun_0/theirs"),
        ]

    def half_made(self) -> dict[str, Callable[[str], None]]:
        def adapter(name: str) -> None:
            configfs.mkdir(f"{lio.TARGET}/core/fileio_{store_index(iqn_of(name))}")

        def object_only(name: str) -> None:
            adapter(name)
            configfs.mkdir(self.tree.store(iqn_of(name)))

        def working_object(name: str) -> None:
            object_only(name)
            store, path = self.tree.store(iqn_of(name)), self.folder / f"{name}.img"
            control = f"fd_dev_name={path},fd_dev_size={path.stat().st_size}"
            configfs.write(f"{store}/control", control)
            configfs.write(f"{store}/udev_path", str(path))
            configfs.write(f"{store}/enable", "1")

        def target(name: str) -> None:
            configfs.mkdir(self.tree.target(iqn_of(name)))

        def group(name: str) -> None:
            working_object(name)
            target(name)
            configfs.mkdir(self.tree.group(iqn_of(name)))

        def lun(name: str) -> None:
            group(name)
            configfs.mkdir(f"{self.tree.group(iqn_of(name))}/lun/lun_0")

        def shut(name: str) -> None:
            self.export(name)
            place = self.tree.group(iqn_of(name))
            configfs.rmdir(f"{place}/np/127.0.0.1:{self.port}")
            configfs.write(f"{place}/enable", "0")

        def stripped(name: str) -> None:
            shut(name)
            configfs.remove_lun(f"{self.tree.group(iqn_of(name))}/lun/lun_0")

        return {
            "an adapter": adapter,
            "a storage object that is not enabled": object_only,
            "a storage object without a serial": working_object,
            "a target without a portal group": target,
            "a portal group without a LUN": group,
            "a LUN without a storage object": lun,
            "a target that is shut": shut,
            "a target whose LUN was taken off": stripped,
        }

    def damaged(self) -> dict[str, Callable[[str], None]]:
        def not_enabled(name: str) -> None:
            self.export(name)
            configfs.write(f"{self.tree.group(iqn_of(name))}/enable", "0")

        def no_door(name: str) -> None:
            self.export(name)
            place = self.tree.group(iqn_of(name))
            configfs.rmdir(f"{place}/np/127.0.0.1:{self.port}")

        def keeps_space(name: str) -> None:
            self.export(name)
            place = self.tree.store(iqn_of(name))
            configfs.write(f"{place}/attrib/emulate_tpu", "0")

        return {
            "a portal group that is not enabled": not_enabled,
            "a target without a portal": no_door,
            "a disk without UNMAP": keeps_space,
        }

    def lose_all(self) -> None:
        for iqn in self.tree.names():
            self.tree.strip(iqn)

    @contextlib.contextmanager
    def counting(self) -> Iterator[Callable[[], int]]:
        """Everything below configfs that this process opens, lists, makes or removes, in rtslib too."""
        global _steps
        _steps = 0
        _listen()
        yield lambda: _steps

    @contextlib.contextmanager
    def hanging(self, name: str) -> Iterator[Callable[[], None]]:
        """The images' disk hangs while a machine writes to it: its LUN goes only when that write is over."""
        before, limits.TIMEOUT = limits.TIMEOUT, 1.0
        mount = _mount_of(self.place)
        with self.session(name, f"{BASE}:worker-01") as session:
            subprocess.run(["fsfreeze", "-f", mount], check=True)
            try:
                session.begins("write -f -P 1 0 4096")
                time.sleep(1)
                yield lambda: self.backend.unexport(iqn_of(name), force=True)
            finally:
                subprocess.run(["fsfreeze", "-u", mount], check=True)
                limits.TIMEOUT = before

    def clear(self) -> None:
        for iqn in self.tree.names():
            self.tree.strip(iqn)
        for place in self.tree.stores():
            self.tree.remove_store(place)
        for adapter in self._adapters():
            for name in configfs.entries(adapter):
                configfs.rmdir(f"{adapter}/{name}")
            configfs.rmdir(adapter)

    def left(self) -> list[str]:
        return self.tree.names() + self._adapters()

    def _adapters(self) -> list[str]:
        core = f"{lio.TARGET}/core"
        names = [n for n in configfs.entries(core) if n.startswith("fileio_")]
        return [f"{core}/{name}" for name in names]

    def info(self, name: str) -> str:
        """What the kernel says of a target's storage object."""
        return configfs.read(f"{self.tree.store(iqn_of(name))}/info")

    def other_portal(self, portal: str) -> LioBackend:
        """A target system of the same kernel that listens elsewhere."""
        host, _, port = portal.rpartition(":")
        return LioBackend(base_iqn=BASE, portal=conf.Endpoint(host, int(port)))

    def unload(self) -> None:
        """As after a boot: nothing has asked for the target yet."""
        self.clear()
        os.rmdir(lio.ISCSI)
        subprocess.run(["rmmod", "iscsi_target_mod", "target_core_file"], check=True)


def _mount_of(path: Path) -> str:
    while not path.is_mount():
        path = path.parent
    return str(path)
