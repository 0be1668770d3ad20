"""Pure checks of a node's values; each raises Invalid with field, value and rule."""

from __future__ import annotations

import ipaddress
import re
from typing import Any
from urllib.parse import SplitResult, urlsplit

from agents.protocol.access import ACCESS
from ipxeready.errors import Invalid
from ipxeready.given import one_of, shown
from ipxeready.said import said

_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
# What may stand in an iPXE script as it is: a DNS name (container names have
# underscores) or an address.
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?")
_PATH = re.compile(r"[A-Za-z0-9/._~-]*")
_TOKEN = re.compile(r"[\x21-\x7e]{0,4096}")
_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:+-]{0,62}")
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")

MAX_TAGS = 32


def check_agent_id(text: Any, field: str = "id") -> str:
    """A node's id, lower-cased."""
    value = str(text).strip().lower()
    if not str(text).isascii() or not _ID.fullmatch(value):
        raise Invalid(
            said(
                "{text} must be 1 to 63 letters, digits, dots, hyphens or underscores, "
                "beginning with a letter or digit",
                text=shown(text),
            ),
            field=field,
        )
    return value


def check_base_url(text: Any, field: str = "base_url") -> str:
    """`http(s)://host[:port][/path]` without anything that could hide another target or a secret."""
    value = str(text).strip().rstrip("/")
    rule = said(
        "{text} must be http://host:port or https://host:port of the node's agent, without "
        "user, password, query or fragment",
        text=shown(text),
    )
    if any(char.isspace() or not char.isprintable() for char in value):
        raise Invalid(rule, field=field)
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError:
        raise Invalid(rule, field=field) from None
    wrong = (
        parts.scheme not in ("http", "https")
        or "@" in parts.netloc
        or any(mark in value for mark in "?#\\")
        or parts.port == 0
        or not _PATH.fullmatch(parts.path)
        or ".." in parts.path.split("/")
        or len(value) > 1024
        or not _is_host(host_of(parts))
    )
    if wrong:
        raise Invalid(rule, field=field)
    return f"{parts.scheme}://{parts.netloc}{parts.path}"


def host_of(parts: SplitResult) -> str:
    """The host of a URL, an IPv6 address in brackets; empty when there is none."""
    host = parts.hostname or ""
    return f"[{host}]" if ":" in host else host


def url_host(base_url: str) -> str:
    """The host of a checked base_url as it goes into a SAN path."""
    return host_of(urlsplit(base_url))


def same_place(one: str, other: str) -> bool:
    """Whether two base_urls have the same scheme, host and port."""
    return _place(one) == _place(other)


def _place(url: str) -> tuple[str, str, int]:
    parts = urlsplit(url)
    return (
        parts.scheme,
        (parts.hostname or "").lower(),
        parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0),
    )


def check_iscsi_server(text: Any, field: str = "iscsi_server") -> str:
    """A host name or address as machines reach the node's targets; empty means the host of base_url."""
    value = str(text).strip()
    try:
        if value and ipaddress.ip_address(value).version == 6:
            value = f"[{value}]"
    except ValueError:
        pass
    if value and not _is_host(value):
        raise Invalid(
            said(
                "{text} must be a host name or an IP address without scheme, port and path",
                text=shown(text),
            ),
            field=field,
        )
    return value


def _is_host(text: str) -> bool:
    if text.startswith("[") and text.endswith("]"):
        try:
            ipaddress.IPv6Address(text[1:-1])
        except ValueError:
            return False
        return "%" not in text
    if re.fullmatch(r"[0-9.]+", text):
        try:
            ipaddress.IPv4Address(text)
        except ValueError:
            return False
    return _NAME.fullmatch(text) is not None


def check_token(text: Any, field: str = "token") -> str:
    """A bearer token: printable ASCII without blanks, as it travels in a header. Never repeats it."""
    value = str(text).strip()
    if not _TOKEN.fullmatch(value):
        raise Invalid(
            said(
                "must be at most 4096 printable ASCII characters without blanks, as it "
                "travels in a header"
            ),
            field=field,
        )
    return value


def check_sent_token(text: Any, field: str = "token") -> str:
    """A token that comes over the API: `${` would read a variable of this server's environment."""
    value = check_token(text, field)
    if "${" in value:
        raise Invalid(
            said(
                "must not contain ${: a variable of the environment can only be named by "
                "hand, in config/agents.yml"
            ),
            field=field,
        )
    return value


def check_access(value: Any, field: str = "access") -> str:
    """Who may log in to targets: off, acl or chap, lower-cased."""
    return one_of(value, ACCESS, field)


def variable_of(token: str) -> str | None:
    """NAME when a token of the file is `${NAME}`, None when it is a token itself."""
    found = _VARIABLE.fullmatch(token)
    return found[1] if found else None


def check_tags(value: Any, field: str = "tags") -> list[str]:
    """A list of words, each once."""
    if not isinstance(value, list | tuple):
        raise Invalid(said("must be a list of words"), field=field)
    tags: list[str] = []
    for entry in value:
        tag = str(entry).strip()
        if not _TAG.fullmatch(tag):
            raise Invalid(
                said(
                    "{text} must be 1 to 63 letters, digits, dots, colons, hyphens, plus signs "
                    "or underscores, beginning with a letter or digit",
                    text=shown(entry),
                ),
                field=field,
            )
        if tag not in tags:
            tags.append(tag)
    if len(tags) > MAX_TAGS:
        raise Invalid(
            said("must have at most {most} words", most=MAX_TAGS), field=field
        )
    return tags
