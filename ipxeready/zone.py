"""Which time zone the service shows times in: TZ, else the system's."""

from __future__ import annotations

import contextlib
import zoneinfo
from collections.abc import Mapping
from pathlib import Path

from ipxeready.conf import ConfigError

_ZONEINFO = "/zoneinfo/"


def _known(name: str) -> bool:
    """Whether `name` is a zone of the IANA data base that is installed here."""
    try:
        zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return False
    return True


def _system_zone(etc: Path) -> str:
    """The zone of /etc/localtime or /etc/timezone, else UTC."""
    try:
        target = str((etc / "localtime").resolve(strict=True))
    except (OSError, RuntimeError):
        target = ""
    candidates = [target.partition(_ZONEINFO)[2]]
    with contextlib.suppress(OSError, UnicodeDecodeError):
        candidates.append((etc / "timezone").read_text(encoding="ascii").strip())
    return next((name for name in candidates if name and _known(name)), "UTC")


def zone_name(environ: Mapping[str, str], etc: Path = Path("/etc")) -> str:
    """The zone's IANA name; ConfigError when TZ is none, as a clock that is silently off misleads."""
    text = environ.get("TZ", "").strip().removeprefix(":")
    if not text:
        return _system_zone(etc)
    if text.startswith("/"):
        text = text.partition(_ZONEINFO)[2]
    if not _known(text):
        raise ConfigError(
            "TZ", environ["TZ"], "must be a zone name such as Asia/Shanghai"
        )
    return text
