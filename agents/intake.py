"""The rules for the files of a node's image directory: who may see, bring, convert and delete them. Never called inside `index.writing()`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.conf import settings

from agents import intake_watched as watched
from agents import selectors
from agents.client import LONG
from agents.intake_client import UPLOAD_ID, IntakeClient
from agents.models import Agent
from agents.nodes import audited
from agents.protocol.answers import Converted, ImageDeleted, ImageList, Upload, Uploaded
from agents.protocol.filenames import (
    check_format,
    check_image,
    check_sha256,
    check_source,
    check_upload,
)
from agents.protocol.limits import MAX_PIECE
from agents.services import owners_on
from agents.together import ask_all
from audit.services import record_quietly
from ipxeready.actors import ADMINISTRATOR, OPERATOR, VIEWER, Actor
from ipxeready.errors import ApplicationError, Conflict, Invalid, NodeRefused, NotFound
from ipxeready.jobs.watch import NOBODY, Watch
from ipxeready.said import said
from ipxeready.storage import iqn as iqns


def image_list(
    *, actor: Actor, agent_id: str, timeout: float | None = None
) -> ImageList:
    """Every file of a node's image directory; with `timeout` a node that hangs is not waited for longer, as pages want it."""
    actor.require(VIEWER)
    agent = selectors.agent_get(agent_id)
    if timeout is None:
        return IntakeClient(agent).images(timeout=LONG)
    answer = ask_all(
        [agent], lambda node: IntakeClient(node, timeout=timeout).images(), timeout
    )
    found = answer[agent.id]
    if isinstance(found, ApplicationError):
        raise found
    return found


def image_delete(
    *, actor: Actor, agent_id: str, name: str, master: bool = False
) -> ImageDeleted:
    """Remove a file of a node that nobody uses. A master is an administrator's to delete, and only by saying that it is one.

    Conflict for the image of a disk in a worker's record, even when its target is gone: the record would point to nothing.
    """
    actor.require(OPERATOR)
    if master or iqns.is_master(name):
        actor.require(ADMINISTRATOR)
    agent = selectors.agent_get(agent_id)
    check_name(name)
    if owners := owners_of(agent, name):
        raise Conflict(
            said(
                "{name} is the disk of {owners}: delete the disk there, which mends the "
                "record too",
                name=name,
                owners=", ".join(owners),
            ),
            code="image.owned",
        )
    with audited(
        actor, "image.delete", agent=agent.id, name=name, master=master or None
    ) as note:
        done = IntakeClient(agent).image_delete(name, master=master)
        note["freed"] = done.get("freed")
    return {"deleted": done["deleted"], "freed": done.get("freed", 0)}


def image_convert(
    *,
    actor: Actor,
    agent_id: str,
    source: str,
    name: str,
    format: str | None = None,
    watch: Watch = NOBODY,
) -> Converted:
    """Make an image from a file of another format; the file stays."""
    agent = convert_check(
        actor=actor, agent_id=agent_id, source=source, name=name, format=format
    )
    with audited(
        actor, "image.convert", agent=agent.id, source=source, name=name
    ) as note:
        done = watched.image_convert(agent, source, name, format, watch)
        note.update({key: done.get(key) for key in ("format", "size", "seconds")})
    return done


def convert_check(
    *,
    actor: Actor,
    agent_id: str,
    source: str,
    name: str,
    format: str | None = None,
) -> Agent:
    """What is refused before the node is asked; the node."""
    actor.require(OPERATOR)
    check_source(source)
    check_image(name)
    if format is not None:
        check_format(format)
    return selectors.agent_get(agent_id)


def convert_refused(agent: Agent, source: str, name: str) -> None:
    """Refuse what the node would refuse by its list of files: a source that is missing, a name that is taken."""
    files = [
        image["name"] for image in IntakeClient(agent).images(timeout=LONG)["images"]
    ]
    if source not in files:
        words = said("there is no {source} in the image directory", source=source)
        raise NodeRefused(agent=agent.id, status=404, error=words)
    if name.lower() in map(str.lower, files):
        words = said(
            "the image {name} exists already; it was left as it is. Take another name, or delete it first.",
            name=name,
        )
        raise NodeRefused(agent=agent.id, status=409, error=words)


def upload_list(*, actor: Actor, agent_id: str) -> list[Upload]:
    """The unfinished uploads of a node."""
    actor.require(VIEWER)
    return IntakeClient(selectors.agent_get(agent_id)).uploads()


def upload_get(*, actor: Actor, agent_id: str, upload_id: str) -> Upload:
    """How far one is."""
    actor.require(VIEWER)
    return _client(agent_id, upload_id).upload(upload_id)


def upload_create(
    *,
    actor: Actor,
    agent_id: str,
    name: str,
    size: int | None = None,
    sha256: str | None = None,
) -> Upload:
    """Begin one; refused here where the name or the checksum can be none."""
    actor.require(OPERATOR)
    check_upload(name)
    digest = check_sha256(sha256) if sha256 else None
    agent = selectors.agent_get(agent_id)
    try:
        made = IntakeClient(agent).upload_create(name, size, digest)
    except ApplicationError as error:
        _tell(actor, agent, "failed", name=name, size=size, error=error.message)
        raise
    _tell(actor, agent, "started", name=name, size=size, upload=made["id"])
    return made


def upload_write(
    *,
    actor: Actor,
    agent_id: str,
    upload_id: str,
    offset: int,
    length: int,
    read: Callable[[int], bytes],
) -> Upload:
    """Hand a piece on to the node while it comes; nothing of it is kept here."""
    actor.require(OPERATOR)
    check_length(length)
    return _client(agent_id, upload_id).upload_write(upload_id, offset, length, read)


def upload_finish(
    *,
    actor: Actor,
    agent_id: str,
    upload_id: str,
    name: str | None = None,
    sha256: str | None = None,
    watch: Watch = NOBODY,
) -> Uploaded:
    """Have it verified and named; the answer has the checksum that the node has read."""
    agent = finish_check(
        actor=actor, agent_id=agent_id, upload_id=upload_id, name=name, sha256=sha256
    )
    with audited(
        actor, "image.upload", agent=agent.id, upload=upload_id, name=name
    ) as note:
        digest = check_sha256(sha256) if sha256 else None
        done = watched.upload_finish(agent, upload_id, name, digest, watch)
        note.update({key: done.get(key) for key in ("name", "size", "sha256")})
    return done


def finish_check(
    *,
    actor: Actor,
    agent_id: str,
    upload_id: str,
    name: str | None = None,
    sha256: str | None = None,
) -> Agent:
    """What is refused before the node is asked; the node."""
    actor.require(OPERATOR)
    if name is not None:
        check_upload(name)
    if sha256:
        check_sha256(sha256)
    return _client(agent_id, upload_id).agent


def upload_delete(*, actor: Actor, agent_id: str, upload_id: str) -> dict[str, Any]:
    """Give one up."""
    actor.require(OPERATOR)
    client = _client(agent_id, upload_id)
    gone = client.upload_delete(upload_id)
    _tell(actor, client.agent, "rollback", upload=upload_id, name=gone.get("name"))
    return {"deleted": gone["deleted"], "name": gone.get("name")}


def check_length(length: int) -> None:
    """Invalid when a piece is none, or too long for one."""
    if not 0 < length <= MAX_PIECE:
        raise Invalid(
            said(
                "a piece has from 1 to {most} bytes (64 MiB), this one {length}; send several",
                most=MAX_PIECE,
                length=length,
            )
        )


def check_name(name: str) -> None:
    """Invalid when it cannot be a file that the list shows."""
    if not name or "/" in name or "\0" in name or name.startswith("."):
        raise Invalid(
            said("{name} is not a file of the image directory", name=repr(name[:80])),
            field="name",
        )


def owners_of(agent: Agent, name: str) -> list[str]:
    """The workers whose records have this file of a node as a disk."""
    stem = name.lower().removesuffix(iqns.IMAGE_SUFFIX)
    try:
        iqn = iqns.join(settings.IPXE.iqn_base, stem)
    except ApplicationError:
        return []
    return owners_on(agent.id, [iqn]).get(iqn, [])


def node_of_image(*, name: str, nodes: list[Agent]) -> Agent:
    """The one node that has this image; NotFound when none has it, Conflict when several have one of that name. Asks the nodes."""
    able = [agent for agent in nodes if agent.enabled and agent.role_disk]
    answers = ask_all(
        able,
        lambda agent: IntakeClient(agent).images()["images"],
        2 * settings.IPXE.agent_timeout,
    )
    having, silent = [], []
    for agent in able:
        answer = answers[agent.id]
        if isinstance(answer, ApplicationError):
            silent.append(agent.id)
        elif any(image["name"] == name for image in answer):
            having.append(agent)
    if len(having) == 1 and not silent:
        return having[0]
    if len(having) > 1:
        names = ", ".join(agent.id for agent in having)
        raise Conflict(
            said(
                "{name} lies on {names}: say which node is meant",
                name=name,
                names=names,
            ),
            field="disk_agent",
        )
    if having:
        raise Conflict(
            said(
                "{name} lies on {agent}; not asked, because unreachable: {silent}: say which "
                "node is meant",
                name=name,
                agent=having[0].id,
                silent=", ".join(silent),
            ),
            field="disk_agent",
        )
    if silent:
        raise NotFound(
            said(
                "no node has an image {name}; not asked, because unreachable: {silent}",
                name=name,
                silent=", ".join(silent),
            ),
            field="name",
        )
    raise NotFound(said("no node has an image {name}", name=name), field="name")


def _client(agent_id: str, upload_id: str) -> IntakeClient:
    agent = selectors.agent_get(agent_id)
    if not UPLOAD_ID.fullmatch(upload_id):
        raise NotFound(
            said("there is no upload {upload}", upload=repr(upload_id[:40])),
            code="upload.missing",
        )
    return IntakeClient(agent)


def _tell(actor: Actor, agent: Agent, status: str, **fields: Any) -> None:
    record_quietly(
        actor=actor, op="image.upload", status=status, agent=agent.id, **fields
    )
