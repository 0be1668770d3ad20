"""tgtd driven by tgtadm. Every change is read back: exit codes alone say too little, and a comma exports another file."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from agents.node.backends import daemon
from agents.node.backends.base import Backend, Export, in_use, same, shown_as
from agents.node.backends.sizes import size_of
from agents.node.backends.stgtaccess import Doors
from agents.node.backends.tgtadm import (
    ACTIVE,
    EXISTS,
    MISSING,
    Tgtadm,
    TgtError,
)
from agents.node.backends.tgtlisting import Listing, Shown
from agents.protocol.answers import Target
from agents.protocol.systems import LUN_NUMBER, STGT
from ipxeready.conf import Endpoint
from ipxeready.errors import ApplicationError, Conflict, UpstreamFailed
from ipxeready.said import said
from ipxeready.storage.iqn import initiator_of

logger = logging.getLogger(__name__)

_LUN = str(LUN_NUMBER[STGT])
_MAX_TID = 65535
_ANY = {"0.0.0.0", "::"}  # noqa: S104 - told apart from addresses, not listened at
#: A busy target may refuse even a forced deletion for a moment.
_FORCE_TRIES = 60
_FORCE_WAIT = 0.05
#: Seconds within which what somebody does by hand may be overlooked: tgtd refuses by itself what would clash.
_RECENT = 10.0
#: The same from one step of a call to its next.
_JUST_NOW = 0.5


class _Last(NamedTuple):
    """A listing, when it was asked for, and of which life of tgtd it is."""

    began: float
    life: str
    listing: Listing


class StgtBackend(Backend):
    """Targets of one tgtd, below one base IQN. What lies outside that base is somebody else's."""

    name = STGT
    cd = True
    persistent = False

    def __init__(
        self,
        *,
        base_iqn: str,
        control_port: int,
        socket: Path | None,
        portal: Endpoint,
    ) -> None:
        self._base = base_iqn
        self._portal = portal
        self._tgtadm = Tgtadm(control_port=control_port, socket=socket)
        self._doors = Doors(self._tgtadm, self._ours)
        self._last: _Last | None = None
        self._changed = 0.0
        """When we changed something last: a listing from before does not tell."""
        self._free_tid = 0
        """A target number that is likely to be free; 0 before the first listing."""

    def check(self) -> None:
        """One short question to tgtd."""
        self._tgtadm.run("show", "sys")

    def targets(self) -> list[Target]:
        """What tgtd shows below our base."""
        shown = self._show()
        return [shown[iqn].public() for iqn in shown if self._ours(iqn)]

    def about(
        self, iqn: str, path: str | None = None, *, recent: bool = False
    ) -> list[Target]:
        """One listing as ever, of which only those are read that matter: reading it whole costs more than asking for it."""
        shown = self._recent(iqn) if recent else self._show()
        initiator = initiator_of(iqn)
        ours = [name for name in shown if self._ours(name)]
        wanted = [
            name
            for name in ours
            if initiator_of(name.lower()) == initiator
            or (path is not None and shown.serves(name, path))
        ]
        return [shown[name].public() for name in wanted or ours[:1]]

    def foreign(self) -> int:
        """Targets outside our base."""
        return sum(not self._ours(iqn) for iqn in self._show())

    def incarnation(self) -> str:
        """The process behind the control socket, and when it began."""
        return daemon.life(self._tgtadm.socket)

    def stranger(self) -> str | None:
        """The process behind the control socket must be a tgtd, and serve the portal that machines are sent to."""
        name = daemon.name(self._tgtadm.socket)
        if name not in ("", "tgtd"):
            return said(
                "behind {socket} is {name}, not tgtd; compare IPXE_STGT_SOCKET and "
                "IPXE_STGT_CONTROL_PORT with how tgtd was started",
                socket=self._tgtadm.socket,
                name=name,
            )
        shown = self._tgtadm.run("show", "portal")
        portals = [
            (host.strip("[]"), int(port))
            for host, port in re.findall(r"^Portal: (\S+):(\d+),", shown, re.MULTILINE)
        ]
        if not any(
            port == self._portal.port
            and (host == self._portal.host or {host, self._portal.host} & _ANY)
            for host, port in portals
        ):
            there = ", ".join(str(Endpoint(*found)) for found in portals)
            about = {"socket": self._tgtadm.socket, "portal": self._portal}
            if not there:
                return said(
                    "the tgtd behind {socket} listens at nowhere, not at the {portal} of "
                    "IPXE_ISCSI_PORTAL: it may be another one; compare both with how tgtd was "
                    "started",
                    **about,
                )
            return said(
                "the tgtd behind {socket} listens at {there}, not at the {portal} of "
                "IPXE_ISCSI_PORTAL: it may be another one; compare both with how tgtd was started",
                there=there,
                **about,
            )
        return None

    def export_all(
        self, exports: Sequence[Export]
    ) -> dict[str, ApplicationError | None]:
        """Make all, read back once, open to initiators only what reads back right, read back again."""
        if not exports:
            return {}
        result: dict[str, ApplicationError | None] = {e.iqn: None for e in exports}
        made: dict[str, int] = {}
        if len(exports) == 1:
            self._try_new(exports[0], made)
        before = Listing("") if made else self._show()
        taken = set(before.tids)
        for export in exports:
            try:
                self._build(export, before.get(export.iqn), taken, made)
            except ApplicationError as error:
                result[export.iqn] = error
        after = self._show()
        self._free_tid = max(after.tids, default=0) + 1
        for export in exports:
            if result[export.iqn] is None:
                try:
                    self._open(export, after)
                except ApplicationError as error:
                    result[export.iqn] = error
        self._changed = time.monotonic()
        final = self._show()
        for export in exports:
            shown = final.get(export.iqn)
            if result[export.iqn] is None and not (shown and _is_as(shown, export)):
                result[export.iqn] = UpstreamFailed(
                    said(
                        "tgtd does not show {iqn} as it was asked for; look with `tgtadm --op show`.",
                        iqn=export.iqn,
                    )
                )
            if result[export.iqn] is not None and export.iqn in made and shown:
                self._undo(shown, final)
        return result

    def unexport(self, iqn: str, *, force: bool = False) -> None:
        """Delete the target. Without force tgtd itself refuses while a session is open, LUNs untouched."""
        # That nobody is inside is known well enough: tgtd refuses by itself.
        seen = self._seen(_JUST_NOW)
        shown = seen.get(iqn) if seen else None
        if shown is None or shown.sessions:
            shown = self._show().get(iqn)
        if shown is None:
            return
        if shown.sessions and not force:
            raise in_use(shown.public())
        accounts = self._doors.accounts(shown)
        tid = str(shown.tid)
        try:
            if force:
                self._force(shown)
            else:
                self._tgtadm.run("delete", "target", "--tid", tid)
        except TgtError as error:
            if error.kind == ACTIVE and not force:
                now = self._show().get(iqn)
                raise in_use((now or shown).public()) from error
            if error.kind != MISSING:
                raise
        finally:
            self._changed = time.monotonic()
        if self._has(tid):
            raise UpstreamFailed(
                said("tgtd still shows {iqn} after its deletion; try again.", iqn=iqn)
            )
        if accounts:
            self._doors.tidy(accounts, self._show())

    def tidy(self) -> None:
        """Delete what a call left that died on its way and that serves nothing: without a disk, or shut and without its file."""
        for shown in [s for iqn, s in self._show().items() if self._ours(iqn)]:
            serves = any(size_of(lun["backing"], -1) >= 0 for lun in shown.luns)
            if shown.sessions or serves or (shown.luns and shown.acl):
                continue
            logger.info("removing %s, which was left half made", shown.iqn)
            # Without force: whoever has logged in this very moment keeps it.
            with contextlib.suppress(TgtError):
                self._tgtadm.run("delete", "target", "--tid", str(shown.tid))
            self._changed = time.monotonic()

    # -- inside ----------------------------------------------------------

    def _ours(self, iqn: str) -> bool:
        return iqn.startswith(f"{self._base}:")

    def _show(self) -> Listing:
        began, life = time.monotonic(), self.incarnation()
        listing = Listing(self._tgtadm.run("show", "target"))
        if self._last is None or began > self._last.began:
            self._last = _Last(began, life, listing)
        return listing

    def _seen(self, seconds: float) -> Listing | None:
        """The last listing, when it is so young, we have changed nothing since, and the tgtd is the same."""
        last = self._last
        if last is None or last.began < max(self._changed, time.monotonic() - seconds):
            return None
        return last.listing if last.life and last.life == self.incarnation() else None

    def _recent(self, iqn: str) -> Listing:
        """A listing of the last seconds, unless everything may be gone since, or that target."""
        last = self._seen(_RECENT)
        if last is not None:
            ours = (name for name in (iqn, *last) if name in last and self._ours(name))
            one = next(ours, None)
            if one is not None and self._has(str(last[one].tid)):
                return last
        return self._show()

    def _build(
        self,
        export: Export,
        shown: Shown | None,
        taken: set[int],
        made: dict[str, int],
    ) -> None:
        """Make what is missing of a target and its LUN; nothing when it is there."""
        if "," in export.path:
            raise Conflict(
                said(
                    "{path} has a comma, and tgtd ends a path there. Rename it, or the directory.",
                    path=export.path,
                )
            )
        if export.iqn in made:
            tid = made[export.iqn]
        elif shown is None:
            tid = made[export.iqn] = self._new_target(export.iqn, taken)
        elif shown.luns:
            if not same(shown.public(), export):
                raise _differs(shown, export)
            if not shown.acl:  # half made by a call that died: its last step again
                self._identify(export, shown.tid)
            return
        else:  # half made, one step earlier
            tid = shown.tid
        try:
            self._new_lun(export, tid)
        except TgtError as error:
            if error.kind != EXISTS:
                raise
        self._identify(export, tid)

    def _has(self, tid: str) -> bool:
        """Whether there is a target of that number: without a listing."""
        try:
            self._tgtadm.run("show", "target", "--tid", tid)
        except TgtError as error:
            if error.kind != MISSING:
                raise
            return False
        return True

    def _try_new(self, export: Export, made: dict[str, int]) -> None:
        """Make a target without a listing first, which costs as much as there are targets: tgtd refuses one that it has."""
        if not 0 < self._free_tid <= _MAX_TID or "," in export.path:
            return
        tid = self._free_tid
        try:
            self._tgtadm.run("new", "target", "--tid", str(tid), "-T", export.iqn)
        except TgtError:
            return  # the name or the number is taken: look first
        made[export.iqn] = tid

    def _new_target(self, iqn: str, taken: set[int]) -> int:
        tid = 1
        while True:
            while tid in taken:
                tid += 1
            if tid > _MAX_TID:
                raise UpstreamFailed(said("tgtd has no target number left."))
            taken.add(tid)
            try:
                self._tgtadm.run("new", "target", "--tid", str(tid), "-T", iqn)
            except TgtError as error:
                # Somebody else took the number meanwhile; or the name, which is the end.
                if error.kind != EXISTS or iqn in self._show():
                    raise
                continue
            return tid

    def _new_lun(self, export: Export, tid: int) -> None:
        where = ("--tid", str(tid), "--lun", _LUN)
        kind = ("--device-type", "cd") if export.cd else ()
        self._tgtadm.run("new", "logicalunit", *where, "-b", export.path, *kind)

    def _identify(self, export: Export, tid: int) -> None:
        """Give the LUN numbers that stay: tgt's own follow the tid, which a rebuild may change."""
        identity = hashlib.sha256(export.iqn.encode()).hexdigest()[:16]
        parameters = f"scsi_sn={identity},scsi_id=IPXE{identity}"
        if export.cd:
            parameters += ",readonly=1"
        where = ("--tid", str(tid), "--lun", _LUN)
        self._tgtadm.run("update", "logicalunit", *where, "--params", parameters)

    def _open(self, export: Export, everything: Listing) -> None:
        """Let initiators in, once the LUN reads back as asked."""
        shown = everything.get(export.iqn)
        if shown is None:
            raise UpstreamFailed(
                said(
                    "tgtd does not show {iqn} although it said yes; try again.",
                    iqn=export.iqn,
                )
            )
        if not same(shown.public(), export):
            raise _differs(shown, export)
        number = LUN_NUMBER[STGT]
        if shown.readonly.get(number, False) != export.cd:
            words = (
                said(
                    "tgtd has {path} writable; correct the owner, mode or mount of the file, and "
                    "what tgtd may open.",
                    path=export.path,
                )
                if export.cd
                else said(
                    "tgtd has {path} read-only; correct the owner, mode or mount of the file, and "
                    "what tgtd may open.",
                    path=export.path,
                )
            )
            raise Conflict(words, code="target.access")
        if not shown.online.get(number, True):
            raise Conflict(
                said("tgtd has {iqn} offline.", iqn=export.iqn), code="target.offline"
            )
        self._doors.open(shown, export.access, everything)

    def _force(self, shown: Shown) -> None:
        """Close the door, then delete with --force until tgtd lets go."""
        tid = str(shown.tid)
        self._doors.close(shown)
        for left in reversed(range(_FORCE_TRIES)):
            try:
                self._tgtadm.run("delete", "target", "--tid", tid, "--force")
            except TgtError as error:
                if error.kind != ACTIVE or not left:
                    raise
                time.sleep(_FORCE_WAIT)
            else:
                return

    def _undo(self, shown: Shown, everything: Listing) -> None:
        """Take back a target that this call made."""
        try:
            self._tgtadm.run("delete", "target", "--tid", str(shown.tid), "--force")
        except TgtError as error:
            if error.kind != MISSING:
                raise
        everything.forget(shown.iqn)
        self._changed = time.monotonic()
        self._doors.tidy(self._doors.accounts(shown), everything)


def _is_as(shown: Shown, export: Export) -> bool:
    """Whether tgtd shows what was asked for."""
    if not shown.acl or not same(shown.public(), export):
        return False
    return export.access is None or shown_as(shown.public(), export.access)


def _differs(shown: Shown, export: Export) -> Conflict:
    there = ", ".join(lun["backing"] for lun in shown.luns)
    words = (
        said(
            "the target {iqn} has {there} instead of {path}. Delete that target first.",
            iqn=export.iqn,
            there=there,
            path=export.path,
        )
        if there
        else said(
            "the target {iqn} has nothing instead of {path}. Delete that target first.",
            iqn=export.iqn,
            path=export.path,
        )
    )
    return Conflict(words, code="target.differs")
