"""What goes to the nodes themselves: masters, targets, disks and CDs of one node. Never called inside `index.writing()`."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from django.conf import settings

from agents import selectors
from agents.client import NodeClient
from agents.models import Agent
from agents.protocol.access import ACL, CHAP
from agents.protocol.answers import Created, ScanResult, Target, how_made
from agents.protocol.filenames import check_filename, check_iso, check_master
from agents.protocol.requests import CdRequest, DiskRequest
from agents.protocol.systems import CD, DISK
from agents.scheduler import check_named_node
from agents.services import owners_on
from agents.together import ask_all
from agents.watched import create_disk
from audit.services import record_quietly
from ipxeready.actors import OPERATOR, VIEWER, Actor
from ipxeready.errors import (
    ApplicationError,
    Conflict,
    Invalid,
    NodeRefused,
    UpstreamFailed,
)
from ipxeready.jobs.watch import NOBODY, Watch
from ipxeready.said import joined, said
from ipxeready.storage.iqn import IMAGE_SUFFIX, check_iqn
from ipxeready.storage.sizes import parse_size


def live(
    agents: list[Agent], *, timeout: float | None = None
) -> dict[str, dict[str, Any]]:
    """`health` (`ok`, `disabled` or the error) and `capabilities` (or None) of each node, asked side by side."""
    limit = _limit() if timeout is None else timeout
    answers = ask_all(
        [agent for agent in agents if agent.enabled],
        lambda agent: NodeClient(agent, timeout=limit).capabilities(),
        limit,
    )
    found: dict[str, dict[str, Any]] = {}
    for agent in agents:
        answer = answers.get(agent.id)
        if answer is None:
            found[agent.id] = {"health": "disabled", "capabilities": None}
        elif isinstance(answer, ApplicationError):
            found[agent.id] = {"health": words_of(answer), "capabilities": None}
        else:
            found[agent.id] = {"health": "ok", "capabilities": answer}
    return found


def masters_list(*, actor: Actor) -> dict[str, Any]:
    """The masters of every enabled disk node; a dead one only loses its own. UpstreamFailed when all are dead."""
    actor.require(VIEWER)
    nodes = selectors.agents_enabled_for_disks()
    with audited(actor, "master.list") as note:
        answers = ask_all(nodes, lambda agent: NodeClient(agent).masters(), _limit())
        failed = {
            name: answer
            for name, answer in answers.items()
            if isinstance(answer, ApplicationError)
        }
        if failed and len(failed) == len(nodes):
            words = joined("; ", *map(words_of, failed.values()))
            raise UpstreamFailed(
                said("no node answered: {words}", words=words), code="agent.all_failed"
            )
        if failed:
            note["failed"] = sorted(failed)
    entries = []
    for agent in nodes:
        answer = answers[agent.id]
        entry: dict[str, Any] = {
            "agent": agent.id,
            "iscsi_server": selectors.iscsi_server_of(agent),
            "masters": [],
        }
        if isinstance(answer, ApplicationError):
            entry["error"] = words_of(answer)
        else:
            entry["masters"] = [
                {key: master.get(key) for key in ("name", "size", "mtime")}
                | ({"problem": master["problem"]} if master.get("problem") else {})
                for master in answer
            ]
        entries.append(entry)
    return {"agents": entries}


def luns_list(*, actor: Actor, agent_id: str) -> list[Target]:
    """The targets of one node."""
    actor.require(VIEWER)
    agent = selectors.agent_get(agent_id)
    with audited(actor, "lun.list", agent=agent.id):
        return NodeClient(agent).targets()


def lun_create_disk(
    *,
    actor: Actor,
    agent_id: str,
    iqn: str,
    filename: str | None = None,
    master: str | None = None,
    size: int | str | None = None,
    watch: Watch = NOBODY,
) -> Created:
    """Make and export a disk that belongs to no worker."""
    agent, request = lun_disk_check(
        actor=actor,
        agent_id=agent_id,
        iqn=iqn,
        filename=filename,
        master=master,
        size=size,
    )
    with audited(actor, "lun.create_disk", agent=agent.id, **request.told()) as note:
        made = create_disk(agent, request, watch)
        note |= how_made(made)
    return made


def lun_disk_check(
    *,
    actor: Actor,
    agent_id: str,
    iqn: str,
    filename: str | None = None,
    master: str | None = None,
    size: int | str | None = None,
) -> tuple[Agent, DiskRequest]:
    """What is refused before the node is asked; the node, and what it is asked."""
    actor.require(OPERATOR)
    agent = selectors.agent_get(agent_id)
    if (master is None) == (size is None):
        raise Invalid(
            said("give exactly one of master (clone it) and size (an empty disk)"),
            code="disk.source",
        )
    request = DiskRequest(
        iqn=check_iqn(iqn),
        master=None if master is None else check_master(master),
        size=None if size is None else parse_size(size),
        filename=None
        if filename is None
        else check_filename(filename, suffix=IMAGE_SUFFIX, field="filename"),
        access=_of_nobody(agent),
    )
    check_named_node(agent, DISK)
    return agent, request


def agent_create_disk(
    *,
    actor: Actor,
    agent: Agent,
    request: DiskRequest,
    worker_id: str | None = None,
    watch: Watch = NOBODY,
) -> Created:
    """Make and export a disk for a worker; the caller has reserved it in the ledger and confirms it there."""
    with audited(
        actor,
        "agent.create_disk" if request.import_ is None else "image.import",
        worker_id=worker_id,
        agent=agent.id,
        **request.told(),
    ) as note:
        made = create_disk(agent, request, watch)
        note |= how_made(made)
    return made


def lun_create_cd(
    *, actor: Actor, agent_id: str, iso: str, iqn: str | None = None
) -> Created:
    """Export an ISO of one node as a CD."""
    actor.require(OPERATOR)
    agent = selectors.agent_get(agent_id)
    request = CdRequest(
        iso=check_iso(iso),
        iqn=None if iqn is None else check_iqn(iqn),
        # An ISO under its own name is for all machines.
        access=None if iqn is None else _of_nobody(agent),
    )
    check_named_node(agent, CD)
    with audited(actor, "lun.create_cd", agent=agent.id, **request.told()):
        return NodeClient(agent).create_cd(request)


def lun_delete(
    *,
    actor: Actor,
    agent_id: str,
    iqn: str,
    delete_file: bool = False,
    ignore_missing: bool = False,
    force: bool = False,
) -> dict[str, Any]:
    """Take a target off a node, with its image if asked; the node refuses while a session is open.

    The image of a target that a worker's record names only goes with `force`: it is that worker's disk. The target
    alone may go, as the image stays and can be exported again; the audit names the worker.
    """
    actor.require(OPERATOR)
    agent = selectors.agent_get(agent_id)
    name = check_iqn(iqn)
    owners = owners_on(agent.id, [name]).get(name, [])
    if owners and delete_file and not force:
        raise Conflict(
            said(
                "delete_file: {name} belongs to {owners}: delete the disk there, which mends "
                "the record too. force=true deletes target and image all the same, and cuts "
                "off who is connected.",
                name=name,
                owners=", ".join(owners),
            ),
            code="target.owned",
        )
    with audited(
        actor,
        "lun.delete",
        agent=agent.id,
        iqn=name,
        delete_file=delete_file,
        force=force or None,
    ) as note:
        answer: dict[str, Any] = {"deleted": name, "delete_file": delete_file}
        if owners:
            note["workers"] = owners
        try:
            done = NodeClient(agent).delete(name, delete_file=delete_file, force=force)
            if done.get("closed"):
                answer["closed"] = note["closed"] = done["closed"]
        except NodeRefused as error:
            if error.status != 404 or not ignore_missing:
                raise
            answer["ignored_missing"] = note["ignored_missing"] = True
    return answer


def lun_scan(*, actor: Actor, agent_id: str) -> ScanResult:
    """Let a node export what has no target."""
    actor.require(OPERATOR)
    agent = selectors.agent_get(agent_id)
    with audited(actor, "lun.scan", agent=agent.id) as note:
        result = NodeClient(agent).scan(_of_nobody(agent))
        note["created"] = len(result["created"])
        note["skipped"] = len(result["skipped"])
    return {"created": result["created"], "skipped": result["skipped"]}


def _of_nobody(agent: Agent) -> str:
    """The access to a target that belongs to no worker: there is no secret for it, so chap is acl there."""
    return ACL if agent.access == CHAP else agent.access


def words_of(error: ApplicationError) -> str:
    """An error of a node in words for a list."""
    return error.error if isinstance(error, NodeRefused) else error.message


def _limit() -> float:
    """Seconds for one quick question to many nodes."""
    return float(settings.IPXE.agent_timeout)


@contextlib.contextmanager
def audited(actor: Actor, op: str, **fields: Any) -> Iterator[dict[str, Any]]:
    """One audit line, whichever way it ends; what the caller notes goes with it.

    Quietly: the node has done it or not, and the answer says so even when the trail cannot be written.
    """
    note: dict[str, Any] = {}
    try:
        yield note
    except ApplicationError as error:
        record_quietly(
            actor=actor,
            op=op,
            status="failed",
            **{**fields, **note},
            error=words_of(error),
        )
        raise
    record_quietly(actor=actor, op=op, **{**fields, **note})
