"""How the jobs of this app end whose process is gone: by what the ledger says once their disks are settled."""

from __future__ import annotations

from typing import Any

from agents.selectors import agent_find
from agents.watched import end_as, look
from ipxeready.actors import SYSTEM
from ipxeready.errors import ApplicationError
from ipxeready.index import writing
from ipxeready.jobs.kinds import RESTARTED
from ipxeready.jobs.watch import cancelled_before, cancelled_with
from ipxeready.said import said
from ipxeready.storage.jobs import Running
from workers import selectors
from workers.changing import made_from
from workers.ledger import disk_change, record_get, record_put
from workers.models import Disk
from workers.services import worker_boot_set

NOT_TRIED = "the service was restarted: not tried. Send it again."
NOT_MADE = (
    "the service was restarted: not made, and cleaned up. The operations say more; "
    "send it again."
)
NOT_DELETED = (
    "the service was restarted: not deleted, what is gone of it is off the ledger. "
    "Delete it again."
)
_CANCELLED = "cancelled: what was made of it is removed"


def disk_ended(running: Running) -> None:
    """One disk: it is there, or it is not; while its node is at it the job goes on."""
    about = running.job.about
    name, system = str(about.get("worker_id", "")), str(about.get("os", ""))
    disk = selectors.disk_of(name, system)
    if "iqn" not in about:  # it had not come to the ledger
        running.fail(status=503, detail=NOT_TRIED)
    elif disk is not None and disk.iqn == about["iqn"] and not disk.status:
        if about.get("set_default"):
            worker_boot_set(actor=SYSTEM, worker_id=name, os=system)
        running.finish(selectors.record_of(selectors.worker_get(name)))
    elif disk is not None and disk.status:
        # Its node is at it still, or does not answer.
        if (agent := agent_find(disk.agent)) is not None:
            look(running, agent)
    elif (agent := agent_find(str(about.get("agent", "")))) and end_as(running, agent):
        return  # for the reason that the node gives
    elif running.cancelled():
        running.cancel(_CANCELLED)
    else:
        running.fail(status=503, detail=NOT_MADE)


def disks_ended(running: Running) -> None:
    """A batch of disks, once none of them is under way: what is there, what is not."""
    about = running.job.about
    system = str(about.get("os", ""))
    targets = [(str(worker), str(agent)) for worker, agent in about.get("targets", [])]
    begun = set(about.get("begun", []))
    disks = {
        disk.worker_id: disk
        for disk in Disk.objects.filter(os=system)
        if disk.worker_id in dict(targets)
    }
    under_way = [name for name, disk in disks.items() if disk.status and name in begun]
    if under_way:
        running.job.done = len(targets) - len(under_way)
        running.save()
        return
    answer: dict[str, list[dict[str, Any]]] = {
        "succeeded": [],
        "skipped": [],
        "failed": [],
    }
    seen: set[str] = set()
    for name, agent in targets:
        disk = disks.get(name)
        item = {"worker_id": name, "agent": agent}
        if name in seen:
            reason = said(
                "{worker_id} is named earlier in this request", worker_id=name
            )
            answer["skipped"].append({"worker_id": name, "reason": reason})
        elif disk is not None and not disk.status and name in begun:
            answer["succeeded"].append({**item, "iqn": disk.iqn})
        elif disk is not None and not disk.status:
            reason = said(
                "{worker_id} has a {os} disk already on node {agent}",
                worker_id=name,
                os=system,
                agent=disk.agent,
            )
            answer["skipped"].append({"worker_id": name, "reason": reason})
        else:
            words = NOT_MADE if name in begun else NOT_TRIED
            if running.cancelled() and name not in begun:
                words = cancelled_before().message
            answer["failed"].append({**item, "error": words})
        seen.add(name)
    _boot([item["worker_id"] for item in answer["succeeded"]], system)
    running.job.done = len(targets)
    left = sum(item["error"] == cancelled_before().message for item in answer["failed"])
    if left:
        running.cancel(cancelled_with(answer, left).message, answer)
    else:
        running.finish(answer)


def _boot(names: list[str], system: str) -> None:
    """What a batch has made is also what its workers boot; those that boot it already are not touched."""
    booting = set(
        selectors.workers().filter(default_os=system).values_list("pk", flat=True)
    )
    names = [name for name in names if name not in booting]
    if not names:
        return
    with (
        writing(actor=SYSTEM, op="worker.boot.set") as tx,
        tx.yaml("workers").together(),
    ):
        for name in names:
            try:
                record_put(tx, name, {**record_get(tx, name), "default_os": system})
            except ApplicationError:
                continue  # gone, or broken by hand, meanwhile
            tx.log(worker_id=name, os=system)


def deletion_ended(running: Running) -> None:
    """A batch of deletions, once nothing of it is under way: which workers are gone."""
    about = running.job.about
    names = [str(name) for name in about.get("worker_ids", [])]
    there = selectors.hostnames_of(names)
    under_way = selectors.under_way().values_list("worker_id", flat=True)
    if not there.keys().isdisjoint(under_way):
        return
    hostnames = dict(about.get("hostnames", []))
    still_there = NOT_DELETED if hostnames else NOT_TRIED
    answer: dict[str, list[dict[str, Any]]] = {"succeeded": [], "failed": []}
    for name in names:
        if name in there or not hostnames.get(name):
            words = still_there if name in there else f"there is no worker {name!r}"
            answer["failed"].append({"worker_id": name, "error": words})
        else:
            item = {"worker_id": name, "hostname": hostnames[name]}
            answer["succeeded"].append(item)
    running.job.done = len(names)
    running.finish(answer)


def reset_ended(running: Running) -> None:
    """A reset ends as its node's job does; the record then says which master the disk is a clone of."""
    about = running.job.about
    agent = agent_find(str(about.get("agent", "")))
    name, system = str(about.get("worker_id", "")), str(about.get("os", ""))

    def recorded(_: Any) -> dict[str, Any]:
        source = made_from(str(about["master"]))
        disk = selectors.disk_of(name, system)
        if disk is not None and disk.iqn == about["iqn"] and disk.source != source:
            with writing(actor=SYSTEM, op="worker.disk.reset") as tx:
                disk_change(tx, name, system, source=source)
                tx.log(worker_id=name, os=system, agent=disk.agent, iqn=disk.iqn)
        return selectors.record_of(selectors.worker_get(name))

    if agent is None or not end_as(running, agent, recorded):
        running.fail(status=503, detail=RESTARTED)
