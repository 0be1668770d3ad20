"""tgtadm as a child process: one call, its time limit, and its words turned into a kind of error."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from pathlib import Path

from ipxeready.errors import Unavailable, UpstreamFailed
from ipxeready.said import said

TIMEOUT = 10.0
#: After a call that never came back, others fail at once for so long instead of piling up.
_PAUSE = 5.0
#: Nobody waits behind a call that has been running for so long.
_SLOW = 5.0
#: The limit of a call that tries whether a tgtd that hung answers again.
_RETRY = 2.0
_SOCKET = "/var/run/tgtd/socket"

EXISTS = "exists"
MISSING = "missing"
ACTIVE = "active"
REFUSED = "refused"

# tgtadm ends with 22 whatever is wrong: only its words tell the cases apart.
_WORDS = {
    "this target already exists": EXISTS,
    "this logical unit number already exists": EXISTS,
    "this access control rule already exists": EXISTS,
    "this account already exists": EXISTS,
    "can't find the target": MISSING,
    "can't find the logical unit": MISSING,
    "this access control rule does not exist": MISSING,
    "can't find the account": MISSING,
    "this target is still active": ACTIVE,
    "this logical unit is still active": ACTIVE,
    "logical unit is still active": ACTIVE,
}


class TgtError(UpstreamFailed):
    """tgtd refused a call; `kind` is one of EXISTS, MISSING, ACTIVE, REFUSED."""

    default_code = "stgt.refused"

    def __init__(self, message: str, kind: str = REFUSED) -> None:
        super().__init__(message)
        self.kind = kind


class Tgtadm:
    """Calls of tgtadm on one tgtd: its control port (`-C`) and its socket.

    tgtd answers one call after the other. One that hangs must not gather callers: they would be all the threads
    that the node has.
    """

    def __init__(self, *, control_port: int, socket: Path | None) -> None:
        self._prefix = ["tgtadm", "-C", str(control_port), "--lld", "iscsi"]
        self._environment = {**os.environ, "LC_ALL": "C"}
        if socket is not None:
            self._environment["TGT_IPC_SOCKET"] = str(socket)
        #: Where tgtd listens for tgtadm.
        self.socket = f"{socket or _SOCKET}.{control_port}"
        self._guard = threading.Lock()
        self._until = 0.0
        self._hung = False
        """Some call got no answer, and none has got one since."""
        self._running: dict[object, float] = {}
        """Calls under way, by when they began."""

    def run(self, operation: str, mode: str, *arguments: str) -> str:
        """The output of one call; TgtError when tgtd says no, Unavailable when it does not answer."""
        command = [*self._prefix, "--op", operation, "--mode", mode, *arguments]
        call = object()
        limit = self._begin(call)
        try:
            done = subprocess.run(
                command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            with self._guard:
                self._until = time.monotonic() + _PAUSE
                self._hung = True
            # Not "from": that error's words are the arguments, which may hold a secret.
            raise Unavailable(
                said(
                    "tgtd did not answer within {seconds} s; look at its process on this node.",
                    seconds=f"{limit:g}",
                ),
                code="stgt.hung",
            ) from None
        except OSError as error:
            raise Unavailable(
                said(
                    "tgtadm cannot be started ({why}); install the package tgt.",
                    why=error.strerror,
                ),
                code="stgt.missing",
            ) from error
        finally:
            with self._guard:
                del self._running[call]
        with self._guard:
            self._hung = False
        if done.returncode == 0:
            return done.stdout.decode(errors="surrogateescape")
        words = done.stderr.decode(errors="replace").strip().removeprefix("tgtadm: ")
        if "tgt daemon" in words or done.returncode != 22:
            why = words or said("exit code {number}", number=done.returncode)
            raise Unavailable(
                said(
                    "tgtd is not connected ({why}). Start it, and compare IPXE_STGT_CONTROL_PORT and "
                    "IPXE_STGT_SOCKET with its options.",
                    why=why,
                ),
                code="stgt.down",
            )
        raise TgtError(
            said(
                "tgtd refused {operation} {mode}: {words}",
                operation=operation,
                mode=mode,
                words=words,
            ),
            _WORDS.get(words, REFUSED),
        )

    def _begin(self, call: object) -> float:
        """Note a call and return its limit in seconds; Unavailable where it would only wait behind one that hangs."""
        now = time.monotonic()
        with self._guard:
            oldest = now - min(self._running.values(), default=now)
            if (
                now < self._until
                or oldest > _SLOW
                or (self._hung and self._running)  # one at a time tries again
            ):
                raise Unavailable(
                    said("tgtd did not answer a moment ago; trying again shortly."),
                    code="stgt.hung",
                )
            self._running[call] = now
            return min(TIMEOUT, _RETRY) if self._hung else TIMEOUT
