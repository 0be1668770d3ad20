"""LIO's tree in configfs: what the kernel really has, each part read and taken off at a cost that does not grow with the rest."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from agents.node.backends.limits import checkpoint
from agents.protocol.access import ACL, CHAP, NONE, OFF
from agents.protocol.answers import Lun, Session, Target
from agents.protocol.systems import DISK
from ipxeready import lio

#: What the names of our storage objects begin with; the IQN of their target follows.
OURS = "ipxe:"
#: Above the numbers that other tools count up from 0.
_FIRST_ADAPTER = 1 << 30
_GROUP = "tpgt_1"
_PLUGIN = "fileio"
_NAMES = ("iqn.", "eui.", "naa.")
#: The last numbers of `info`: a path in front of them may have any words.
_SIZE = re.compile(r"Size: (\d+)\s+Mode: \S+")


@dataclass(frozen=True)
class Store:
    """A storage object: `path` is what it was made from, `label` names the very file that the kernel holds."""

    place: str
    enabled: bool
    path: str
    size: int
    label: str

    @property
    def name(self) -> str:
        """Its name; ours carry their target's."""
        return os.path.basename(self.place)  # noqa: PTH119 - for thousands at once

    @property
    def ours(self) -> bool:
        """Whether an agent of this product made it."""
        return self.name.startswith(OURS)


@dataclass(frozen=True)
class Rule:
    """One initiator that a target knows by name: with what it proves itself, and its session if it has one."""

    mapped: bool
    session: Session | None = None


@dataclass
class Shown:
    """One target as the kernel has it."""

    iqn: str
    groups: list[str] = field(default_factory=list)
    enabled: bool = False
    authentication: bool = True
    generate: bool = False
    cached: bool = False
    """Initiators that came while the target was open to all are remembered and may come again."""
    portals: list[str] = field(default_factory=list)
    rules: dict[str, Rule] = field(default_factory=dict)
    luns: dict[int, Store | None] = field(default_factory=dict)
    """By number; None for one without a storage object."""
    sessions: list[Session] = field(default_factory=list)

    @property
    def half(self) -> bool:
        """Whether it is what a call left that died on its way: no door, and nobody behind it."""
        return not self.enabled and not self.portals

    def public(self) -> Target:
        """The target as the API lists it."""
        mode = self._mode()
        return {
            "iqn": self.iqn,
            "luns": [_lun(number, s) for number, s in sorted(self.luns.items()) if s],
            "sessions": self.sessions,
            "access": mode,
            "initiators": [] if mode == OFF else sorted(self.rules),
        }

    def _mode(self) -> str:
        if self.generate:
            return "other" if self.authentication else OFF
        if not self.rules:
            return "other"
        return CHAP if self.authentication else ACL


def _lun(number: int, store: Store) -> Lun:
    return {
        "lun": number,
        "backing": store.path,
        "size": store.size,
        "type": DISK,
    }


class Tree:
    """The targets below one base IQN, and their storage objects."""

    def __init__(self, base_iqn: str, root: Path = lio.TARGET) -> None:
        self._prefix = f"{base_iqn}:"
        self._iscsi = str(root / "iscsi")
        self._core = str(root / "core")

    # -- names -----------------------------------------------------------

    def is_ours(self, iqn: str) -> bool:
        """Whether a target lies below our base."""
        return iqn.startswith(self._prefix)

    def target(self, iqn: str) -> str:
        """Where a target is."""
        return f"{self._iscsi}/{iqn}"

    def group(self, iqn: str) -> str:
        """Where the one portal group of a target of ours is."""
        return f"{self._iscsi}/{iqn}/{_GROUP}"

    def store(self, iqn: str) -> str:
        """Where the storage object of a target is."""
        return f"{self._core}/{_PLUGIN}_{store_index(iqn)}/{OURS}{iqn}"

    # -- reading ---------------------------------------------------------

    def names(self) -> list[str]:
        """All targets of the kernel, ours and others'."""
        return [name for name in entries(self._iscsi) if name.startswith(_NAMES)]

    def all(self) -> list[Shown]:
        """Our targets, in one pass."""
        found = [self.shown(iqn) for iqn in self.names() if self.is_ours(iqn)]
        return sorted((s for s in found if s is not None), key=lambda s: s.iqn)

    def shown(self, iqn: str) -> Shown | None:
        """One target, wherever it lies; None when it is not there."""
        place = self.target(iqn)
        if not os.path.isdir(place):  # noqa: PTH112 - for thousands at once
            return None
        shown = Shown(iqn)
        shown.groups = [n for n in entries(place) if n.startswith("tpgt_")]
        for name in shown.groups:
            self._read_group(f"{place}/{name}", shown)
        return shown

    def listening(self, *, ours: bool) -> set[str]:
        """The portals of our targets, or of others'."""
        return {
            portal
            for iqn in self.names()
            if self.is_ours(iqn) is ours
            for name in entries(self.target(iqn))
            for portal in entries(f"{self.target(iqn)}/{name}/np")
        }

    def stores(self) -> list[str]:
        """Where the storage objects of our base's targets are, used or not."""
        mark = f"{OURS}{self._prefix}"
        return [
            f"{self._core}/{adapter}/{name}"
            for adapter in entries(self._core)
            if adapter.startswith(f"{_PLUGIN}_")
            for name in entries(f"{self._core}/{adapter}")
            if name.startswith(mark)
        ]

    def others_have(self, path: str) -> bool:
        """Whether a storage object that we did not make is made from that file."""
        return any(
            read(f"{self._core}/{adapter}/{name}/udev_path") == path
            for adapter in entries(self._core)
            if not _is_our_adapter(adapter)
            for name in entries(f"{self._core}/{adapter}")
        )

    def empty_adapters(self) -> list[str]:
        """Adapters with our numbers that carry nothing."""
        found = [f"{self._core}/{n}" for n in entries(self._core) if _is_our_adapter(n)]
        return [place for place in found if not entries(place)]

    def read_store(self, place: str) -> Store | None:
        """A storage object; None when it is not there."""
        if not os.path.isdir(place):  # noqa: PTH112 - for thousands at once
            return None
        enabled = read(f"{place}/enable") == "1"
        found = _SIZE.findall(read(f"{place}/info")) if enabled else []
        return Store(
            place,
            enabled=enabled,
            path=read(f"{place}/udev_path"),
            size=int(found[-1]) if found else 0,
            label=read(f"{place}/alias"),
        )

    def secrets(self, iqn: str, initiator: str) -> tuple[str, str]:
        """Name and secret of a rule, empty where it has none; for comparing and keeping, never for showing."""
        place = f"{self.group(iqn)}/acls/{initiator}/auth"
        name, secret = read(f"{place}/userid"), read(f"{place}/password")
        return ("" if name == NONE else name, "" if secret == NONE else secret)

    def _read_group(self, place: str, shown: Shown) -> None:
        attributes = f"{place}/attrib"
        shown.enabled = shown.enabled or read(f"{place}/enable") == "1"
        shown.authentication = read(f"{attributes}/authentication") != "0"
        shown.generate = read(f"{attributes}/generate_node_acls") == "1"
        shown.cached = read(f"{attributes}/cache_dynamic_acls") == "1"
        shown.portals += entries(f"{place}/np")
        for name in entries(f"{place}/lun"):
            number = int(name.removeprefix("lun_"))
            shown.luns[number] = self._linked(f"{place}/lun/{name}")
        for initiator in entries(f"{place}/acls"):
            rule = _rule(f"{place}/acls/{initiator}", initiator)
            shown.rules[initiator.lower()] = rule
            if rule.session is not None:
                shown.sessions.append(rule.session)
        # Each name is closed by a line end and a NUL; who has a rule is not among them.
        for name in read(f"{place}/dynamic_sessions").split("\0"):
            if initiator := name.strip().lower():
                shown.sessions.append({"initiator": initiator, "address": ""})

    def _linked(self, place: str) -> Store | None:
        for link in links(place):
            return self.read_store(link)
        return None

    # -- taking off ------------------------------------------------------

    def close(self, shown: Shown) -> None:
        """Let nobody new log in; sessions that are open stay."""
        for name in shown.groups:
            place = f"{self.target(shown.iqn)}/{name}/np"
            for portal in entries(place):
                rmdir(f"{place}/{portal}")

    def strip(self, iqn: str) -> None:
        """Take a target off, with all that it has, ending its sessions; the target itself goes last.

        So what a call left that died on its way is still listed, and the next call finishes it.
        """
        place = self.target(iqn)
        groups = [n for n in entries(place) if n.startswith("tpgt_")]
        for name in groups:
            _strip_group(f"{place}/{name}")
        self.remove_store(self.store(iqn))
        for name in groups:
            rmdir(f"{place}/{name}")
        rmdir(place)

    def remove_store(self, place: str) -> None:
        """Take a storage object off, and its adapter unless somebody else uses that too."""
        rmdir(place)
        with contextlib.suppress(OSError):
            rmdir(os.path.dirname(place))  # noqa: PTH120 - a string all along


def store_index(iqn: str) -> int:
    """The number of the adapter that carries a target's storage object.

    It follows from the name, so that an object is found, made and removed without a look at the others.
    Two names may share a number: an adapter carries several.
    """
    digest = hashlib.sha256(iqn.encode()).digest()
    return _FIRST_ADAPTER | int.from_bytes(digest[:4], "big") >> 2


def _is_our_adapter(name: str) -> bool:
    plugin, _, number = name.rpartition("_")
    return plugin == _PLUGIN and number.isdigit() and int(number) >= _FIRST_ADAPTER


def serial_of(iqn: str) -> str:
    """The serial number of a target's disk: the same at each re-creation."""
    return hashlib.sha256(iqn.encode()).hexdigest()[:32]


def _rule(place: str, initiator: str) -> Rule:
    mapped = any(True for n in entries(place) if n.startswith("lun_"))
    return Rule(mapped, _session(read(f"{place}/info"), initiator))


def _session(info: str, initiator: str) -> Session | None:
    if "InitiatorName:" not in info:
        return None
    session: Session = {"initiator": initiator.lower(), "address": ""}
    for line in info.splitlines():
        words = line.split()
        if words[:1] == ["Address"] and len(words) > 1:
            session["address"] = words[1].strip("[]")
        elif words[:3] == ["LIO", "Session", "ID:"] and len(words) > 3:
            session["id"] = words[3]
    return session


def _strip_group(place: str) -> None:
    for portal in entries(f"{place}/np"):
        rmdir(f"{place}/np/{portal}")
    with contextlib.suppress(FileNotFoundError):
        write(f"{place}/enable", "0")
    for initiator in entries(f"{place}/acls"):
        remove_rule(f"{place}/acls/{initiator}")
    for name in entries(f"{place}/lun"):
        remove_lun(f"{place}/lun/{name}")


def remove_rule(place: str) -> None:
    """Take an initiator's rule off; its session ends."""
    for name in entries(place):
        if name.startswith("lun_"):
            remove_lun(f"{place}/{name}")
    rmdir(place)


def remove_lun(place: str) -> None:
    """Take a LUN off, or its mapping for one initiator."""
    with contextlib.suppress(FileNotFoundError):
        found = os.scandir(place)
        with found:
            for entry in found:
                if entry.is_symlink():
                    checkpoint()
                    os.unlink(entry.path)  # noqa: PTH108 - a string all along
    rmdir(place)


# -- the smallest steps ------------------------------------------------------


def entries(place: str) -> list[str]:
    """The directories below `place`; none when it is not there."""
    checkpoint()
    try:
        with os.scandir(place) as found:
            return [e.name for e in found if e.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []


def links(place: str) -> Iterator[str]:
    """Where the links in `place` lead."""
    with contextlib.suppress(FileNotFoundError), os.scandir(place) as found:
        for entry in found:
            if entry.is_symlink():
                # No part of the way is a link: the words are enough.
                yield os.path.normpath(f"{place}/{os.readlink(entry.path)}")  # noqa: PTH115


def read(path: str) -> str:
    """An attribute without its line end; empty when it is not there (any more)."""
    checkpoint()
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return ""
    try:
        return os.read(file, 1 << 16).decode(errors="surrogateescape").rstrip("\n")
    finally:
        os.close(file)


def write(path: str, value: str) -> None:
    """Set an attribute; the kernel takes it in one piece."""
    checkpoint()
    file = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(file, value.encode(errors="surrogateescape"))
    finally:
        os.close(file)


def mkdir(path: str) -> None:
    """Make a directory, and with it what it stands for; there already is fine."""
    checkpoint()
    with contextlib.suppress(FileExistsError):
        os.mkdir(path)  # noqa: PTH102 - a string all along


def rmdir(path: str) -> None:
    """Remove a directory, and with it what it stands for; gone already is fine."""
    checkpoint()
    with contextlib.suppress(FileNotFoundError):
        os.rmdir(path)  # noqa: PTH106 - a string all along
