"""Long work on a node for a job of ours: progress goes up, the wish to cancel goes down, and who comes after us can go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from agents.client import NodeClient
from agents.following import Callbacks
from agents.models import Agent
from agents.protocol.answers import Created
from agents.protocol.requests import DiskRequest
from ipxeready.errors import ApplicationError, NodeRefused
from ipxeready.jobs.watch import LeftOpen, Watch
from ipxeready.storage.jobs import BYTES, CANCELLED, DONE, ENDED, FAILED, Running

#: The field of a job's `about` that names the node's job.
NODE_JOB = "node_job"


def create_disk(agent: Agent, request: DiskRequest, watch: Watch) -> Created:
    """Have the node make and export a disk, watched. Raises LeftOpen when this process ends and the node goes on."""
    return NodeClient(agent).create_disk(request, followed(watch))


def reset_disk(agent: Agent, iqn: str, master: str, watch: Watch) -> Created:
    """Have the node give a disk the content of a master again, watched. Raises LeftOpen like `create_disk`."""
    return NodeClient(agent).reset(iqn, master, followed(watch))


def followed(watch: Watch) -> Callbacks:
    """What a client's long call tells `watch`, and asks it."""

    def progress(done: int, total: int | None, unit: str) -> None:
        if watch.leaving():
            raise LeftOpen
        watch.unit(unit or BYTES)
        watch.at(done, total)

    return Callbacks(
        progress=progress,
        stop=watch.cancelled,
        on_job=lambda job_id: watch.note(**{NODE_JOB: job_id}),
    )


def look(running: Running, agent: Agent) -> dict[str, Any] | None:
    """The node's job behind one of ours that lost its process: its progress becomes ours, and our cancelling its own.

    None when there is none, or the node no longer knows it. Raises when the node cannot be asked: what is open stays so.
    """
    job_id = running.job.about.get(NODE_JOB)
    if not isinstance(job_id, str):
        return None
    client = NodeClient(agent)
    try:
        job = client.job(job_id)
        if job["state"] not in ENDED and running.cancelled():
            job = client.job_cancel(job_id)
    except NodeRefused as error:
        if error.status == 404:
            return None
        raise
    now = (job["done"], job["total"], job["unit"] or BYTES)
    ours = running.job
    if now != (ours.done, ours.total, ours.unit):
        ours.done, ours.total, ours.unit = now
        running.save()
    return job


def end_as(
    running: Running, agent: Agent, made: Callable[[Any], Any] | None = None
) -> bool:
    """End a job as its node's job has ended, or leave it open while that goes on; False when there is none to go by.

    `made` makes our result of the node's; without it a node's job that is done says nothing. Raises as `look` does.
    """
    job = look(running, agent)
    if job is None:
        return False
    if job["state"] == CANCELLED:
        running.cancel(
            f"node {agent.id}: the copy was cancelled; nothing is left of it."
        )
    elif job["state"] == FAILED:
        error = NodeClient(agent).job_error(job)
        running.fail(status=error.status, detail=error.detail())
    elif job["state"] == DONE and made is not None:
        running.finish(made(job.get("result")))
    elif job["state"] == DONE:
        return False
    return True


@contextmanager
def open_if_unknown(watch: Watch) -> Iterator[None]:
    """Leave a job open when its node may have done the work, or be at it, although it did not say so."""
    try:
        yield
    except ApplicationError as error:
        unknown = not isinstance(error, NodeRefused) and error.extra.get("sent") is True
        if unknown and watch.may_leave:
            raise LeftOpen from error
        raise
