"""Addresses, ports and plain calls: what `make run` needs to know of the network."""

from __future__ import annotations

import fcntl
import json
import socket
import struct
import urllib.request
from collections.abc import Mapping
from typing import Any, Final

from ipxeready.conf import Endpoint
from ipxeready.startup import StartError

#: Addresses for documentation: asking which way leads there sends nothing.
_ANYWHERE: Final = ("192.0.2.1", 9)
_SIOCGIFADDR: Final = 0x8915


def default_route_address() -> str:
    """Our address on the default route, 127.0.0.1 where there is none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(_ANYWHERE)
        except OSError:
            return "127.0.0.1"
        return str(probe.getsockname()[0])


def interface_address(name: str) -> str:
    """The IPv4 address of a network card; StartError when there is no such card or no address on it."""
    if name not in [card for _, card in socket.if_nameindex()]:
        cards = ", ".join(card for _, card in socket.if_nameindex())
        raise StartError(
            f"IFACE={name}: there is no such network card; here are {cards}"
        )
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        request = struct.pack("256s", name.encode())
        try:
            answer = fcntl.ioctl(probe.fileno(), _SIOCGIFADDR, request)
        except OSError:
            raise StartError(
                f"IFACE={name}: it has no IPv4 address; give it one inside the network of RANGE, "
                f"ip addr add 192.0.2.1/24 dev {name} say"
            ) from None
    return socket.inet_ntoa(answer[20:24])


def reachable(bind: Endpoint) -> str:
    """A host at which we reach what listens on `bind`."""
    if bind.host in ("0.0.0.0", "::"):  # noqa: S104
        return "127.0.0.1"
    return f"[{bind.host}]" if ":" in bind.host else bind.host


def check_free(what: str, bind: Endpoint, variable: str) -> None:
    """StartError when somebody listens on `bind` already."""
    family = socket.AF_INET6 if ":" in bind.host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(bind)
            probe.listen(1)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise StartError(
                f"{what} cannot listen on {bind}: {reason}; stop what is there, "
                f"or set {variable} to another address:port"
            ) from None


def fetch(url: str, method: str, headers: Mapping[str, str], data: bytes | None) -> Any:
    """A JSON call that no proxy variable can lead astray."""
    request = urllib.request.Request(url, data, dict(headers), method=method)  # noqa: S310
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=30) as answer:
        return json.load(answer)


def answers(url: str) -> bool:
    """Whether /healthz says ok."""
    try:
        return bool(fetch(f"{url}/healthz", "GET", {}, None) == {"status": "ok"})
    except (OSError, ValueError):
        return False
