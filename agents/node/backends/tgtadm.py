"""tgtadm as a child process: one call, its time limit, and its words turned into a kind of error."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from pathlib import Path

from agents.node.backends.base import AccessShown
from agents.node.backends.sizes import size_of
from agents.protocol import ACL, CD, CHAP, DISK, OFF, Lun, Session, Target
from ipxeready.errors import Unavailable, UpstreamFailed
from ipxeready.storage import iqn as iqns

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
                f"tgtd did not answer within {limit:g} s; look at its process on this node.",
                code="stgt.hung",
            ) from None
        except OSError as error:
            raise Unavailable(
                f"tgtadm cannot be started ({error.strerror}); install the package tgt.",
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
            raise Unavailable(
                f"tgtd is not connected ({words or f'exit code {done.returncode}'}). "
                "Start it, and compare IPXE_STGT_CONTROL_PORT and IPXE_STGT_SOCKET with its options.",
                code="stgt.down",
            )
        raise TgtError(
            f"tgtd refused {operation} {mode}: {words}", _WORDS.get(words, REFUSED)
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
                    "tgtd did not answer a moment ago; trying again shortly.",
                    code="stgt.hung",
                )
            self._running[call] = now
            return min(TIMEOUT, _RETRY) if self._hung else TIMEOUT


class Shown:
    """One target of tgtd's listing, with what only the backend looks at."""

    def __init__(self, tid: int, iqn: str) -> None:
        self.tid = tid
        self.iqn = iqn
        self.luns: list[Lun] = []
        self.readonly: dict[int, bool] = {}
        self.online: dict[int, bool] = {}
        self.sessions: list[Session] = []
        self.acl: list[str] = []
        self.accounts: list[str] = []
        self.outgoing: list[str] = []

    def access(self) -> AccessShown:
        """Who may log in, from the rules and accounts; `other` for what is not one of our modes."""
        rules, own = set(self.acl), iqns.initiator_of(self.iqn)
        mode = "other"
        if not self.outgoing:
            if rules == {"ALL"} and not self.accounts:
                mode = OFF
            elif rules == {own} and len(self.accounts) < 2:
                mode = CHAP if self.accounts else ACL
        return {
            "access": mode,
            "initiators": [] if mode == OFF else sorted(rules),
        }

    def public(self) -> Target:
        """The target as the API lists it."""
        return {
            "iqn": self.iqn,
            "tid": self.tid,
            "luns": self.luns,
            "sessions": self.sessions,
            **self.access(),
        }


_KINDS = {"disk": DISK, "cd/dvd": CD}


def parse(text: str) -> list[Shown]:
    """Every target of `tgtadm --op show --mode target`; LUN 0, tgt's own controller, is left out."""
    found: list[Shown] = []
    section = ""
    lun: Lun | None = None
    for line in text.split("\n"):
        words = line.strip()
        if line.startswith("Target "):
            number, _, iqn = line.removeprefix("Target ").partition(": ")
            found.append(Shown(int(number), iqn))
            section, lun = "", None
        elif not found or not words:
            continue
        elif line.startswith("    ") and not line.startswith("     "):
            section = words
        elif section == "I_T nexus information:":
            _nexus(found[-1], words)
        elif section == "LUN information:":
            lun = _lun(found[-1], lun, words)
        elif section == "Account information:":
            name, outgoing, _ = words.partition(" (outgoing)")
            (found[-1].outgoing if outgoing else found[-1].accounts).append(name)
        elif section == "ACL information:":
            found[-1].acl.append(words)
    for target in found:
        target.luns = [unit for unit in target.luns if unit["type"] != "controller"]
        for unit in target.luns:
            unit["size"] = size_of(unit["backing"], unit["size"])
    return found


def _nexus(target: Shown, words: str) -> None:
    key, _, value = words.partition(": ")
    if key == "I_T nexus":
        target.sessions.append({"initiator": "", "address": "", "id": value})
    elif key == "Initiator" and target.sessions:
        target.sessions[-1]["initiator"] = value.partition(" alias:")[0]
    elif key == "IP Address" and target.sessions:
        target.sessions[-1]["address"] = value


def _lun(target: Shown, lun: Lun | None, words: str) -> Lun | None:
    key, _, value = words.partition(": ")
    if key == "LUN":
        new: Lun = {"lun": int(value), "backing": "", "size": 0, "type": ""}
        target.luns.append(new)
        return new
    if lun is None:
        return None
    match key:
        case "Type":
            lun["type"] = _KINDS.get(value, value)
        case "Size":
            megabytes = value.partition(" ")[0]
            lun["size"] = int(megabytes) << 20 if megabytes.isdigit() else 0
        case "Backing store path":
            lun["backing"] = value
        case "Readonly":
            target.readonly[lun["lun"]] = value == "Yes"
        case "Online":
            target.online[lun["lun"]] = value == "Yes"
    return lun
