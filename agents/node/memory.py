"""What a start must know and no image tells: which targets were taken off on purpose, which CD is which ISO, who may log in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from agents.node import chap
from agents.node.hidden import HiddenFile
from agents.node.images import Images
from agents.protocol.access import ACCESS, ACL, OFF
from ipxeready.said import said
from ipxeready.storage import iqn as iqns

NAME = ".targets.json"
#: The code of an error that only means that the file could not be written.
CANNOT_WRITE = "memory.write"


@dataclass
class State:
    """What the file says.

    `off`: IQNs that stay off until exported again; `cds`: IQN -> ISO that come back; `access`: IQN -> mode that was
    asked for; `default_access`: the mode of all others; `other`: keys that we don't know, kept.
    """

    off: set[str] = field(default_factory=set)
    cds: dict[str, str] = field(default_factory=dict)
    access: dict[str, str] = field(default_factory=dict)
    default_access: str | None = None
    other: dict[str, Any] = field(default_factory=dict)


class Memory:
    """`.targets.json` in the image directory. Callers hold the node's lock around read and write."""

    def __init__(self, images: Images, making: Callable[[str], bool]) -> None:
        self._images = images
        self._making = making
        self._file = HiddenFile(
            images,
            NAME,
            mode=0o644,
            code="memory",
            mend=said(
                "Mend it; or delete it to forget which targets were taken off, which CDs come back, "
                "and who may log in (then everybody may, or each machine itself where a target had a "
                "secret, until it is set again)."
            ),
        )

    def settle(self) -> None:
        """Write down who may log in where nothing else is said, before the folder's first image is exported.

        Otherwise the next start would find an image without our file, and take the folder for an older one.
        """
        if self._file.read() is None:
            self.write(self.read())

    def mode(self, state: State, iqn: str) -> str:
        """Who may log in to a target about which a request says nothing."""
        return state.access.get(iqn) or state.default_access or OFF

    def read(self) -> State:
        """The state as the file has it now; a broken file is Unavailable, and is never written over."""
        data = self._file.read()
        if data is None:
            return State(default_access=self._default())
        return self._shape(data)

    def write(self, state: State) -> None:
        """Replace the file, durably."""
        data = {
            **state.other,
            "version": 1,
            "off": sorted(state.off),
            "cds": dict(sorted(state.cds.items())),
            "access": dict(sorted(state.access.items())),
        }
        if state.default_access is not None:
            data["default_access"] = state.default_access
        self._file.write(data)

    def set(
        self,
        iqn: str,
        *,
        off: bool | None = None,
        iso: str | None = None,
        cd: bool = True,
        access: str | None = None,
        forget: bool = False,
    ) -> State:
        """Change what is remembered of one target and return what was before.

        `off` True or False; `iso` the CD's file; `cd` False forgets the CD; `access` the mode
        that was asked for; `forget` forgets it. The file is written only where that changes something.
        """
        before = self.read()
        after = replace(
            before,
            off=set(before.off),
            cds=dict(before.cds),
            access=dict(before.access),
        )
        if off is True:
            after.off.add(iqn)
        elif off is False:
            after.off.discard(iqn)
        if iso is not None:
            after.cds[iqn] = iso
        if not cd:
            after.cds.pop(iqn, None)
        if access is not None:
            after.access[iqn] = access
        elif forget:
            after.access.pop(iqn, None)
        if after != before:
            self.write(after)
        return before

    def restore(self, iqn: str, before: State) -> None:
        """Put back what `set` said was before, for this target only."""
        self.set(
            iqn,
            off=iqn in before.off,
            iso=before.cds.get(iqn),
            cd=iqn in before.cds,
            access=before.access.get(iqn),
            forget=True,
        )

    def _default(self) -> str:
        """A folder without our file and without a disk image is new, and closed; one that was there keeps what it had.

        With secrets it had closed targets, and our file is lost: it does not open for everybody.
        """
        entries = self._images.entries()
        if any(entry.name == chap.NAME for entry in entries):
            return ACL
        there = any(
            entry.name.lower().endswith(iqns.IMAGE_SUFFIX)
            and not entry.name.startswith(".")
            and not iqns.is_master(entry.name)
            and not self._making(entry.name)
            for entry in entries
        )
        return OFF if there else ACL

    def _shape(self, data: dict[str, Any]) -> State:
        off, cds = data.pop("off", []), data.pop("cds", {})
        access, default = data.pop("access", {}), data.pop("default_access", None)
        data.pop("version", None)
        if not isinstance(off, list) or not all(isinstance(iqn, str) for iqn in off):
            raise self._file.broken(said('"off" must be a list of IQNs'))
        if not isinstance(cds, dict) or not all(
            isinstance(v, str) for v in cds.values()
        ):
            raise self._file.broken(said('"cds" must map IQNs to ISO names'))
        if not isinstance(access, dict) or not all(
            isinstance(mode, str) and mode in ACCESS for mode in access.values()
        ):
            raise self._file.broken(
                said(
                    '"access" must map IQNs to one of {choices}',
                    choices=", ".join(ACCESS),
                )
            )
        if default is not None and default not in ACCESS:
            raise self._file.broken(
                said(
                    '"default_access" must be one of {choices}',
                    choices=", ".join(ACCESS),
                )
            )
        return State(set(off), cds, access, default, data)
