"""The fields of a hosts line as dnsmasq 2.90 tells them apart: addresses, lease times, names."""

from __future__ import annotations

import re
import socket
import unicodedata
from collections.abc import Iterator
from typing import NamedTuple

from ipxeready.storage.mac import from_octets

#: Inside quotes dnsmasq hides these characters (each as the control code of its position), so that a
#: quoted digit is no digit, a quoted comma no separator; names get them back.
META = b"\x00123456 \b\t\n78\r90abcdefABCDE\x1bF:,."

_MAX_LABEL = 63
_ETHERNET = 1
_IDN_DOTS = re.compile("[.\u3002]")
#: Soft hyphen, zero width space, word joiner, variation selectors, BOM.
_INVISIBLE = re.compile("[\u00ad\u200b\u2060\ufe00-\ufe0f\ufeff]")


class Hardware(NamedTuple):
    """An address as dnsmasq understands it; a wildcard octet is None."""

    octets: tuple[int | None, ...]
    type: int

    @property
    def mac(self) -> str | None:
        """The MAC of an Ethernet card that this matches exactly, or None."""
        known = [octet for octet in self.octets if octet is not None]
        if len(known) != 6 or len(self.octets) != 6 or self.type not in (0, _ETHERNET):
            return None
        return from_octets(bytes(known))


def hardware(text: bytes, limit: int = 16) -> Hardware | None:
    """A field with a colon as a hardware address, or None if dnsmasq calls it bad hex.

    Octets may be short or run together, separated by colon, hyphen or space; a first part that ends in
    a hyphen is the hardware type. dnsmasq looks no further than `limit` octets.
    """
    octets: list[int | None] = []
    kind = 0
    typed = False
    for part, separator in _parts(text):
        if len(octets) >= limit:
            break
        if not re.fullmatch(rb"[0-9A-Fa-f*]*", part):
            return None
        if not part:
            continue
        if separator == b"-" and not octets and not typed:
            kind = int(part, 16) if b"*" not in part else 0
            typed = True
        elif part == b"*":
            octets.append(None)
        elif b"*" in part:
            return None
        else:
            octets += [int(part[i : i + 2], 16) for i in range(0, len(part), 2)]
    return Hardware(tuple(octets[:limit]), kind)


def show(text: bytes) -> str:
    """`text` for a message: decoded where it can be, control characters escaped, at most 60 characters."""
    plain = unhide(text).decode("utf-8", "backslashreplace")
    piece = "".join(c if c.isprintable() else ascii(c)[1:-1] for c in plain)
    return piece if len(piece) <= 60 else f"{piece[:57]}..."


def unhide(text: bytes) -> bytes:
    """`text` with the characters back that quotes had hidden."""
    return bytes(META[c] if c < len(META) else c for c in text)


def is_name(text: bytes) -> bool:
    """Whether dnsmasq takes this field for a hostname (legal or not)."""
    return (
        b":" not in text
        and ipv4(text) is None
        and time_or_blank(text) is None
        and text not in (b"infinite", b"ignore")
    )


def offered_name(text: bytes) -> str | None:
    """The hostname that dnsmasq makes of a name field, "" for an empty first label, None if illegal."""
    name = unhide(text)
    if name.endswith(b"."):
        name = name[:-1]
    elif not any(0x20 < c < 0x80 and c != 0x2E for c in name):
        return None
    if any(len(label) > _MAX_LABEL for label in name.split(b".")) or not name:
        return None
    if any(c < 0x20 or c == 0x7F for c in name):
        return None
    if not name.isascii() or name != name.lower():
        # Only such names go through the library for international names, with its own rules.
        try:
            labels = _IDN_DOTS.split(_mapped(name.decode()))
        except UnicodeError:
            return None
        encoded = [_idn_label(label) for label in labels]
        name = b".".join(label for label in encoded if label is not None)
        if None in encoded:
            return None
    if not re.match(rb"(?:[A-Za-z0-9][A-Za-z0-9_-]*)?(?:\.|\Z)", name):
        return None
    return name.split(b".")[0].decode()


def _mapped(text: str) -> str:
    """`text` as UTS 46 maps it before encoding: lower case, compatible forms, nothing invisible."""
    return unicodedata.normalize("NFKC", _INVISIBLE.sub("", text).lower())


def _idn_label(label: str) -> bytes | None:
    """One label in ASCII, or None where the library (libidn2, non-transitional) refuses it."""
    if label.startswith("-") or label.endswith("-"):
        return None
    if label[2:4] == "--" and not label.startswith("xn--"):
        return None
    if label.isascii():
        return label.encode()
    kinds = [unicodedata.category(c)[0] for c in label]
    if kinds[0] == "M" or any(
        kind not in "LM" and not c.isdecimal() and c not in "-_"
        for kind, c in zip(kinds, label, strict=True)
    ):
        return None
    directions = [unicodedata.bidirectional(c) for c in label]
    if {"R", "AL"} & set(directions) and (
        directions[0] not in ("R", "AL") or "L" in directions
    ):
        return None
    encoded = b"xn--" + label.encode("punycode")
    return encoded if len(encoded) <= _MAX_LABEL else None


def _parts(text: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Pieces of a hardware address, each with the separator behind it."""
    pieces = re.split(rb"([:\- ])", text)
    for i in range(0, len(pieces), 2):
        yield pieces[i], pieces[i + 1] if i + 1 < len(pieces) else b""


def ipv4(text: bytes) -> str | None:
    """The field as an IPv4 address, or None (dnsmasq then takes it for a name)."""
    if b"." not in text:
        return None
    try:
        packed = socket.inet_pton(socket.AF_INET, text.decode("ascii"))
    except (OSError, ValueError):
        return None
    return socket.inet_ntop(socket.AF_INET, packed)


def ipv6_fault(text: bytes) -> bool:
    """Whether a field in brackets is no IPv6 address."""
    address, _, prefix = text[1:-1].partition(b"/")
    try:
        socket.inet_pton(socket.AF_INET6, address.strip(b" ").decode("ascii"))
    except (OSError, ValueError):
        return True
    return bool(prefix) and not (prefix.isdigit() and int(prefix) <= 128)


def time_or_blank(text: bytes) -> str | None:
    """ "time" for what dnsmasq reads as a lease time, "blank" for nothing at all, else None."""
    core = text[:-1] if len(text) > 1 and text[-1:] in b"wWdDhHmMsS" else text
    if core.strip(b"0123456789 "):
        return None
    return "time" if core.strip(b" ") else "blank"
