"""When and where machines were last seen: dnsmasq's leases, for display only."""

from __future__ import annotations

import time
from collections.abc import Iterable
from datetime import UTC, datetime

from django.conf import settings
from django.utils.formats import date_format
from django.utils.timezone import localtime
from django.utils.translation import gettext as _

from ipxeready.storage import leases
from ipxeready.storage.leases import Lease
from ipxeready.storage.watched import Watched

_leases: Watched[dict[str, Lease]] = Watched(leases.read)


def leases_of(macs: Iterable[str]) -> list[Lease]:
    """The leases of these MACs; none where the file cannot be read (docs/configuration.md, IPXE_CP_DNSMASQ_LEASES)."""
    try:
        known = _leases.get(settings.IPXE.dnsmasq_leases)
    except OSError:
        return []
    return [known[mac] for mac in macs if mac in known]


def lease_words(lease: Lease) -> str:
    """One lease for people."""
    if not lease.expires:
        return _("%(ip)s, without end") % {"ip": lease.ip}
    try:
        end = localtime(datetime.fromtimestamp(lease.expires, UTC))
    except (ValueError, OverflowError, OSError):
        return lease.ip
    told = {"ip": lease.ip, "time": date_format(end, "SHORT_DATETIME_FORMAT")}
    if lease.expires < time.time():
        return _("%(ip)s, ended %(time)s") % told
    return _("%(ip)s, until %(time)s") % told
