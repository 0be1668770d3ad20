"""dnsmasq's lease file: when and where a machine was last seen. It never says what a machine is bound to."""

from __future__ import annotations

import ipaddress
import re
from typing import NamedTuple

from ipxeready.storage.mac import from_octets

_MAC = re.compile(
    rb"(?:(?P<type>[0-9a-f]{2})-)?(?P<mac>[0-9a-f]{2}(?::[0-9a-f]{2}){5})"
)


class Lease(NamedTuple):
    """One IPv4 lease of an Ethernet card."""

    mac: str
    ip: str
    #: Seconds since 1970 at which the lease ends; 0 means never.
    expires: int
    #: What the machine called itself or was called then: for display only, often out of date.
    hostname: str | None


def read(content: bytes) -> dict[str, Lease]:
    """The leases by MAC; lines of other shapes (`duid`, IPv6, torn) are passed over, never an error.

    Of several leases of one card the one that ends last counts.
    """
    found: dict[str, Lease] = {}
    for line in content.split(b"\n"):
        lease = _lease(line)
        if lease is None:
            continue
        known = found.get(lease.mac)
        if known is None or _end(known) <= _end(lease):
            found[lease.mac] = lease
    return found


def addresses(content: bytes) -> dict[str, list[Lease]]:
    """All leases by MAC: firmware and system of one card may each hold one."""
    found: dict[str, list[Lease]] = {}
    for line in content.split(b"\n"):
        lease = _lease(line)
        if lease is not None:
            found.setdefault(lease.mac, []).append(lease)
    return found


def holds(lease: Lease, ip: str, now: float) -> bool:
    """Whether this lease gives the address at that time."""
    return lease.ip == ip and _end(lease) > now


def _end(lease: Lease) -> float:
    return lease.expires or float("inf")


def _lease(line: bytes) -> Lease | None:
    fields = line.split()
    # expiry, MAC, address, hostname or *, client id or *
    if len(fields) < 5 or not re.fullmatch(rb"[0-9]{1,18}", fields[0]):
        return None
    hardware = _MAC.fullmatch(fields[1].lower())
    if hardware is None or hardware["type"] not in (None, b"01"):
        return None
    try:
        ip = str(ipaddress.IPv4Address(fields[2].decode("ascii")))
    except ValueError:
        return None
    name = None if fields[3] == b"*" else fields[3].decode("utf-8", "replace")
    mac = from_octets(bytes.fromhex(hardware["mac"].decode().replace(":", "")))
    return Lease(mac, ip, int(fields[0]), name)
