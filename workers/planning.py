"""Disks for many workers before they are made: who is chosen, which node each goes to, what will become of each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agents.masters import MastersOffer, masters_offered
from agents.protocol.systems import DISK
from agents.scheduler import check_named_node
from agents.selectors import agent_get
from ipxeready.actors import OPERATOR, Actor
from ipxeready.errors import ApplicationError, Invalid
from ipxeready.said import said
from workers import selectors
from workers.choices import DiskType
from workers.disks import DiskSpec
from workers.models import Disk
from workers.placing import in_turn, place_disks

MAKE = "make"
SKIP = "skip"
REFUSE = "refuse"

#: Worker and node; a worker without a node goes where there is room.
Chosen = Mapping[str, str]


@dataclass(frozen=True)
class Step:
    """One worker of the plan."""

    worker_id: str
    node: str
    fate: str
    """`make`, `skip` (has such a disk, on `node`) or `refuse` (because of `why`)."""
    why: str = ""


@dataclass
class Plan:
    """What will happen, by worker; nothing of it may begin while there is a `problem`."""

    steps: list[Step] = field(default_factory=list)
    offer: MastersOffer | None = None
    problem: ApplicationError | None = None

    def number(self, fate: str) -> int:
        """How many workers have that fate."""
        return sum(step.fate == fate for step in self.steps)

    def by_node(self) -> dict[str, int]:
        """New disks of each node."""
        return dict(Counter(step.node for step in self.steps if step.fate == MAKE))

    def targets(self) -> list[tuple[str, str]]:
        """What `disks_work` takes. Workers that will be skipped are named too, so that the result tells of everyone."""
        return [(step.worker_id, step.node) for step in self.steps if step.node]


@dataclass(frozen=True)
class Count:
    """A choice in numbers."""

    chosen: int
    on: dict[str, int]
    """Workers by node; those without one have the empty name."""
    present: int
    """Workers that have such a disk already."""


def count_chosen(chosen: Chosen, system: str = "") -> Count:
    """How many are chosen, for which nodes, and how many have a disk of this system already."""
    return Count(
        chosen=len(chosen),
        on=dict(sorted(Counter(chosen.values()).items())),
        present=len(disks_present(list(chosen), system)) if system else 0,
    )


def shared_out(chosen: Chosen, nodes: Sequence[str]) -> dict[str, str]:
    """The chosen with these nodes taking turns (one takes them all): the same call gives the same plan."""
    if not nodes:
        raise Invalid(said("choose the nodes that take them"), field="nodes")
    return dict(in_turn(sorted(chosen), nodes))


def plan_disks(*, actor: Actor, spec: DiskSpec, chosen: Chosen) -> Plan:
    """What `disks_work` would do with each of the chosen. Asks nodes for their masters and their room."""
    actor.require(OPERATOR)
    names = sorted(chosen)
    there = {worker.worker_id: worker for worker in selectors.workers_of(names)}
    present = disks_present(names, spec.os)
    faults = _faults({chosen[name] for name in names if chosen[name]})
    plan = Plan()
    wanting = [
        there[name]
        for name in names
        if name in there and name not in present and not chosen[name]
    ]
    placed: dict[str, str] = {}
    if spec.type == DiskType.MASTER:
        plan.offer, plan.problem = _offer(actor, spec, chosen, present)
    try:
        if wanting and plan.problem is None:
            placed = dict(place_disks(workers=wanting, spec=spec))
    except ApplicationError as error:
        plan.problem = error
    for name in names:
        disk = present.get(name)
        node = chosen[name] or placed.get(name, "")
        if name not in there:
            why = selectors.no_worker(name).message
            plan.steps.append(Step(name, node, REFUSE, why))
        elif disk is not None and not disk.status:
            plan.steps.append(Step(name, disk.agent, SKIP))
        elif disk is not None:
            plan.steps.append(Step(name, disk.agent, REFUSE, disk.status))
        elif node in faults:
            plan.steps.append(Step(name, node, REFUSE, faults[node]))
        else:
            plan.steps.append(Step(name, node, MAKE))
    return plan


def _offer(
    actor: Actor, spec: DiskSpec, chosen: Chosen, present: Mapping[str, Disk]
) -> tuple[MastersOffer | None, ApplicationError | None]:
    """The masters of the nodes that are to clone, and why this one is not among them."""
    nodes = {node for name, node in chosen.items() if node and name not in present}
    try:
        offer = masters_offered(actor=actor, nodes=sorted(nodes))
    except ApplicationError as error:
        return None, error
    try:
        offer.check(spec.name or "")
    except ApplicationError as error:
        return offer, error
    return offer, None


def _faults(nodes: set[str]) -> dict[str, str]:
    """Why some of these nodes take no disks."""
    found = {}
    for name in nodes:
        try:
            check_named_node(agent_get(name), DISK)
        except ApplicationError as error:
            found[name] = error.message
    return found


def disks_present(names: Sequence[str], system: str) -> dict[str, Disk]:
    """The disks of this system that these workers have or are being given."""
    found: dict[str, Disk] = {}
    for start in range(0, len(names), selectors.PART):
        part = names[start : start + selectors.PART]
        for disk in Disk.objects.filter(worker_id__in=part, os=system):
            found[disk.worker_id] = disk
    return found
