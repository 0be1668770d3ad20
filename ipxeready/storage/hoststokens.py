"""Changes inside one hosts line: a name, a MAC, a MAC less; order, spaces and comment stay."""

from __future__ import annotations

from ipxeready.storage.hostsfields import Hardware, hardware, is_name
from ipxeready.storage.hostsline import Token, tokens


def with_name(raw: bytes, hostname: str) -> bytes:
    """The line with its effective name replaced, or set behind the last MAC where it has none."""
    fields = _fields(raw)
    names = [field for field in fields if is_name(field.text)]
    if names:
        return _replace(raw, names[-1], hostname.encode())
    end = max(field.end for field in fields if _mac(field))
    return raw[:end] + b"," + hostname.encode() + raw[end:]


def with_mac(raw: bytes, old: str, new: str) -> bytes:
    """The line with the MAC `new` instead of `old`, once."""
    for field in reversed(_fields(raw)):
        if _mac(field) == new:
            raw = _remove(raw, field)
    first, *more = [field for field in _fields(raw) if _mac(field) == old]
    for field in reversed(more):
        raw = _remove(raw, field)
    return _replace(raw, first, new.encode())


def without(raw: bytes, mac: str) -> bytes | None:
    """The line without `mac`, or None when no other machine is left on it."""
    if not has_others(raw, mac):
        return None
    for field in reversed(_fields(raw)):
        if _mac(field) == mac:
            raw = _remove(raw, field)
    return raw


def has_others(raw: bytes, mac: str) -> bool:
    """Whether the line is also about another MAC or a wildcard."""
    found = [_hardware(field) for field in _fields(raw)]
    return any(
        address.mac != mac if address.mac else None in address.octets
        for address in found
        if address
    )


def _fields(raw: bytes) -> list[Token]:
    return tokens(raw) or []


def _hardware(field: Token) -> Hardware | None:
    text = field.text
    if b":" not in text or text[:3].lower() == b"id:":
        return None
    return hardware(text)


def _mac(field: Token) -> str | None:
    address = _hardware(field)
    return address.mac if address else None


def _replace(raw: bytes, field: Token, text: bytes) -> bytes:
    return raw[: field.start] + text + raw[field.end :]


def _remove(raw: bytes, field: Token) -> bytes:
    """`raw` without one of its fields and one comma beside it."""
    fields = _fields(raw)
    index = fields.index(field)
    if index + 1 < len(fields):
        return raw[: field.start] + raw[fields[index + 1].start :]
    if index:
        return raw[: fields[index - 1].end] + raw[field.end :]
    return raw[: field.start] + raw[field.end :]
