"""Writing the audit trail; inside a write the line goes with the commit."""

from __future__ import annotations

import logging
from typing import Any

from ipxeready.actors import Actor
from ipxeready.errors import ApplicationError
from ipxeready.index import append_log

log = logging.getLogger(__name__)


def record(*, actor: Actor, op: str, status: str = "ok", **fields: Any) -> None:
    """Append one line; raises Unavailable when the lock cannot be had."""
    append_log(actor=actor, op=op, status=status, **fields)


def record_quietly(*, actor: Actor, op: str, status: str = "ok", **fields: Any) -> None:
    """Append one line where the answer must not depend on it: a failure goes to the log only."""
    try:
        append_log(actor=actor, op=op, status=status, **fields)
    except (ApplicationError, OSError) as error:
        log.error(
            "not written to the audit trail: %s %s %s: %s", op, status, fields, error
        )
