"""What a start must know and no image tells: which targets were taken off on purpose, and which CD is which ISO."""

from __future__ import annotations

import json
import os
import secrets
from dataclasses import dataclass, field
from typing import Any

from agents.node.images import Images
from agents.node.parts import PART
from ipxeready.errors import Unavailable

NAME = ".targets.json"


@dataclass
class State:
    """`off`: IQNs that stay off until exported again; `cds`: IQN -> ISO that come back; `other`: keys that we don't know, kept."""

    off: set[str] = field(default_factory=set)
    cds: dict[str, str] = field(default_factory=dict)
    other: dict[str, Any] = field(default_factory=dict)


class Memory:
    """`.targets.json` in the image directory. Callers hold the node's lock around read and write."""

    def __init__(self, images: Images) -> None:
        self._images = images

    def read(self) -> State:
        """The state as the file has it now; a broken file is Unavailable, and is never written over."""
        with self._images.handle() as folder:
            try:
                file = os.open(
                    NAME, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder
                )
            except FileNotFoundError:
                return State()
            except OSError as error:
                raise self._broken(error.strerror or str(error)) from error
            with os.fdopen(file, "rb") as stream:
                raw = stream.read()
        try:
            data = json.loads(raw)
        except json.JSONDecodeError as error:
            raise self._broken(
                f"line {error.lineno}, column {error.colno}: {error.msg}"
            ) from error
        except (ValueError, RecursionError) as error:
            raise self._broken(f"line 1, column 1: {error}") from error
        return self._shape(data)

    def write(self, state: State) -> None:
        """Replace the file, durably."""
        data = {
            **state.other,
            "version": 1,
            "off": sorted(state.off),
            "cds": dict(sorted(state.cds.items())),
        }
        raw = json.dumps(data, indent=2, ensure_ascii=False).encode() + b"\n"
        name = f"{NAME}.{secrets.token_hex(6)}{PART}"
        with self._images.handle() as folder:
            try:
                file = os.open(
                    name,
                    os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC,
                    0o644,
                    dir_fd=folder,
                )
                try:
                    with os.fdopen(file, "wb") as stream:
                        stream.write(raw)
                        stream.flush()
                        os.fsync(stream.fileno())
                    os.rename(name, NAME, src_dir_fd=folder, dst_dir_fd=folder)
                except BaseException:
                    os.unlink(name, dir_fd=folder)
                    raise
                os.fsync(folder)
            except OSError as error:
                raise Unavailable(
                    f"{self._images.path(NAME)} could not be written ({error.strerror}); nothing was changed.",
                    code="memory.write",
                ) from error

    def set(
        self,
        iqn: str,
        *,
        off: bool | None = None,
        iso: str | None = None,
        cd: bool = True,
    ) -> State:
        """Change what is remembered of one target and return what was before.

        `off` True or False; `iso` the CD's file; `cd` False forgets the CD. The file is
        written only where that changes something.
        """
        before = self.read()
        after = State(set(before.off), dict(before.cds), before.other)
        if off is True:
            after.off.add(iqn)
        elif off is False:
            after.off.discard(iqn)
        if iso is not None:
            after.cds[iqn] = iso
        if not cd:
            after.cds.pop(iqn, None)
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
        )

    def _shape(self, data: object) -> State:
        if not isinstance(data, dict):
            raise self._broken("line 1, column 1: not a JSON object")
        off, cds = data.pop("off", []), data.pop("cds", {})
        data.pop("version", None)
        if not isinstance(off, list) or not all(isinstance(iqn, str) for iqn in off):
            raise self._broken('"off" must be a list of IQNs')
        if not isinstance(cds, dict) or not all(
            isinstance(v, str) for v in cds.values()
        ):
            raise self._broken('"cds" must map IQNs to ISO names')
        return State(set(off), cds, data)

    def _broken(self, where: str) -> Unavailable:
        return Unavailable(
            f"{self._images.path(NAME)} cannot be read: {where}. Mend it, or delete it to forget "
            "which targets were taken off.",
            code="memory.broken",
        )
