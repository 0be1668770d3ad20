"""MAC addresses: any usual spelling in, one spelling out, and the ones that no card may own refused."""

from __future__ import annotations

import re

from ipxeready.errors import Invalid
from ipxeready.said import said

#: White space, and the `+` that a form-encoded space becomes when nobody decodes it.
_AROUND = " \t\r\n\v\f+"
_SHAPES = (
    re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2})+"),
    re.compile(r"[0-9a-f]{2}(?:-[0-9a-f]{2})+"),
    re.compile(r"[0-9a-f]{4}(?:\.[0-9a-f]{4})+"),
    re.compile(r"(?:[0-9a-f]{2})+"),
)
_CANONICAL = re.compile(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}")
_EXAMPLE = "00:0c:29:b9:8b:2d"
_NO_MAC = said("is not a MAC address. Write it as {example}.", example=_EXAMPLE)


def shown(text: object, limit: int = 60) -> str:
    """`text` as one printable piece of at most about `limit` characters, for error messages."""
    piece = ascii(text[: limit + 1] if isinstance(text, str) else text)
    return piece if len(piece) <= limit + 2 else f"{piece[:limit]}...'"


def from_octets(octets: bytes) -> str:
    """Lower-case colon form of six octets."""
    return octets.hex(":")


def fault(mac: str) -> tuple[str, str] | None:
    """Code and reason why no card may own the (normalised) `mac`, or None."""
    if mac == "00:00:00:00:00:00":
        return "mac.zero", said("is all zero: the network card reports no address")
    if mac == "ff:ff:ff:ff:ff:ff":
        return "mac.broadcast", said("is the broadcast address, not that of one card")
    if int(mac[:2], 16) & 1:
        return "mac.multicast", said(
            "is a multicast (group) address: the low bit of its first byte is set"
        )
    return None


def normalize_mac(text: str) -> str:
    """Lower-case colon form of an address in any of the usual spellings.

    Raises Invalid (field `mac`) with a code of its own for each reason. Longer addresses are never
    cut to six bytes, as two machines would then share one.
    """
    if not isinstance(text, str) or len(text) > 200:
        raise _invalid("mac.malformed", text, _NO_MAC)
    stripped = text.strip(_AROUND)
    lowered = stripped.lower() if stripped.isascii() else ""
    if not _CANONICAL.fullmatch(lowered):
        if not any(shape.fullmatch(lowered) for shape in _SHAPES):
            raise _invalid("mac.malformed", text, _NO_MAC)
        octets = bytes.fromhex(re.sub(r"[.:-]", "", lowered))
        if len(octets) > 6:
            raise _invalid(
                "mac.length",
                text,
                said(
                    "has {count} bytes; only 6-byte addresses can be used. Give the address of "
                    "an Ethernet card.",
                    count=len(octets),
                ),
            )
        if len(octets) < 6:
            raise _invalid(
                "mac.malformed",
                text,
                said(
                    "has {count} bytes; a MAC address has 6. Write it as {example}.",
                    count=len(octets),
                    example=_EXAMPLE,
                ),
            )
        lowered = from_octets(octets)
    if bad := fault(lowered):
        code, reason = bad
        raise _invalid(
            code, text, said("{reason}. Give the card's own address.", reason=reason)
        )
    return lowered


def _invalid(code: str, text: object, reason: str) -> Invalid:
    return Invalid(
        said("mac: {mac} {reason}", mac=shown(text), reason=reason),
        code=code,
        field="mac",
    )
