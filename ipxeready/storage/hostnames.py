"""Hostnames: DNS labels that dnsmasq hands out as written and that an iSCSI name can carry."""

from __future__ import annotations

import re

from ipxeready.errors import Invalid
from ipxeready.said import said
from ipxeready.storage.mac import shown

MAX_HOSTNAME = 63
#: NetBIOS: what Windows makes of a longer name is another name.
MAX_WINDOWS = 15
#: dnsmasq's words; as names they would be obeyed.
KEYWORDS = frozenset({"ignore", "infinite"})

_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")
_LEASE_TIME = re.compile(r"[0-9]+[wdhmsWDHMS]?")


def is_lease_time(text: str) -> bool:
    """Whether dnsmasq reads `text` in a hosts line as a lease time (`101`, `12h`)."""
    return _LEASE_TIME.fullmatch(text) is not None


def check_hostname(text: str) -> str:
    """The hostname lower-cased; Invalid (field `hostname`) with the rule that it breaks."""
    if bad := _fault(text):
        code, reason = bad
        raise Invalid(
            said("hostname: {name} {reason}", name=shown(text), reason=reason),
            code=code,
            field="hostname",
        )
    return text.lower()


def hostname_fault(text: str) -> str | None:
    """The rule that `text` breaks as a hostname, in words, or None."""
    bad = _fault(text)
    return bad[1] if bad else None


def warn_windows(hostname: str) -> str | None:
    """A warning for a name that Windows shortens, or None."""
    if len(hostname) <= MAX_WINDOWS:
        return None
    return said(
        "{hostname} has {count} characters; Windows cuts computer names at {most}, so it "
        "will call itself {name}",
        hostname=hostname,
        count=len(hostname),
        most=MAX_WINDOWS,
        name=hostname[:MAX_WINDOWS],
    )


def _fault(text: object) -> tuple[str, str] | None:
    if not isinstance(text, str):
        return "hostname.malformed", said("is not text. Put quotes around it.")
    if not text:
        return "hostname.empty", said(
            "is empty. Give 1 to 63 letters, digits and hyphens."
        )
    if len(text) > MAX_HOSTNAME:
        return "hostname.long", said(
            "has {count} characters; at most {most} are allowed, and dnsmasq drops the whole "
            "line of a longer one. Shorten it.",
            count=len(text),
            most=MAX_HOSTNAME,
        )
    if not text.isascii():
        return "hostname.characters", said(
            "has characters that are not ASCII. Use letters a-z, digits and hyphens."
        )
    if "." in text:
        return "hostname.dot", said(
            "has a dot: the machine would only get the part before it. "
            "Give the name without its domain."
        )
    if "_" in text:
        return "hostname.underscore", said(
            "has an underscore, which iSCSI names cannot carry. Use a hyphen."
        )
    lowered = text.lower()
    if not _LABEL.fullmatch(lowered):
        if lowered.strip("-") != lowered:
            return "hostname.hyphen", said("begins or ends with a hyphen. Remove it.")
        return "hostname.characters", said(
            "has characters that are not allowed. Use letters a-z, digits and hyphens."
        )
    if is_lease_time(text):
        return "hostname.lease_time", said(
            "is a lease time to dnsmasq, so the machine would get no name. Put letters before "
            "it, for example pc{name}.",
            name=lowered,
        )
    if lowered in KEYWORDS:
        return "hostname.keyword", said(
            "is a word with a meaning to dnsmasq. Choose another name."
        )
    return None
