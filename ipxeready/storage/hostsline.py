"""One line of dhcp-hosts.conf, read as dnsmasq 2.90 reads it: quotes, comments, lease times, addresses, names."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

from ipxeready.errors import Invalid
from ipxeready.said import joined, said
from ipxeready.storage.hostnames import hostname_fault
from ipxeready.storage.hostsfields import (
    META,
    hardware,
    ipv4,
    ipv6_fault,
    offered_name,
    show,
    time_or_blank,
    unhide,
)
from ipxeready.storage.mac import fault, normalize_mac

#: dnsmasq reads at most so many bytes at once; what follows is a line of its own to it.
CHUNK = 1024
BOM = b"\xef\xbb\xbf"

_SPACES = b" \t\r\n\v\f"
_HIDE = {char: code for code, char in enumerate(META)}
_ESCAPES = {ord("t"): 9, ord("n"): 10, ord("b"): 8, ord("r"): 13, ord("e"): 27}
#: What we write ourselves, and nothing that needs a second look.
_PLAIN = re.compile(
    rb"(?!00:00:00:00:00:00)([0-9a-f][02468ace](?::[0-9a-f]{2}){5}),"
    rb"(?!(?:[0-9]+[wdhms]?|ignore|infinite)\r?\n?\Z)"
    rb"([a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)\r?\n?\Z"
)
_LIKE_IP = re.compile(rb"[0-9]+(?:\.[0-9]+)+\Z")


class Token(NamedTuple):
    """One field between commas and where it lies in the raw line."""

    start: int
    end: int
    text: bytes


class ParsedLine(NamedTuple):
    """What one line means on its own, without its neighbours."""

    kind: str
    macs: tuple[str, ...] = ()
    hostname: str | None = None
    ip: str | None = None
    tags: tuple[str, ...] = ()
    problem: str | None = None
    #: All addresses that dnsmasq checks against earlier lines; the last is `ip`.
    ips: tuple[str, ...] = ()


@lru_cache(maxsize=65536)
def parse_line(raw: bytes) -> ParsedLine:
    """What dnsmasq takes from `raw` (with its line end); pure, never raises, cached by the text."""
    if plain := _PLAIN.match(raw):
        return ParsedLine("entry", (plain[1].decode(),), plain[2].decode())
    if len(raw) <= CHUNK:
        return _parse(raw)
    first, *rest = (_parse(raw[at : at + CHUNK]) for at in range(0, len(raw), CHUNK))
    live = [part for part in rest if part.kind in ("entry", "refused", "unmanaged")]
    if not live:
        return first
    return ParsedLine(
        "unmanaged",
        problem=said(
            "longer than {count} bytes: dnsmasq reads the rest as lines of its own. Shorten "
            "the line.",
            count=CHUNK,
        ),
    )


def tokens(raw: bytes) -> list[Token] | None:
    """The fields of `raw`; empty for a comment or blank line, None for a quote that is not closed."""
    unquoted = _unquote(raw[:CHUNK])
    if unquoted is None:
        return None
    text, at, stop = unquoted
    if not text.strip(b" "):
        return []
    found: list[Token] = []
    begin = 0
    for end in [*(i for i, char in enumerate(text) if char == 0x2C), len(text)]:
        # From comma to comma, as the quotes around a field belong to it.
        start = at[begin - 1] + 1 if begin else 0
        finish = at[end] if end < len(at) else stop
        while start < finish and raw[start] in _SPACES:
            start += 1
        while finish > start and raw[finish - 1] in _SPACES:
            finish -= 1
        found.append(Token(start, finish, bytes(text[begin:end]).strip(b" ")))
        begin = end + 1
    return found


def _unquote(raw: bytes) -> tuple[bytearray, list[int], int] | None:
    """The text that dnsmasq works on, the raw offset of each of its bytes, and where reading stopped."""
    text = bytearray()
    at: list[int] = []
    i = 0
    white = True
    end = raw.find(b"\0")
    end = len(raw) if end < 0 else end
    while i < end:
        if raw[i] == 0x22:
            i += 1
            while i < end and raw[i] != 0x22:
                if raw[i] == 0x5C and i + 1 < end and raw[i + 1] in b'"tnebr\\':
                    i += 1
                    char = _ESCAPES.get(raw[i], raw[i])
                else:
                    char = raw[i]
                text.append(_HIDE.get(char, char))
                at.append(i)
                i += 1
            if i >= end:
                return None
            i += 1
            if i >= end:
                break
        char = raw[i]
        if char in _SPACES:
            char, white = 0x20, True
        elif white and char == 0x23:
            break
        else:
            white = False
        text.append(char)
        at.append(i)
        i += 1
    return text, at, min(i, end)


def _parse(raw: bytes) -> ParsedLine:
    fields = tokens(raw)
    if fields is None:
        return _invalid(raw, said("a quote is not closed"))
    if not fields:
        return ParsedLine("comment" if b"#" in raw else "blank")
    macs: list[str] = []
    names: list[tuple[bytes, str]] = []
    times: list[bytes] = []
    ips: list[str] = []
    tags: list[str] = []
    notes: list[str] = []
    others: list[str] = []
    strange: list[str] = []
    refused = only_ipv6 = False
    for _, _, text in fields:
        if b":" in text:
            if text[:3].lower() == b"id:":
                if text[3:4] == b"*":
                    continue
                if b":" in text[3:] and hardware(text[3:], CHUNK) is None:
                    return _invalid(
                        raw, said("`{text}` is not a client id", text=show(text))
                    )
                others.append(said("by a client id"))
            elif text[:4] in (b"set:", b"net:"):
                tags.append(show(text[4:]))
            elif text[:4] == b"tag:":
                notes.append(
                    said("only for machines with the tag `{tag}`", tag=show(text[4:]))
                )
            elif text[:1] == b"[" and text[-1:] == b"]":
                if ipv6_fault(text):
                    return _invalid(
                        raw, said("`{text}` is not an IPv6 address", text=show(text))
                    )
                only_ipv6 = True
            elif (address := hardware(text)) is None:
                return _invalid(
                    raw, said("`{text}` is not a MAC address", text=show(text))
                )
            elif mac := address.mac:
                if mac not in macs:
                    macs.append(mac)
            elif None in address.octets:
                others.append(said("by the wildcard `{text}`", text=show(text)))
            else:
                strange.append(
                    said(
                        "`{text}` matches no machine: only 6-byte addresses of Ethernet cards "
                        "count",
                        text=show(text),
                    )
                )
        elif ip := ipv4(text):
            ips.append(ip)
        elif what := time_or_blank(text):
            if what == "time":
                times.append(text)
        elif text == b"infinite":
            times.append(text)
        elif text == b"ignore":
            refused = True
        else:
            name = offered_name(text)
            if name is None:
                return _invalid(
                    raw, said("`{text}` is not a hostname", text=show(text))
                )
            names.append((text, name))
    hostname = names[-1][1] or None if names else None
    if only_ipv6 and not ips and macs:
        macs = []
        strange.append(said("has only an IPv6 address, so it counts for DHCPv6 only"))
    if refused:
        notes.insert(0, said("DHCP refused: dnsmasq ignores this machine, by `ignore`"))
    elif not hostname and macs:
        notes.insert(0, _no_hostname(names, times))
    elif not macs and not strange:
        notes.insert(0, _no_mac([*(text for text, _ in names), *times], others))
    notes += strange
    notes += [joined(" ", mac, bad[1]) for mac in macs if (bad := fault(mac))]
    notes += _name_notes(names, hostname)
    if tags:
        notes.append(
            said(
                "sets the tag `{tag}`: dnsmasq 2.90 aborts at a reload after this machine has "
                "asked for an address. Set the tag in dnsmasq.conf instead",
                tag=tags[0],
            )
        )
    kind = "unmanaged" if not macs else "refused" if refused else "entry"
    return ParsedLine(
        kind,
        tuple(macs),
        hostname,
        ips[-1] if ips else None,
        tuple(tags),
        joined("; ", *notes) or None,
        tuple(ips),
    )


def _no_hostname(names: list[tuple[bytes, str]], times: list[bytes]) -> str:
    if names:
        return said(
            "no hostname: `{name}` has nothing before its first dot",
            name=show(names[-1][0]),
        )
    if times:
        listed = [f"`{show(text)}`" for text in times]
        if len(listed) == 1:
            return said("no hostname: {text} is a lease time", text=listed[0])
        return said("no hostname: {texts} are lease times", texts=" and ".join(listed))
    return said("no hostname on this line")


def _no_mac(candidates: list[bytes], others: list[str]) -> str:
    for text in candidates:
        try:
            mac = normalize_mac(unhide(text).decode("ascii"))
        except (Invalid, UnicodeError):
            continue
        return said(
            "`{text}` is no MAC address to dnsmasq. Write {mac}",
            text=show(text),
            mac=mac,
        )
    if others:
        return said("not one machine's line: it matches {what}", what=others[0])
    return said("no MAC address on this line")


def _name_notes(names: list[tuple[bytes, str]], hostname: str | None) -> list[str]:
    notes: list[str] = [
        said("`{text}` is no IP address", text=show(text))
        for text, _ in names
        if _LIKE_IP.match(text)
    ]
    if len(names) > len(notes) + 1:
        notes.append(
            said("several names: dnsmasq takes the last, `{name}`", name=hostname or "")
        )
    if hostname:
        if not (last := names[-1][0]).isascii():
            notes.append(
                said(
                    "`{text}` is handed out as `{name}`, or not at all where dnsmasq runs "
                    "without a UTF-8 locale",
                    text=show(last),
                    name=hostname,
                )
            )
        if rule := hostname_fault(hostname):
            notes.append(f"`{hostname}` {rule.rstrip('.')}")
    return notes


def _invalid(raw: bytes, reason: str) -> ParsedLine:
    if raw.startswith(BOM):
        reason = said("a byte order mark (BOM) stands before it")
    elif b"\r" in raw.rstrip(b"\r\n"):
        reason = said("line ends are a bare CR, so this is one long line to dnsmasq")
    elif raw.lstrip().startswith(b"dhcp-host="):
        reason = said("`dhcp-host=` does not belong into this file")
    return ParsedLine(
        "invalid", problem=said("{reason}; dnsmasq drops this line", reason=reason)
    )
