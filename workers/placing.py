"""Which node each of many new disks goes to: named nodes in turn, or the scheduler's choice for each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from agents.intake import node_of_image
from agents.protocol.systems import DISK
from agents.scheduler import check_named_node, pick_disk_nodes
from agents.selectors import agent_get
from agents.selectors import agents as all_agents
from ipxeready.errors import Invalid
from ipxeready.said import said
from workers import selectors
from workers.choices import DiskType
from workers.disks import DiskSpec
from workers.models import Disk, Worker


def in_turn(ids: Sequence[str], nodes: Sequence[str]) -> list[tuple[str, str]]:
    """(worker_id, node) with the nodes taking turns; refuses a node that takes no disks."""
    named = [agent_get(name) for name in nodes]
    for node in named:
        check_named_node(node, DISK)
    return [(name, named[at % len(named)].id) for at, name in enumerate(ids)]


def place_disks(
    *, workers: Sequence[Worker], spec: DiskSpec, nodes: Sequence[str] = ()
) -> list[tuple[str, str]]:
    """(worker_id, node) for each worker, in their order; for `disk_batch`.

    Named nodes take turns, so that the same call gives the same plan; without them each worker gets what the
    scheduler picks. A worker that has such a disk stays with that node: the batch skips it.
    """
    ids = [worker.worker_id for worker in workers]
    if nodes:
        return in_turn(ids, nodes)
    if spec.type == DiskType.EXISTING:
        raise Invalid(
            said("is needed for type existing: where the images lie"), field="node"
        )
    if spec.type == DiskType.IMPORT:
        found = node_of_image(name=spec.name or "", nodes=list(all_agents()))
        return [(name, found.id) for name in ids]
    disks: dict[str, dict[str, str]] = defaultdict(dict)
    for worker_id, os, agent in Disk.objects.values_list("worker_id", "os", "agent"):
        disks[worker_id][os] = agent
    places = {name: disks[name][spec.os] for name in ids if spec.os in disks[name]}
    wanting = [name for name in ids if name not in places]
    if wanting:
        picked = pick_disk_nodes(
            nodes=list(all_agents()),
            need_bytes=spec.size,
            master=spec.name if spec.type == DiskType.MASTER else None,
            own_nodes=[set(disks[name].values()) for name in wanting],
            disk_counts=selectors.disk_counts(),
        )
        places |= {name: agent.id for name, agent in zip(wanting, picked, strict=True)}
    return [(name, places[name]) for name in ids]
