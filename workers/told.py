"""Whether dnsmasq has the hosts file as it is now: what is known on this machine, without waiting for anything."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from django.utils.translation import gettext as _

from workers import dnsmasq_process
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
    if way == "pidfile" and (fault := _running(Path(value))):
        return Told(False, fault)
    last = Reloader(way, value, settings.IPXE_LAYOUT).last()
    if last is None:
        return Told(None, _("dnsmasq has not been told anything since this machine started"))  # fmt: skip
    began, error = last
    if error:
        return Told(False, error)
    try:
        written = settings.IPXE_LAYOUT.dhcp_hosts.stat().st_mtime
    except OSError:
        return Told(False, _("the hosts file cannot be read"))
    if written > began + _SLACK:
        return Told(
            False,
            _("the hosts file has changed since dnsmasq was last told: reload dnsmasq"),
        )
    return Told(True, _("dnsmasq has read the hosts file as it is now"))


def _running(pidfile: Path) -> str | None:
    """Why the running dnsmasq cannot have our file; None when nothing speaks against it."""
    try:
        with dnsmasq_process.find(pidfile) as process:
            return process.hosts_fault(settings.IPXE_LAYOUT.dhcp_hosts)
    except dnsmasq_process.NotRunning as error:
        return str(error)
