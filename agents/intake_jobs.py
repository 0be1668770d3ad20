"""What takes long about images as jobs: conversion, and the end of an upload; and how one ends whose process is gone."""

from __future__ import annotations

from typing import Any

from agents import intake
from agents.intake_client import IntakeClient
from agents.selectors import agent_find
from agents.watched import end_as, look, open_if_unknown
from ipxeready.actors import Actor
from ipxeready.errors import ApplicationError
from ipxeready.jobs.services import Work
from ipxeready.jobs.watch import Watch
from ipxeready.storage.jobs import BYTES, ENDED, Running

CONVERT = "image.convert"
FINISH = "image.upload"

_NOT_MADE = (
    "the service was restarted, and the node has no such file: not made. Send it again."
)


def convert_work(
    *,
    actor: Actor,
    agent_id: str,
    source: str,
    name: str,
    format: str | None = None,
) -> Work:
    """An image from a file of another format."""
    agent = intake.convert_check(
        actor=actor, agent_id=agent_id, source=source, name=name, format=format
    )

    def do(watch: Watch) -> dict[str, Any]:
        with open_if_unknown(watch):
            done = intake.image_convert(
                actor=actor,
                agent_id=agent.id,
                source=source,
                name=name,
                format=format,
                watch=watch,
            )
        return dict(done)

    def check() -> None:
        intake.convert_refused(agent, source, name)

    about = {"agent": agent.id, "source": source, "name": name}
    return Work(
        kind=CONVERT,
        do=do,
        about=about,
        same=[about, format],
        unit=BYTES,
        check=check,
    )


def finish_work(
    *,
    actor: Actor,
    agent_id: str,
    upload_id: str,
    name: str | None = None,
    sha256: str | None = None,
) -> Work:
    """The end of an upload: its file is read once for the checksum."""
    agent = intake.finish_check(
        actor=actor, agent_id=agent_id, upload_id=upload_id, name=name, sha256=sha256
    )

    def do(watch: Watch) -> dict[str, Any]:
        with open_if_unknown(watch):
            done = intake.upload_finish(
                actor=actor,
                agent_id=agent.id,
                upload_id=upload_id,
                name=name,
                sha256=sha256,
                watch=watch,
            )
        return dict(done)

    about = {"agent": agent.id, "upload": upload_id, "name": name}
    return Work(kind=FINISH, do=do, about=about, same=[about, sha256], unit=BYTES)


def ended(running: Running) -> None:
    """Whether the node has the file after all; while it is at it, or does not answer, the job stays open."""
    about = running.job.about
    agent = agent_find(str(about.get("agent", "")))
    name = about.get("name")
    if agent is None:
        running.fail(status=503, detail=_NOT_MADE)
        return
    job = look(running, agent)
    if job is not None and job["state"] not in ENDED:
        return
    if end_as(running, agent, made=dict):
        return
    client = IntakeClient(agent)
    try:
        making = client.capabilities().get("making") or []
        images = client.images()["images"]
        waiting = {upload["id"] for upload in client.uploads()}
    except ApplicationError:
        return
    image = next((each for each in images if each["name"] == name), None)
    if name and str(name).lower() in making:
        return
    if image is not None and about.get("upload") not in waiting:
        running.finish({"name": image["name"], "size": image["size"]})
    else:
        running.fail(status=503, detail=_NOT_MADE)
