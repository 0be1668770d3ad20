"""What is said of disks and targets, the same on every page."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _t

from ipxeready.storage.sizes import format_size
from workers.access import wanted
from workers.choices import CREATING, DELETING, DiskType
from workers.models import Cd, Disk, Worker


def source_words(source: dict[str, Any]) -> str:
    """Where a disk's content came from; what the file says goes as it is, the page makes it visible."""
    kind, name, size = (source.get(key) for key in ("type", "name", "size"))
    if kind == DiskType.MASTER:
        return _t("clone of %(name)s") % {"name": name}
    if kind == DiskType.EMPTY:
        if isinstance(size, int) and size > 0:
            return _t("empty, %(size)s") % {"size": format_size(size)}
        return _t("empty")
    if kind == DiskType.EXISTING:
        return _t("an image that was kept")
    if kind == DiskType.IMPORT:
        return _t("the image %(name)s, renamed") % {"name": name}
    return _t("not recorded") if not kind else str(kind)


def status_words(disk: Disk) -> str:
    """Empty when the disk is there."""
    words = {CREATING: _t("being made"), DELETING: _t("being deleted")}
    return words.get(disk.status, disk.status)


def access_words(worker: Worker, thing: Disk | Cd) -> str:
    """What holds for a target, and what should where that is something else."""
    mode = wanted(worker, thing)
    if mode == thing.access:
        return mode
    return _t("%(now)s, should be %(mode)s: set it again") % {
        "now": thing.access,
        "mode": mode,
    }
