"""Reading jobs: one, or the list, as callers see them."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from django.conf import settings

from ipxeready.actors import VIEWER, Actor
from ipxeready.errors import Invalid
from ipxeready.said import said
from ipxeready.storage.jobs import ENDED, STATES, Job, JobStore


def store() -> JobStore:
    """The control plane's jobs."""
    return _store(settings.IPXE_LAYOUT.jobs)


@lru_cache(maxsize=16)
def _store(folder: Path) -> JobStore:
    return JobStore(folder)


def job_get(*, actor: Actor, job_id: str) -> Job:
    """The job of that id, or NotFound."""
    actor.require(VIEWER)
    return store().get(job_id)


def jobs(
    *, actor: Actor, state: str | None = None, kind: str | None = None
) -> list[Job]:
    """The jobs, newest first; with these only, if given."""
    actor.require(VIEWER)
    if state is not None and state not in STATES:
        raise Invalid(
            said("must be one of {choices}", choices=", ".join(STATES)), field="state"
        )
    return [
        job
        for job in store().all()
        if state in (None, job.state) and kind in (None, job.kind)
    ]


def unfinished_about(*, actor: Actor, worker_id: str) -> list[Job]:
    """The jobs under way that are about this worker, alone or among others, newest first."""
    actor.require(VIEWER)
    return [job for job in store().unfinished() if worker_id in _workers(job.about)]


def _workers(about: dict[str, Any]) -> set[str]:
    """The workers that a job is about; `targets` are pairs of a worker and a node."""
    found = [about.get("worker_id"), *(about.get("worker_ids") or [])]
    found += [pair[0] for pair in about.get("targets") or [] if pair]
    return {str(name) for name in found if name}


def shown(job: Job) -> dict[str, Any]:
    """A job for callers: `cancelling` while it has been asked to end and has not."""
    told = job.public()
    told["cancelling"] = job.state not in ENDED and store().wished(job.id)
    return told


def listed(job: Job) -> dict[str, Any]:
    """A job in a list: what may be long of it (the result, lists of what it is about) is in its own answer."""
    told = shown(job)
    del told["result"]
    told["about"] = {
        name: value for name, value in job.about.items() if not isinstance(value, list)
    }
    return told
