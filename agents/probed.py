"""What a probe found, kept between the two steps of registering a node, so that the token need not go to the browser and back."""

from __future__ import annotations

import json
import os
import re
import secrets
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from django.conf import settings

#: Seconds for the second step.
KEPT = 30 * 60.0
#: Probes that wait for their second step; more push out the oldest.
MOST = 50
_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True)
class Probed:
    """An address that was asked, by whom, with which token, and what is there."""

    by: str
    base_url: str
    token: str = field(repr=False)
    found: dict[str, Any]


def keep(probed: Probed) -> str:
    """Put it aside under an id that cannot be guessed; the file is for this service's user only."""
    folder = _folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _clean(folder)
    number = secrets.token_hex(16)
    fd = os.open(folder / number, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(fd, "w", encoding="utf-8") as file:
        json.dump(asdict(probed), file)
    return number


def kept(number: str, by: str) -> Probed | None:
    """What was put aside, for who did it and not for long."""
    if not _ID.fullmatch(number):
        return None
    path = _folder() / number
    try:
        if time.time() - path.stat().st_mtime > KEPT:
            return None
        found = Probed(**json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        return None
    return found if found.by == by else None


def forget(number: str) -> None:
    """It is done with."""
    if _ID.fullmatch(number):
        (_folder() / number).unlink(missing_ok=True)


def _folder() -> Path:
    run: Path = settings.IPXE_LAYOUT.run
    return run / "probed"


def _clean(folder: Path) -> None:
    stamps = []
    for path in folder.iterdir():
        try:
            stamps.append((path.stat().st_mtime, path))
        except OSError:
            continue  # another process was quicker
    stamps.sort(reverse=True)
    oldest = time.time() - KEPT
    for rank, (stamp, path) in enumerate(stamps):
        if stamp < oldest or rank >= MOST - 1:
            path.unlink(missing_ok=True)
