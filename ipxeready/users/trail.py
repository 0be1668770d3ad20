"""Logins, logouts and refusals in the audit: each with a line, a flood with one a minute that counts."""

from __future__ import annotations

import logging
import threading
from typing import Any

from django.conf import settings
from django.http import HttpRequest

from ipxeready.actors import SYSTEM, VIEWER, Actor
from ipxeready.errors import ApplicationError
from ipxeready.index import append_log
from ipxeready.users import throttle
from ipxeready.users.models import Operator
from ipxeready.web.actors import client_address

logger = logging.getLogger(__name__)

LOGIN, REFUSED, LOGOUT = "user.login", "user.login.refused", "user.logout"
TOKEN_REFUSED = "token.refused"  # noqa: S105
#: Who acts before anybody is known.
NOBODY = "anonymous"
_timer = threading.Lock()


def write(*, actor: Actor, op: str, status: str = "ok", **fields: Any) -> None:
    """A line on which no answer depends: a failure goes to the log only."""
    try:
        append_log(actor=actor, op=op, status=status, **fields)
    except (ApplicationError, OSError) as error:
        logger.error("not in the audit trail: %s %s: %s", op, status, error)


def refused(*, op: str, address: str | None, **fields: Any) -> None:
    """Write a refusal, or count it where there are too many: guessing must not fill the disk."""
    if throttle.may_write(address or "local"):
        _write_rest()
        write(actor=Actor(NOBODY, VIEWER, address), op=op, status="failed", **fields)
        return
    if _timer.acquire(blocking=False):
        later = threading.Timer(throttle.MINUTE, _flush, [settings.IPXE_LAYOUT])
        later.daemon = True
        later.start()


def account_named(user: Operator | None) -> str:
    """A name as the audit may show it: what is typed into that field by mistake may be a password."""
    return user.username if user is not None else "unknown user"


def _flush(layout: object) -> None:
    _timer.release()
    if layout is settings.IPXE_LAYOUT:
        _write_rest()


def _write_rest() -> None:
    count = throttle.take_unwritten()
    if count:
        write(actor=SYSTEM, op=REFUSED, status="failed", count=count, reason="flood")


def logged_in(sender: Any, request: HttpRequest, user: Any, **_more: Any) -> None:
    """Somebody has logged in on the pages."""
    write(actor=Actor(user.username, user.role, client_address(request)), op=LOGIN)


def logged_out(sender: Any, request: HttpRequest, user: Any, **_more: Any) -> None:
    """Somebody has logged out of this browser."""
    if isinstance(user, Operator):
        write(actor=Actor(user.username, user.role, client_address(request)), op=LOGOUT)
