"""The long work on nodes as jobs, and how one ends whose process is gone: by what the node says."""

from __future__ import annotations

from typing import Any

from agents import nodes
from agents.client import NodeClient
from agents.protocol.answers import how_made
from agents.selectors import agent_find, agent_get
from agents.watched import end_as, open_if_unknown
from ipxeready.actors import OPERATOR, Actor
from ipxeready.jobs.services import Work
from ipxeready.jobs.watch import Watch
from ipxeready.storage.iqn import IMAGE_SUFFIX
from ipxeready.storage.jobs import BYTES, Running

DISK = "lun.create_disk"
SCAN = "lun.scan"

NOT_MADE = (
    "the service was restarted, and the node has no such target: not made. Send it "
    "again."
)
NOT_SCANNED = (
    "the service was restarted while the node was scanning. Scan again: what has a "
    "target by now is left alone."
)


def disk_work(*, actor: Actor, agent_id: str, **wanted: Any) -> Work:
    """A disk that belongs to no worker."""
    agent, request = nodes.lun_disk_check(actor=actor, agent_id=agent_id, **wanted)

    def do(watch: Watch) -> dict[str, Any]:
        with open_if_unknown(watch):
            made = nodes.lun_create_disk(
                actor=actor, agent_id=agent.id, watch=watch, **wanted
            )
        return _made(made)

    about = {"agent": agent.id, **request.told()}
    return Work(kind=DISK, do=do, about=about, same=about, unit=BYTES)


def _made(made: Any) -> dict[str, Any]:
    return {"iqn": made["iqn"], "backing": made["backing"], **how_made(made)}


def scan_work(*, actor: Actor, agent_id: str) -> Work:
    """A node exports what has no target."""
    actor.require(OPERATOR)
    agent = agent_get(agent_id)

    def do(_watch: Watch) -> dict[str, Any]:
        return dict(nodes.lun_scan(actor=actor, agent_id=agent.id))

    about = {"agent": agent.id}
    return Work(kind=SCAN, do=do, about=about, same=about)


def disk_ended(running: Running) -> None:
    """Whether the node has made it; while it is at it, or does not answer, the job stays open."""
    about = running.job.about
    agent = agent_find(str(about.get("agent", "")))
    if agent is None:
        running.fail(status=503, detail=NOT_MADE)
        return
    if end_as(running, agent, made=_made):
        return
    iqn = str(about.get("iqn", ""))
    client = NodeClient(agent)
    making = client.capabilities().get("making") or []
    target = next((t for t in client.targets() if t["iqn"] == iqn), None)
    if target is not None:
        backing = target["luns"][0]["backing"] if target["luns"] else ""
        running.finish({"iqn": iqn, "backing": backing})
    elif iqn.rpartition(":")[2].lower() + IMAGE_SUFFIX not in making:
        running.fail(status=503, detail=NOT_MADE)


def scan_ended(running: Running) -> None:
    """Nothing is known of what it found; nothing is lost either."""
    running.fail(status=503, detail=NOT_SCANNED)
