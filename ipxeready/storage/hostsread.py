"""dhcp-hosts.conf read as a whole: what dnsmasq 2.90 makes of each line among its neighbours, and conflicts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from ipxeready.said import said
from ipxeready.storage.hostsline import ParsedLine, parse_line


class HostsLine(NamedTuple):
    """One line and what dnsmasq makes of it among its neighbours."""

    number: int
    raw: bytes
    #: blank, comment, entry, invalid (dropped), refused (`ignore`), unmanaged (no MAC of one machine)
    kind: str
    macs: tuple[str, ...]
    hostname: str | None
    ip: str | None
    tags: tuple[str, ...]
    #: For the operator: why a line does not do what it looks like, or what it risks.
    problem: str | None


@dataclass(frozen=True)
class Conflict:
    """Lines that contradict each other; `kind` is hostname-twice, mac-twice or ip-twice."""

    kind: str
    value: str
    lines: tuple[int, ...]
    message: str


def split(content: bytes) -> list[bytes]:
    """Lines with their ends; only LF ends a line, as for dnsmasq."""
    *whole, last = content.split(b"\n")
    lines = [line + b"\n" for line in whole]
    return [*lines, last] if last else lines


def parse(content: bytes) -> list[HostsLine]:
    """Every line of `content` as dnsmasq reads it; any bytes will do."""
    raws = split(content)
    parsed = [parse_line(raw) for raw in raws]
    lines = [
        HostsLine(number, raw, *line[:6])
        for number, (raw, line) in enumerate(zip(raws, parsed, strict=True), 1)
    ]
    with_ip = ((at, line) for at, line in enumerate(parsed) if line.ips)
    for at, (ip, first) in same_ip(with_ip).items():
        lines[at] = dropped(lines[at], ip, first + 1)
    return lines


def same_ip(lines: Iterable[tuple[int, ParsedLine]]) -> dict[int, tuple[str, int]]:
    """Position -> (address, position of the first line with it) of lines that dnsmasq drops for it."""
    seen: dict[str, int] = {}
    again: dict[int, tuple[str, int]] = {}
    for at, line in lines:
        ip = next((ip for ip in line.ips if ip in seen), None)
        if ip is not None:
            again[at] = (ip, seen[ip])
        elif line.ip:
            seen[line.ip] = at
    return again


def dropped(line: HostsLine, ip: str, first: int) -> HostsLine:
    """`line` as it is when line number `first` has its address already: void."""
    return line._replace(
        kind="invalid",
        macs=(),
        hostname=None,
        problem=f"the address {ip} is on line {first} already; dnsmasq drops this line",
    )


def conflicts(lines: Iterable[HostsLine]) -> list[Conflict]:
    """What contradicts what. Several MACs on one line are one machine with several cards."""
    by_name: dict[str, list[HostsLine]] = defaultdict(list)
    by_mac: dict[str, list[HostsLine]] = defaultdict(list)
    by_ip: dict[str, list[HostsLine]] = defaultdict(list)
    for line in lines:
        if line.kind in ("entry", "refused"):
            for mac in line.macs:
                by_mac[mac].append(line)
            if line.hostname and line.kind == "entry":
                by_name[line.hostname].append(line)
        if line.ip:
            by_ip[line.ip].append(line)
    return [
        *_hostnames(by_name),
        *(
            _conflict(
                "mac-twice",
                mac,
                found,
                said(
                    "the last one counts ({hostname}). Remove the others",
                    hostname=found[-1].hostname or said("no name"),
                ),
            )
            for mac, found in by_mac.items()
            if len(found) > 1
        ),
        *(
            _conflict(
                "ip-twice",
                ip,
                found,
                said(
                    "dnsmasq keeps line {line} and drops the others whole. Give each its own "
                    "address",
                    line=found[0].number,
                ),
            )
            for ip, found in by_ip.items()
            if len(found) > 1
        ),
    ]


def _hostnames(by_name: dict[str, list[HostsLine]]) -> list[Conflict]:
    return [
        _conflict(
            "hostname-twice",
            name,
            found,
            said(
                "several machines get this name and would write one disk. Leave it to one of "
                "them"
            ),
        )
        for name, found in by_name.items()
        # Twice the same machine is no danger; that the MAC is there twice is said elsewhere.
        if any(set(line.macs) != set(found[0].macs) for line in found)
    ]


def _conflict(kind: str, value: str, lines: list[HostsLine], what: str) -> Conflict:
    numbers = tuple(line.number for line in lines)
    listed = ", ".join(map(str, numbers))
    words = said(
        "{value} is on lines {lines}: {what}.", value=value, lines=listed, what=what
    )
    return Conflict(kind, value, numbers, words)
