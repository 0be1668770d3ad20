"""Whether dnsmasq has the hosts file as it is now, in words: what is known on this machine, without waiting for anything."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext as _

from ipxeready.web.words import in_words
from workers.dnsmasq import not_seen
from workers.reload import Reloader

#: Seconds by which clocks and file stamps may differ.
_SLACK = 0.5


@dataclass(frozen=True)
class Told:
    """`active` is None where nobody can know; `words` say why, or what to do."""

    active: bool | None
    words: str


def dnsmasq_told() -> Told:
    """Whether the present bindings are active in dnsmasq, as far as this machine can tell."""
    way, value = settings.IPXE.dnsmasq_reload
    if way == "none":
        return Told(
            None,
            _(
                "nobody tells dnsmasq of changes (IPXE_CP_DNSMASQ_RELOAD): they count from its next reload on"
            ),
        )
    if fault := not_seen():
        return Told(False, in_words(fault))
    read = _last_read(way, value)
    if read is None:
        return Told(
            None, _("dnsmasq has not been told anything since this machine started")
        )
    try:
        written = settings.IPXE_LAYOUT.dhcp_hosts.stat().st_mtime
    except OSError:
        return Told(False, _("the hosts file cannot be read"))
    if written > read + _SLACK:
        return Told(
            False,
            _("the hosts file has changed since dnsmasq was last told: reload dnsmasq"),
        )
    return Told(True, _("dnsmasq has read the hosts file as it is now"))


def _last_read(way: str, value: str) -> float | None:
    """When dnsmasq last read the file: at our reload, or at its start, when it writes its pid file."""
    times = [Reloader(way, value, settings.IPXE_LAYOUT).last_began()]
    if way == "pidfile":
        with contextlib.suppress(OSError):
            times.append(Path(value).stat().st_mtime)
    return max((time for time in times if time is not None), default=None)
