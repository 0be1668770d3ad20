"""Whether a machine that asks is told its login secret: only the machine itself, as far as the network can tell.

Its MAC is bound, it asks for a script and directly, and from the address that dnsmasq has leased to that MAC at present.
Whoever listens on the wire reads the secret all the same (docs/access.md).
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.conf import settings

from agents.protocol.access import Chap
from ipxeready.errors import ApplicationError
from ipxeready.said import said
from ipxeready.storage import leases
from ipxeready.storage.watched import Watched
from workers import chap
from workers.access import needs_secret
from workers.models import Cd, Disk, Worker

#: Headers by which a proxy says that somebody else asks.
_PROXY = ("HTTP_FORWARDED", "HTTP_VIA", "HTTP_X_REAL_IP")
_PROXY_START = "HTTP_X_FORWARDED"

_leases: Watched[dict[str, list[leases.Lease]]] = Watched(leases.addresses)


class Withheld(Exception):
    """The secret is not told; the text is shown on the machine's console."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True)
class Caller:
    """How a request came: the peer of the connection, whether through a proxy, and what it asks for."""

    address: str = ""
    proxied: bool = False
    script: bool = False

    @classmethod
    def of(cls, meta: Mapping[str, object], *, script: bool) -> Caller:
        """From the request itself; no header is believed."""
        proxied = any(name in _PROXY or name.startswith(_PROXY_START) for name in meta)
        return cls(str(meta.get("REMOTE_ADDR") or ""), proxied, script)


def asked_for(worker: Worker, things: Iterable[Disk | Cd]) -> bool:
    """Whether this machine needs a secret to log in to anything."""
    return any(needs_secret(worker, thing) for thing in things)


def credentials(worker: Worker, mac: str | None, caller: Caller) -> Chap:
    """The machine's name and secret, else Withheld. `mac` None: it is not known by a bound MAC."""
    if mac is None:
        raise Withheld(said("it did not ask by the MAC that is bound to it"))
    if caller.proxied:
        raise Withheld(said("the request came through a proxy"))
    _refuse_elsewhere(mac, caller.address)
    try:
        found = chap.secret_of(worker.worker_id)
    except ApplicationError as error:
        raise Withheld(error.message) from None
    if found is None:
        raise Withheld(
            said(
                "there is none for {worker_id} in config/chap-secrets.yml; set its access "
                "again",
                worker_id=worker.worker_id,
            )
        )
    return found


def _refuse_elsewhere(mac: str, address: str) -> None:
    try:
        known = _leases.get(settings.IPXE.dnsmasq_leases)
    except OSError:
        raise Withheld(
            said(
                "{file} of dnsmasq cannot be read (IPXE_CP_DNSMASQ_LEASES)",
                file=settings.IPXE.dnsmasq_leases,
            )
        ) from None
    here = _plain(address)
    now = time.time()
    if not any(leases.holds(lease, here, now) for lease in known.get(mac, ())):
        raise Withheld(
            said("it asks from an address that dnsmasq has not leased to its MAC")
        )


def _plain(address: str) -> str:
    """An IPv4 address as leases have it; a listener on [::] sees it mapped into IPv6."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return ""
    mapped = getattr(found, "ipv4_mapped", None)
    return str(mapped or found)
