"""Callers that change a node while it is killed again and again, and what must be true of it afterwards. No pytest: a guest has none."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents.node import chap, memory, pool
from tests.agents.node.behaviour.initiator import Session, Unit
from tests.agents.node.behaviour.rig import MIB, iqn_of

#: (status, answer) of one request to the node; status 0 when none came.
Ask = Callable[[str, str, Any], tuple[int, Any]]
_HIDDEN = {memory.NAME, chap.NAME, pool.NAME}
_EACH = 3


@dataclass(frozen=True)
class Disk:
    """What a disk may be: the data it begins with (a master's, or nothing), zeros up to its size, exported or not."""

    source: str
    size: int
    on: bool = True


def make_masters(folder: Path) -> dict[str, bytes]:
    """Two masters with data and holes; what is in them, by name."""
    found = {"": b""}
    for name, pieces in (("small_tpl_v1.img", "d d"), ("large_tpl_v2.img", "d dd d")):
        content = b"".join(
            random.randbytes(MIB) if piece == "d" else bytes(MIB) for piece in pieces
        )
        (folder / name).write_bytes(content)
        found[name] = content
    return found


@dataclass
class Caller:
    """Somebody with disks of its own, one request after the other; it remembers what it was told."""

    ask: Ask
    folder: Path
    masters: Mapping[str, bytes]
    chance: random.Random
    stem: str
    #: The disk as it must be; None where it must be gone.
    known: dict[str, Disk | None] = field(default_factory=dict)
    #: After a request without an answer: as it may be, too.
    open: dict[str, list[Disk | None]] = field(default_factory=dict)
    #: Requests that were answered with success, by kind.
    done: list[str] = field(default_factory=list)
    serial: int = 0

    def work(self, stop: threading.Event, *, broken: Callable[[], bool]) -> None:
        """Change one's disks until told to stop or left without an answer; `broken`: refusals are allowed by now."""
        while not stop.is_set() and not self.open:
            name = self._name()
            kind, (method, path, body), wanted, also = self._change(name)
            status, answer = self.ask(method, path, body)
            if 200 <= status < 300:
                self.known[name] = wanted
                self.done.append(kind)
                continue
            assert status == 0 or broken(), (kind, name, self.known[name], answer)
            self.open[name] = [wanted, *also]

    def _name(self) -> str:
        names = list(self.known)
        if len(names) < _EACH:
            self.serial += 1
            name = f"{self.stem}-{self.serial}.debian"
            self.known[name] = None
            return name
        return self.chance.choice(names)

    def _change(
        self, name: str
    ) -> tuple[str, tuple[str, str, Any], Disk | None, list[Disk | None]]:
        """One request about a disk: what it leads to, and what else is right when it was not answered."""
        disk, iqn = self.known[name], iqn_of(name)
        if disk is None:
            source = self.chance.choice([*self.masters])
            size = len(self.masters[source]) or MIB
            what = {"master": source} if source else {"size": size}
            made = Disk(source, size)
            return "create", ("POST", "/lun/disk", {"iqn": iqn, **what}), made, []
        off = Disk(disk.source, disk.size, on=False)
        removal = ("DELETE", f"/lun?iqn={iqn}&delete_file=true", None)
        if not disk.on:
            if self.chance.random() < 0.3:
                return "delete", removal, None, []
            body = {"iqn": iqn, "existing": True}
            on = Disk(disk.source, disk.size)
            return "export", ("POST", "/lun/disk", body), on, []
        match self.chance.choice(["delete", "delete", "keep", "grow", "reset"]):
            case "delete":
                # Between the target and the file: the same request finishes it.
                return "delete", removal, None, [off]
            case "keep":
                return "keep", ("DELETE", f"/lun?iqn={iqn}", None), off, []
            case "grow":
                larger = Disk(disk.source, disk.size + MIB)
                body = {"iqn": iqn, "size": larger.size}
                return "grow", ("POST", "/lun/grow", body), larger, []
            case _:
                source = self.chance.choice([name for name in self.masters if name])
                body = {"iqn": iqn, "master": source}
                fresh = Disk(source, len(self.masters[source]))
                return "reset", ("POST", "/lun/reset", body), fresh, []

    def check(self, exported: Mapping[str, str]) -> None:
        """What was answered is so, what was not is one of both; from here on it is known."""
        for name, disk in list(self.known.items()):
            right = [disk, *self.open.get(name, [])]
            found = self._found(name, exported, right)
            assert found in right, (name, found, right)
            self.known[name] = found
        self.open.clear()

    def _found(
        self, name: str, exported: Mapping[str, str], right: list[Disk | None]
    ) -> object:
        """The disk as it is; what it is not, in words, when its content is none of those that it may have."""
        path = self.folder / f"{name}.img"
        on = iqn_of(name) in exported
        if not path.exists():
            assert not on, f"{name} is exported without an image"
            return None
        content = path.read_bytes()
        for disk in right:
            if (
                disk is not None
                and disk.size == len(content)
                and content == self.content(disk)
            ):
                return Disk(disk.source, disk.size, on)
        like = [n for n, data in self.masters.items() if data and data in content]
        return f"{len(content)} bytes, exported: {on}, with all of {like}"

    def content(self, disk: Disk) -> bytes:
        """Every byte of a disk."""
        return self.masters[disk.source].ljust(disk.size, b"\0")


def check_folder(
    folder: Path, exported: Mapping[str, str], callers: list[Caller], others: set[str]
) -> None:
    """Every image has an owner and every target its image; no part of a copy is left, and the memory can be read."""
    names = {path.name for path in folder.iterdir()}
    hidden = {name for name in names if name.startswith(".")}
    assert hidden <= _HIDDEN, hidden
    remembered = json.loads((folder / memory.NAME).read_bytes())
    for caller in callers:
        caller.check(exported)
    there = {n: d for caller in callers for n, d in caller.known.items() if d}
    images = {f"{name}.img" for name in there} | {f"{name}.img" for name in others}
    masters = {name for name in callers[0].masters if name}
    assert names - hidden == images | masters
    assert exported == {
        iqn_of(name): str(folder / f"{name}.img")
        for name in [*others, *(name for name, disk in there.items() if disk.on)]
    }
    off = {iqn_of(name) for name, disk in there.items() if not disk.on}
    assert set(remembered["off"]) >= off


class Bystander:
    """A machine that works on its disk all the time; whether it was ever disturbed."""

    def __init__(self, unit: Unit, initiator: str, pause: float = 0.05) -> None:
        self._pause = pause
        self.session = Session(unit, initiator)
        self.worked = 0
        self._error: AssertionError | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while not self._stop.wait(self._pause):
                self.session.writes(self.worked % 250 + 1, 4096)
                self.session.reads()
                self.worked += 1
        except (AssertionError, OSError) as error:
            self._error = AssertionError(f"after {self.worked} rounds: {error!r}")

    def check(self) -> None:
        """It is at work, and was all the time."""
        before = self.worked
        for _ in range(1000):
            if self._error:
                raise self._error
            if self.worked > before + 1:
                return
            self._stop.wait(0.02)
        raise AssertionError("a bystander hangs")

    def end(self) -> None:
        """Log out."""
        self._stop.set()
        self.session.cut()
        self._thread.join(10)
