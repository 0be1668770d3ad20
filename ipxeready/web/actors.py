"""From a request to the actor that services take."""

from __future__ import annotations

import ipaddress
from typing import Any

from ipxeready.actors import ROLES, Actor
from ipxeready.errors import Unauthenticated
from ipxeready.said import said


def client_address(request: Any) -> str | None:
    """Where the request came from; only a proxy on this machine may speak for another address."""
    remote = request.META.get("REMOTE_ADDR") or ""
    try:
        local = ipaddress.ip_address(remote).is_loopback
    except ValueError:
        return None
    # The last hop is the one that our own proxy saw; what is before it, anybody can write.
    last = request.META.get("HTTP_X_FORWARDED_FOR", "").rpartition(",")[2].strip()
    if local and last:
        try:
            return str(ipaddress.ip_address(last))
        except ValueError:
            pass
    return str(remote)


def actor_of(request: Any) -> Actor:
    """The actor of a Django or DRF request that has been authenticated."""
    user = request.user
    role = getattr(user, "role", None)
    if role not in ROLES:
        raise Unauthenticated(said("log in, or send Authorization: Bearer <token>"))
    via = str(getattr(user, "via", ""))
    return Actor(str(user.username), role, client_address(request), via)
