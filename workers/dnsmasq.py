"""Telling dnsmasq of a changed hosts file once a write is done: one reload for all that changed."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import connection

from audit.services import record_quietly
from ipxeready.actors import Actor
from ipxeready.index.writer import Transaction
from workers import dnsmasq_process
from workers.reload import Reloader, ReloadResult

_THREAD = "dnsmasq-reload"


def not_seen() -> str | None:
    """Why dnsmasq does not have what the hosts file says; None when it has, or nobody can tell."""
    kind, value = settings.IPXE.dnsmasq_reload
    layout = settings.IPXE_LAYOUT
    if kind == "none":
        return None
    if kind == "command":
        return Reloader(kind, value, layout).last_error()
    try:
        # One that was started after a failed reload has read the file.
        with dnsmasq_process.find(Path(value)) as process:
            return process.hosts_fault(layout.dhcp_hosts)
    except dnsmasq_process.NotRunning as error:
        return error.words


class Reloading:
    """The reload that a write has asked for; `result` is there once the lock was released."""

    def __init__(self, actor: Actor, patience: float | None) -> None:
        self.actor = actor
        self.patience = patience
        self.result: ReloadResult | None = None

    def __call__(self) -> None:
        """Reload, and write down what came of it."""
        if self.patience is None:
            self._reload()
            return
        thread = threading.Thread(target=self._reload_apart, name=_THREAD, daemon=True)
        thread.start()
        thread.join(self.patience)

    @staticmethod
    def idle(seconds: float) -> bool:
        """Whether no reload goes on by itself, within `seconds`."""
        end = time.monotonic() + seconds
        for thread in threading.enumerate():
            if thread.name == _THREAD:
                thread.join(max(0.0, end - time.monotonic()))
                if thread.is_alive():
                    return False
        return True

    def _reload_apart(self) -> None:
        try:
            self._reload()
        finally:
            connection.close()

    def _reload(self) -> None:
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


def reload_after(tx: Transaction, patience: float | None = None) -> Reloading:
    """Have dnsmasq reloaded after this write; every caller in one write shares one reload.

    With `patience` nobody waits longer than so many seconds for a reload that hangs; it goes on by itself.
    """
    for callback in tx.callbacks:
        if isinstance(callback, Reloading):
            return callback
    reloading = Reloading(tx.actor, patience)
    tx.on_commit(reloading)
    return reloading
