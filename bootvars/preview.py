"""What a worker's machine will be told at its next boot: for people, without secrets, and nothing is written."""

from __future__ import annotations

import json
from dataclasses import dataclass

from bootvars.credentials import asked_for
from bootvars.render import as_json, script
from bootvars.services import boot_vars
from ipxeready.actors import VIEWER, Actor
from workers import selectors
from workers.models import Worker


@dataclass(frozen=True)
class Preview:
    """The answer to one MAC; to the hostname where no MAC is bound (`mac` empty)."""

    mac: str
    script: str
    json: str
    refused: bool
    #: The machine itself is told a name and a secret besides.
    secret: bool


def previews(*, actor: Actor, worker: Worker) -> list[Preview]:
    """One for each MAC of the worker."""
    actor.require(VIEWER)
    cd = selectors.cd_of(worker.pk)
    disks = [disk for disk in selectors.disks_of(worker.pk) if not disk.status]
    secret = asked_for(worker, [*disks, *([cd] if cd else [])])
    found = []
    for mac in selectors.macs_of(worker.hostname) or [""]:
        answer = boot_vars(
            actor=actor,
            macs=[mac] if mac else [],
            hostnames=[] if mac else [worker.hostname],
            changes=False,
        )
        refused = answer.refused is not None
        found.append(
            Preview(
                mac=mac,
                script=script(answer),
                json=json.dumps(as_json(answer), indent=2),
                refused=refused,
                secret=secret and bool(mac) and not refused,
            )
        )
    return found
