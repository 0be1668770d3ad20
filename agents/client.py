"""The control plane's side of the wire: what a storage node is asked about itself and its targets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from agents import seen
from agents.calls import unreachable
from agents.following import UNWATCHED, Callbacks, follow
from agents.job_client import JobClient
from agents.protocol import paths
from agents.protocol.access import Chap
from agents.protocol.answers import (
    Capabilities,
    Created,
    Deleted,
    Grown,
    Master,
    NodeHealth,
    ScanResult,
    Target,
)
from agents.protocol.requests import AccessRequest, CdRequest, DiskRequest
from ipxeready.errors import ApplicationError
from ipxeready.prefer import Preference
from ipxeready.said import said
from ipxeready.storage.iqn import IMAGE_SUFFIX
from ipxeready.storage.jobs import Cancelled

#: Seconds for what may take long on a node: deleting and scanning (sessions to end, large files).
LONG = 600.0
#: A full copy of a master over slow disks, on a node that knows no jobs; TCP keep-alive notices one that is gone.
COPY = 24 * 3600.0
#: Seconds that a node may take for the ordinary answer before it gives a job.
WAIT = 5.0

_CAPABILITIES = {
    "backend": str,
    "cd": bool,
    "persistent": bool,
    "base_iqn": str,
    "fs_type": str,
    "clone": bool,
    "empty_disk": bool,
}
_NODE_HEALTH = {
    "backend": dict,
    "room": dict,
    "fs": dict,
    "targets": dict,
    "images": dict,
    "problems": list,
}


class NodeClient(JobClient):
    """Calls one storage node about its targets. Never use it inside `index.writing()`: a node may be slow or gone."""

    # --- asking -------------------------------------------------------------
    def health(self) -> str:
        """`ok`, or an error."""
        answer = self._call("GET", paths.HEALTHZ)
        if not isinstance(answer, dict) or answer.get("status") != "ok":
            raise self._nonsense(said("its /healthz does not say ok"))
        return "ok"

    def capabilities(self) -> Capabilities:
        """What the node can do and its room; the target system is remembered for boots."""
        answer = self._call("GET", paths.CAPABILITIES)
        if not isinstance(answer, dict) or any(
            not isinstance(answer.get(name), kind)
            for name, kind in _CAPABILITIES.items()
        ):
            raise self._nonsense(
                said("its /capabilities are not those of an ipxeready agent")
            )
        for name in ("free_bytes", "total_bytes"):
            if not isinstance(answer.setdefault(name, 0), int):
                raise self._nonsense(said("its {name} is no number", name=name))
        answer.setdefault("reflink", False)
        seen.note_backend(self.agent, answer["backend"])
        return cast(Capabilities, answer)

    def node_health(self) -> NodeHealth:
        """Its target system, room, images and problems."""
        answer = self._call("GET", paths.HEALTH)
        if not isinstance(answer, dict) or not all(
            isinstance(answer.get(name), kind) for name, kind in _NODE_HEALTH.items()
        ):
            raise self._nonsense(said("its /health is not that of an ipxeready agent"))
        return cast(NodeHealth, answer)

    def masters(self) -> list[Master]:
        """Its master images."""
        answer = self._call("GET", paths.MASTERS)
        found = answer.get("masters") if isinstance(answer, dict) else None
        if not isinstance(found, list) or not all(
            isinstance(entry, dict)
            and isinstance(entry.get("name"), str)
            and isinstance(entry.get("size"), int)
            and isinstance(entry.get("problem", ""), str)
            for entry in found
        ):
            raise self._nonsense(said("its /masters is no list of masters"))
        return cast(list[Master], found)

    def targets(self) -> list[Target]:
        """Its targets with LUNs and sessions."""
        found = self._call("GET", paths.LUN)
        if not isinstance(found, list) or not all(map(_is_target, found)):
            raise self._nonsense(said("its /lun is no list of targets"))
        return cast(list[Target], found)

    def logs(
        self,
        *,
        since: int | None = None,
        before: int | None = None,
        limit: int | None = None,
    ) -> dict[str, Any]:
        """Lines of its own log: above `since`, oldest first, or below `before`, newest first (0: from the newest)."""
        given = {"since": since, "before": before, "limit": limit}
        params = {
            name: str(value) for name, value in given.items() if value is not None
        }
        answer = self._call("GET", paths.LOGS, params=params)
        entries = answer.get("entries") if isinstance(answer, dict) else None
        if not isinstance(entries, list) or not all(
            isinstance(entry, dict) for entry in entries
        ):
            raise self._nonsense(said("its /logs is no log"))
        return cast(dict[str, Any], answer)

    # --- changing -----------------------------------------------------------
    def create_disk(
        self, request: DiskRequest, callbacks: Callbacks = UNWATCHED
    ) -> Created:
        """Make and export a disk, which takes long where it is a full copy."""
        answer = self._long(
            paths.LUN_DISK,
            request.body(),
            callbacks,
            found=lambda: self._made(request.iqn.lower()),
        )
        return self._created(answer)

    def create_cd(self, request: CdRequest) -> Created:
        """Export an ISO as a CD."""
        answer = self._call("POST", paths.LUN_CD, body=request.body(), timeout=LONG)
        return self._created(answer)

    def delete(self, iqn: str, *, delete_file: bool, force: bool = False) -> Deleted:
        """Take a target off, with its image if asked; the node refuses (409) while a session is open."""
        params = {"iqn": iqn, "delete_file": _flag(delete_file)}
        if force:
            params["force"] = _flag(True)
        answer = self._call("DELETE", paths.LUN, params=params, timeout=LONG)
        if not isinstance(answer, dict) or not isinstance(answer.get("deleted"), str):
            raise self._nonsense(said("its answer to the deletion names no target"))
        return cast(Deleted, answer)

    def set_access(
        self,
        iqn: str,
        access: str,
        chap: Chap | None = None,
        *,
        force: bool = False,
    ) -> Target:
        """Say who may log in to a target; it is as listed afterwards. No session is cut.

        The node refuses (409) what a machine that is connected could not come back under, unless `force`.
        """
        request = AccessRequest(iqn, access, chap, force)
        answer = self._call("POST", paths.LUN_ACCESS, body=request.body(), timeout=LONG)
        if not _is_target(answer):
            raise self._nonsense(
                said("its answer to the change of access is no target")
            )
        return cast(Target, answer)

    def grow(self, iqn: str, size: int) -> Grown:
        """Make a disk larger; the node refuses (409) while it is in use."""
        answer = self._call(
            "POST", paths.LUN_GROW, body={"iqn": iqn, "size": size}, timeout=LONG
        )
        if not isinstance(answer, dict) or not isinstance(answer.get("was"), int):
            raise self._nonsense(said("its answer does not say how large the disk was"))
        return cast(Grown, answer)

    def reset(self, iqn: str, master: str, callbacks: Callbacks = UNWATCHED) -> Created:
        """Give a disk the content of a master again; the node refuses (409) while it is in use."""
        answer = self._long(paths.LUN_RESET, {"iqn": iqn, "master": master}, callbacks)
        return self._created(answer)

    def scan(self, access: str | None = None) -> ScanResult:
        """Export what has no target; `access` for those that the node remembers nothing about."""
        body = None if access is None else {"access": access}
        answer = self._call("POST", paths.LUN_SCAN, body=body, timeout=LONG)
        if not isinstance(answer, dict) or not all(
            isinstance(answer.get(name), list) for name in ("created", "skipped")
        ):
            raise self._nonsense(said("its answer to the scan is no result of a scan"))
        return cast(ScanResult, answer)

    # --- inside -------------------------------------------------------------
    def _long(
        self,
        path: str,
        body: dict[str, Any],
        callbacks: Callbacks,
        *,
        found: Callable[[], Any | None] | None = None,
    ) -> Any:
        """The answer of a call that may take long: the node gives a job after a few seconds, which is followed to its end.

        A node that hangs is told by a quick question first. `callbacks`, `found` and errors: see
        `following.follow`. A node that knows no jobs is waited for as long as it takes.
        """
        if callbacks.stop is not None and callbacks.stop():
            raise Cancelled(
                said("cancelled before the node was asked."),
                extra={"agent": self.agent.id, "sent": False},
            )
        try:
            self.health()
        except ApplicationError as error:
            error.extra["sent"] = False
            raise
        status, answer = self._exchange(
            "POST",
            path,
            body=body,
            prefer=Preference(respond_async=True, wait=WAIT).header(),
            timeout=COPY,
        )
        if status != 202:
            return answer
        job = self._job(answer)
        if callbacks.on_job is not None:
            callbacks.on_job(job["id"])
        return follow(self, job, callbacks, found)

    def _made(self, iqn: str) -> Created | None:
        """A disk as its target shows it; None when there is none and none is being made."""
        making = self.capabilities().get("making") or ()
        target = next((t for t in self.targets() if t["iqn"] == iqn), None)
        if target is not None and target["luns"]:
            return {"iqn": iqn, "backing": target["luns"][0]["backing"]}
        if iqn.rpartition(":")[2] + IMAGE_SUFFIX in making:
            raise unreachable(
                self.agent, said("it is still making {iqn}", iqn=iqn), sent=True
            )
        return None

    def _created(self, answer: Any) -> Created:
        if not isinstance(answer, dict) or not all(
            isinstance(answer.get(name), str) for name in ("iqn", "backing")
        ):
            raise self._nonsense(said("its answer names no target and backing store"))
        return cast(Created, answer)


def _is_target(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("iqn"), str)
        and isinstance(entry.get("luns"), list)
        and isinstance(entry.get("sessions"), list)
    )


def _flag(value: bool) -> str:
    return "true" if value else "false"
