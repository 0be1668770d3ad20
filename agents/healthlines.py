"""The health of a node as lines of a page."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext as _

from ipxeready.storage.sizes import format_size


def health_lines(found: dict[str, Any]) -> dict[str, Any]:
    """`problems`, and `lines` of label and text, for what `agent_health` found."""
    lines: list[tuple[str, str]] = []
    problems: list[str] = []
    seconds = {"seconds": f"{found['seconds']:.1f}"}
    if found["reachable"]:
        lines.append((_("Agent"), _("answers within %(seconds)s s") % seconds))
    else:
        lines.append((_("Agent"), _("does not answer")))
    if "error" in found:
        problems.append(found["error"])
    health = found["health"]
    if health is not None:
        lines += [
            (_("Target system"), _backend(_Fields(health["backend"]))),
            (_("Room"), _room(_Fields(health["room"]))),
            (_("File system"), _file_system(_Fields(health["fs"]))),
            (_("Targets"), _targets(_Fields(health["targets"]))),
            (_("Images"), _images(_Fields(health["images"]))),
        ]
        problems += map(str, health["problems"])
    return {"lines": lines, "problems": problems}


class _Fields:
    """What a node says, which may be older or newer than this: a field that is missing is empty or none."""

    def __init__(self, fields: dict[str, Any]) -> None:
        self._fields = fields

    def text(self, name: str) -> str:
        return str(self._fields.get(name) or "")

    def flag(self, name: str) -> bool:
        return self._fields.get(name) is True

    def number(self, name: str) -> int:
        value = self._fields.get(name)
        return value if isinstance(value, int) else 0


def _backend(backend: _Fields) -> str:
    if not backend.flag("alive"):
        words = _("%(name)s, does not answer")
    elif not backend.flag("ours"):
        words = _("%(name)s, answers, but may be another one")
    else:
        words = _("%(name)s, answers")
    return words % {"name": backend.text("name")}


def _room(room: _Fields) -> str:
    return _(
        "%(free)s free of %(total)s, %(promised)s promised to disks that may grow, %(reserve)s in reserve"
    ) % {
        name: format_size(room.number(name))
        for name in ("free", "total", "promised", "reserve")
    }


def _file_system(fs: _Fields) -> str:
    words = (
        _("%(type)s at %(mount)s, clones share blocks")
        if fs.flag("reflink")
        else _("%(type)s at %(mount)s, clones are full copies")
    )
    return words % {"type": fs.text("type"), "mount": fs.text("mount")}


def _targets(targets: _Fields) -> str:
    return _(
        "%(ours)s of ours, %(sessions)s sessions; %(foreign)s of others, left untouched"
    ) % {name: targets.number(name) for name in ("ours", "sessions", "foreign")}


def _images(images: _Fields) -> str:
    return _(
        "%(disks)s disks (%(kept)s without a target), %(masters)s masters, %(isos)s ISOs"
    ) % {name: images.number(name) for name in ("disks", "kept", "masters", "isos")}
