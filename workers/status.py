"""What is really there of a worker: its binding in the hosts file and its targets on the nodes, asked side by side."""

from __future__ import annotations

from typing import Any

from django.conf import settings

from agents.client import NodeClient
from agents.nodes import words_of
from agents.protocol.answers import Target
from agents.selectors import agents as all_agents
from agents.together import ask_all
from ipxeready.actors import VIEWER, Actor
from ipxeready.errors import ApplicationError
from workers import selectors
from workers.access import wanted
from workers.models import Cd, Disk, Worker

_Answers = dict[str, list[Target] | ApplicationError]


def worker_status(*, actor: Actor, worker_id: str) -> dict[str, Any]:
    """`{worker, actual: {dnsmasq, disks, cd}}`; a node that does not answer leaves `exists` null and says why."""
    actor.require(VIEWER)
    worker = selectors.worker_get(worker_id)
    disks = selectors.disks_of(worker.worker_id)
    cd = selectors.cd_of(worker.worker_id)
    names = {disk.agent for disk in disks} | ({cd.agent} if cd else set())
    answers: _Answers = ask_all(
        all_agents().filter(pk__in=names),
        lambda agent: NodeClient(agent).targets(),
        settings.IPXE.agent_timeout,
    )
    return {
        "worker": selectors.record_of(worker),
        "actual": {
            "dnsmasq": _binding(worker),
            "disks": [
                {
                    "os": disk.os,
                    "access": wanted(worker, disk),
                    **_target(disk, answers),
                }
                for disk in disks
            ],
            "cd": {"access": wanted(worker, cd), **_target(cd, answers)}
            if cd
            else None,
        },
    }


def _binding(worker: Worker) -> dict[str, Any] | None:
    """What dnsmasq is told: the name and its MAC, all of them where there are several."""
    macs = selectors.macs_of(worker.hostname)
    if not macs:
        return None
    more = {"macs": macs} if len(macs) > 1 else {}
    return {"hostname": worker.hostname, "mac": macs[0], **more}


def _target(thing: Disk | Cd, answers: _Answers) -> dict[str, Any]:
    answer = answers.get(thing.agent)
    if answer is None:
        error = f"there is no node {thing.agent} in the registry"
        return {"exists": None, "target": None, "error": error}
    if isinstance(answer, ApplicationError):
        return {"exists": None, "target": None, "error": words_of(answer)}
    target = next((each for each in answer if each["iqn"] == thing.iqn), None)
    return {"exists": target is not None, "target": target}
