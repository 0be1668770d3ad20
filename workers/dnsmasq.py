"""Telling dnsmasq of a changed hosts file once a write is done: one reload for all that changed."""

from __future__ import annotations

import time
from typing import Any

from django.conf import settings

from audit.services import record_quietly
from ipxeready.actors import Actor
from ipxeready.index.writer import Transaction
from workers.reload import Reloader, ReloadResult


class Reloading:
    """The reload that a write has asked for; `result` is there once the lock was released."""

    def __init__(self, actor: Actor) -> None:
        self.actor = actor
        self.result: ReloadResult | None = None

    def __call__(self) -> None:
        """Reload, and write down what came of it."""
        kind, value = settings.IPXE.dnsmasq_reload
        started = time.monotonic_ns()
        self.result = Reloader(kind, value, settings.IPXE_LAYOUT).reload(started)
        if kind == "none" or self.result.coalesced:
            return
        record_quietly(
            actor=self.actor,
            op="dnsmasq.reload",
            status="ok" if self.result.active else "failed",
            error=self.result.error,
        )

    def answer(self) -> dict[str, Any]:
        """What an API answer carries: nothing when all is well, `dnsmasq` when the binding is not active."""
        if self.result is None or self.result.error is None:
            return {}
        return {
            "dnsmasq": {
                "active": False,
                "error": f"written, not active: {self.result.error}",
            }
        }


def reload_after(tx: Transaction) -> Reloading:
    """Have dnsmasq reloaded after this write; every caller in one write shares one reload."""
    for callback in tx.callbacks:
        if isinstance(callback, Reloading):
            return callback
    reloading = Reloading(tx.actor)
    tx.on_commit(reloading)
    return reloading
