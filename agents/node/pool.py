"""Which directory this node knows: tells its pool from the folder that is there while the pool is not mounted."""

from __future__ import annotations

import contextlib
import json
import logging
import os
import secrets
import threading
from pathlib import Path

from ipxeready.errors import Unavailable
from ipxeready.said import said
from ipxeready.storage import atomic
from ipxeready.storage import iqn as iqns

logger = logging.getLogger(__name__)

#: The mark in the image directory: one line, drawn once.
NAME = ".pool"
_OURS = (iqns.IMAGE_SUFFIX, iqns.ISO_SUFFIX, ".json")
_LONGEST = 64


class Pool:
    """The mark of one image directory, and what this node remembers of it elsewhere (`state/node-pool.json`).

    Nothing is remembered of a directory in which nothing is yet: a pool may be mounted there after the first start.
    From then on the directory must have the mark, or it is not opened at all: what is made or remembered below an
    unmounted pool would be hidden by it later, and what is missing there is not gone.
    """

    def __init__(self, folder: Path, state: Path) -> None:
        self._folder = folder
        self._state = state
        self._guard = threading.Lock()
        self._known = self._load().get(str(folder))

    def check(self, handle: int) -> None:
        """Return if the open directory is the one that is known, or none is; else Unavailable."""
        if self._known is None:
            return
        found = _mark(handle)
        if found == self._known:
            return
        # Whoever removes what is remembered need not restart us.
        self._known = self._load().get(str(self._folder))
        if self._known in {None, found}:
            return
        what = (
            said("its {file} is another one", file=NAME)
            if found
            else said("it has no {file} file", file=NAME)
        )
        raise Unavailable(
            said(
                "{folder} is not the image directory that this node knows ({what}): its file system "
                "is probably not mounted. Nothing is made or changed until it is. If this directory "
                "is the right one now, delete {state}.",
                folder=self._folder,
                what=what,
                state=self._state,
            ),
            code="folder.unmounted",
        )

    def adopt(self, handle: int) -> None:
        """Know the open directory from now on, once something is in it."""
        if self._known is not None:
            return
        with self._guard:
            found = _mark(handle)
            if not found and not _is_used(handle):
                return
            try:
                known = found or _draw(handle)
                self._state.parent.mkdir(parents=True, exist_ok=True)
                text = json.dumps({**self._load(), str(self._folder): known}, indent=2)
                atomic.write_replace(self._state, text.encode() + b"\n", 0o644)
            except OSError as error:
                logger.info(
                    "%s is not remembered, so that an unmounted pool goes unnoticed: %s",
                    self._folder,
                    error,
                )
                return
            self._known = known

    def _load(self) -> dict[str, str]:
        try:
            data = json.loads(self._state.read_bytes())
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as error:
            logger.warning("%s cannot be read: %s", self._state, error)
            return {}
        return data if isinstance(data, dict) else {}


def _mark(folder: int) -> str | None:
    """What the mark says; None where there is none, empty where it cannot be read."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        file = os.open(NAME, flags, dir_fd=folder)
    except FileNotFoundError:
        return None
    except OSError:
        return ""
    try:
        return os.read(file, _LONGEST).decode("ascii", "replace").strip()
    except OSError:
        return ""
    finally:
        os.close(file)


def _draw(folder: int) -> str:
    """A new mark, whole or not there at all."""
    mark = secrets.token_hex(16)
    name = f"{NAME}.{mark}.part"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    file = os.open(name, flags, 0o644, dir_fd=folder)
    try:
        os.write(file, mark.encode() + b"\n")
        os.fsync(file)
        os.rename(name, NAME, src_dir_fd=folder, dst_dir_fd=folder)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=folder)
        raise
    finally:
        os.close(file)
    os.fsync(folder)
    return mark


def _is_used(folder: int) -> bool:
    with os.scandir(folder) as entries:
        return any(entry.name.lower().endswith(_OURS) for entry in entries)
