"""Deleting a worker: its CD and disks on the nodes, then ledger, binding and reload in one write."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

from django.conf import settings

from agents.client import NodeClient
from agents.selectors import agent_get
from ipxeready.actors import OPERATOR, Actor
from ipxeready.errors import (
    ApplicationError,
    Conflict,
    NodeRefused,
    NotFound,
    Unavailable,
)
from ipxeready.index import writing
from ipxeready.storage.inflight import claim
from workers import selectors
from workers.choices import DELETING
from workers.disks import (
    Removal,
    change_disk,
    drop_disk,
    refuse_in_use,
    remove_on_node,
)
from workers.dnsmasq import reload_after
from workers.models import Cd
from workers.services import removed


def worker_delete(*, actor: Actor, worker_id: str, removal: Removal) -> dict[str, Any]:
    """Delete a worker with all that belongs to it: `{deleted, delete_disk, dnsmasq_removed}`.

    Nodes and sessions are asked before anything goes. What was done on a node before a failure stays recorded.
    """
    actor.require(OPERATOR)
    worker = selectors.worker_get(worker_id)
    name = worker.worker_id
    with ExitStack() as stack:
        disks = selectors.disks_of(name)
        for disk in disks:
            mark = f"disk-{name}.{disk.os}"
            if not stack.enter_context(claim(settings.IPXE_LAYOUT.run, mark)):
                raise Conflict(
                    f"the {disk.os} disk of {name} is being worked on; try again"
                )
        refuse_in_use(disks, removal)
        cd = selectors.cd_of(name)
        if cd is not None:
            _refuse_cd_in_use(cd, removal)
        if disks or cd:
            with writing(actor=actor, op="delete_worker") as tx:
                for disk in disks:
                    change_disk(tx, name, disk.os, status=DELETING)
                tx.log(status="started", worker_id=name, hostname=worker.hostname)
        done: list[str] = []
        try:
            if cd is not None:
                _remove_cd(cd, removal)
                done.append(cd.iqn)
            for disk in disks:
                remove_on_node(disk, removal)
                done.append(disk.iqn)
                with writing(actor=actor, op="worker.disk.delete") as tx:
                    drop_disk(tx, name, disk.os)
                    tx.log(
                        worker_id=name,
                        agent=disk.agent,
                        os=disk.os,
                        iqn=disk.iqn,
                        delete_file=removal.delete_file,
                    )
        except ApplicationError as error:
            _stop(actor, name, disks, done, error)
            raise
        return _forget(actor, name, removal)


def _refuse_cd_in_use(cd: Cd, removal: Removal) -> None:
    try:
        targets = NodeClient(agent_get(cd.agent)).targets()
    except (Unavailable, NotFound) as error:
        if removal.forget:
            return
        raise Unavailable(
            f"node {cd.agent} of the install CD cannot be asked: {error.message}. Nothing was "
            "changed. forget=true takes it off the ledger only.",
            code="agent.unreachable",
        ) from error
    sessions = [s for t in targets if t["iqn"] == cd.iqn for s in t["sessions"]]
    if sessions and not removal.force:
        who = ", ".join(s["initiator"] for s in sessions)
        raise Conflict(f"the install CD is in use by {who}; force=true cuts it off")


def _remove_cd(cd: Cd, removal: Removal) -> None:
    try:
        NodeClient(agent_get(cd.agent)).delete(
            cd.iqn, delete_file=False, force=removal.force
        )
    except NodeRefused as error:
        if error.status != 404:
            raise
    except (Unavailable, NotFound):
        if not removal.forget:
            raise


def _stop(
    actor: Actor, name: str, disks: list[Any], done: list[str], error: ApplicationError
) -> None:
    """A node said no: the disks that are left are there as before."""
    with writing(actor=actor, op="delete_worker") as tx:
        if isinstance(error, NodeRefused):
            for disk in disks:
                if disk.iqn not in done:
                    change_disk(tx, name, disk.os, status=disk.status or None)
        tx.log(
            status="failed",
            worker_id=name,
            done=done or None,
            error=error.message[:500],
        )


def _forget(actor: Actor, name: str, removal: Removal) -> dict[str, Any]:
    with writing(actor=actor, op="delete_worker") as tx:
        worker = selectors.worker_get(name)
        left = selectors.disks_of(name)
        if left:
            raise Conflict(
                f"{name} was given a {left[0].os} disk meanwhile; delete it again to go on"
            )
        tx.yaml("workers").remove(name)
        gone = tx.hosts.unbind_hostname(worker.hostname)
        reloading = reload_after(tx) if gone else None
        tx.log(
            worker_id=name,
            hostname=worker.hostname,
            delete_disk=removal.delete_file,
            **removed(gone),
        )
    answer = {
        "deleted": name,
        "delete_disk": removal.delete_file,
        "dnsmasq_removed": bool(gone),
    }
    return answer | removed(gone) | (reloading.answer() if reloading else {})
