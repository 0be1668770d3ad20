"""Reading workers: records as callers see them, who a MAC is, which names are taken."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from typing import Any, NamedTuple

from django.db.models import Count, Max, QuerySet

from agents.models import Agent
from agents.services import Load, owners_on
from ipxeready.errors import NotFound
from ipxeready.index.compiled import Compiled
from ipxeready.index.kept import Kept
from ipxeready.index.selectors import problems
from ipxeready.said import said
from workers.adapters import serial
from workers.choices import State
from workers.models import Binding, Cd, Disk, Worker

#: Names in one question to the index.
PART = 500

# What each boot and each item of a batch asks.
_by_id = Compiled(lambda name: Worker.objects.filter(pk=name).order_by("pk")[:1])
_named = Compiled(
    lambda hostname: Worker.objects.filter(hostname=hostname).order_by("pk")
)
_bound = Compiled(
    lambda mac: Binding.objects.filter(mac=mac, effective=True).order_by("-pk")[:1]
)
_disks = Compiled(
    lambda worker: Disk.objects.filter(worker_id=worker).order_by("position")
)
_cds = Compiled(lambda worker: Cd.objects.filter(worker_id=worker).order_by("pk")[:1])


def workers() -> QuerySet[Worker]:
    """All workers, by id."""
    return Worker.objects.order_by("worker_id")


def worker_get(worker_id: str) -> Worker:
    """The worker of that id (any case); NotFound otherwise."""
    found = _by_id.first(worker_id.lower())
    if found is None:
        raise no_worker(worker_id)
    return found


def no_worker(worker_id: str) -> NotFound:
    """The refusal of an id that nobody has."""
    return NotFound(
        said("there is no worker {worker_id}", worker_id=repr(worker_id[:80]))
    )


def worker_named(hostname: str) -> Worker | None:
    """The worker with that hostname."""
    return _named.first(hostname.lower())


def workers_named(hostname: str) -> list[Worker]:
    """Every worker with that hostname: more than one only after a hand edit."""
    return _named(hostname.lower())


def binding_of(mac: str) -> Binding | None:
    """What dnsmasq makes of this (normalized) MAC: the line that counts, None when there is none."""
    return _bound.first(mac)


def macs_of(hostname: str) -> list[str]:
    """The MACs bound to a hostname, in the order of the file's line."""
    rows = Binding.objects.filter(hostname=hostname, effective=True).order_by("pk")
    return list(rows.values_list("mac", flat=True))


def macs_by_hostname(hostnames: list[str]) -> dict[str, list[str]]:
    """The MACs bound to each of these hostnames."""
    found: dict[str, list[str]] = defaultdict(list)
    for start in range(0, len(hostnames), PART):
        rows = Binding.objects.filter(
            hostname__in=hostnames[start : start + PART], effective=True
        ).order_by("pk")
        for hostname, mac in rows.values_list("hostname", "mac"):
            found[hostname].append(mac)
    return dict(found)


def _words(model: type[Worker | Disk], column: str) -> frozenset[str]:
    rows: QuerySet[Any] = model._default_manager.order_by(column)
    return frozenset(rows.values_list(column, flat=True).distinct())


#: The systems that are somebody's default, with an empty word where somebody has none.
default_systems = Kept(lambda: _words(Worker, "default_os"))

#: The nodes that the ledger names, whether or not the registry knows them.
nodes_of_disks = Kept(lambda: _words(Disk, "agent"))


def bindings_named(hostname: str) -> list[Binding]:
    """The bindings that give this hostname."""
    return list(Binding.objects.filter(hostname=hostname).order_by("pk"))


def disks_of(worker_id: str) -> list[Disk]:
    """The worker's disks in the order of its record."""
    return _disks(worker_id)


def disk_of(worker_id: str, os: str) -> Disk | None:
    """The worker's disk of that system."""
    return Disk.objects.filter(worker_id=worker_id, os=os).first()


def disk_get(worker_id: str, os: str) -> Disk:
    """The same; NotFound when there is none."""
    disk = disk_of(worker_id, os)
    if disk is None:
        raise NotFound(
            said("worker {worker_id} has no {os} disk", worker_id=worker_id, os=os)
        )
    return disk


def cd_of(worker_id: str) -> Cd | None:
    """The worker's install CD."""
    return _cds.first(worker_id)


def record_of(worker: Worker) -> dict[str, Any]:
    """The record of one worker with `worker_id` and `mac`."""
    return records([worker])[0]


def records(rows: Iterable[Worker]) -> list[dict[str, Any]]:
    """Records with `worker_id` and `mac` (`macs` too where there are several); one query for all bindings."""
    rows = list(rows)
    bound: dict[str, list[str]] = defaultdict(list)
    bindings = Binding.objects.filter(effective=True).order_by("pk")
    if len(rows) <= 200:
        bindings = bindings.filter(hostname__in={row.hostname for row in rows})
    for hostname, mac in bindings.values_list("hostname", "mac"):
        bound[hostname].append(mac)
    found = []
    for row in rows:
        macs = bound.get(row.hostname, [])
        record: dict[str, Any] = {
            "worker_id": row.worker_id,
            "mac": macs[0] if macs else None,
        }
        if len(macs) > 1:
            record["macs"] = macs
        # What the file says never hides what we look up: a hand-written `mac` is not the binding.
        rest = {
            k: v for k, v in row.data.items() if k not in ("worker_id", "mac", "macs")
        }
        found.append(record | rest | {"hostname": row.hostname, "state": row.state})
    return found


def next_serial() -> int:
    """The NN of the next worker-NN: the highest in ledger and bindings plus one."""
    ledger = Worker.objects.aggregate(top=Max("serial"))["top"] or 0
    bound = Binding.objects.aggregate(top=Max("serial"))["top"] or 0
    # A record that does not validate has its name all the same.
    return max(ledger, bound, *(serial(name) or 0 for name in broken_ids()), 0) + 1


def next_worker_id() -> str:
    """The id that a new worker is proposed: the next worker-NN."""
    return f"worker-{next_serial():02d}"


def broken_ids() -> list[str]:
    """Records of the ledger that do not validate."""
    found = problems().filter(source="workers", code="record.broken")
    return list(found.values_list("record", flat=True))


def waiting_without_disk() -> int:
    """How many workers with a name of ours have no disk yet."""
    with_disk = Disk.objects.values("worker_id")
    return (
        Worker.objects.filter(serial__isnull=False)
        .exclude(worker_id__in=with_disk)
        .count()
    )


def sharers(thing: Disk | Cd) -> list[str]:
    """Other workers whose records name the same target on the same machine: a block that was copied by hand."""
    names = owners_on(thing.agent, [thing.iqn]).get(thing.iqn, [])
    return sorted(set(names) - {thing.worker_id})


def target_owners(agent_id: str, iqns: list[str]) -> dict[str, list[str]]:
    """The workers whose records name these targets of a node as their disks or CDs, by IQN."""
    found: dict[str, list[str]] = defaultdict(list)
    for model in (Disk, Cd):
        # By the names alone: hardly two disks have the same, and a node has thousands.
        rows = model.objects.filter(iqn__in=iqns)
        for iqn, name, agent in rows.values_list("iqn", "worker_id", "agent"):
            if agent == agent_id:
                found[iqn].append(name)
    return dict(found)


def _counted() -> dict[str, Load]:
    disks, cds = (
        list(model.objects.order_by().values_list("agent", "worker_id"))
        for model in (Disk, Cd)
    )
    workers = Counter(agent for agent, _ in {*disks, *cds})
    counts = [Counter(agent for agent, _ in rows) for rows in (disks, cds)]
    return {
        agent: Load(counts[0][agent], counts[1][agent], number)
        for agent, number in workers.items()
    }


#: What workers have on each node.
loads = Kept(_counted)


def disk_counts() -> dict[str, int]:
    """Disks by node."""
    by_node = Disk.objects.order_by("agent").values_list("agent")
    return dict(by_node.annotate(number=Count("pk")))


def workers_on(agent: str, most: int | None = None) -> list[str]:
    """Workers with a disk or CD on a node, by id; the first `most`, if given."""
    found: set[str] = set()
    for model in (Disk, Cd):
        rows = model.objects.filter(agent=agent).order_by("worker_id")
        found.update(rows.values_list("worker_id", flat=True).distinct()[:most])
    return sorted(found)[:most]


class Apart(NamedTuple):
    """What ledger and hosts file do not both know."""

    unbound: dict[str, str]
    """Hostname and id of workers to which no MAC is bound."""
    strange: dict[str, str]
    """Hostname and MAC of bindings that belong to no worker."""


def _find_apart() -> Apart:
    named = dict(Worker.objects.order_by("pk").values_list("hostname", "worker_id"))
    bound = dict(
        Binding.objects.filter(effective=True)
        .exclude(hostname="")
        .order_by("-pk")
        .values_list("hostname", "mac")
    )
    return Apart(
        {name: worker for name, worker in named.items() if name not in bound},
        {name: mac for name, mac in bound.items() if name not in named},
    )


#: Where ledger and hosts file do not belong together; nothing is mended by itself.
apart = Kept(_find_apart)


def differences() -> list[str]:
    """The same in words."""
    found = apart()
    unbound = [
        f"worker {worker_id} ({hostname}) has no MAC in dhcp-hosts.conf: no machine boots as "
        f"it. Bind one with PUT /workers/{worker_id}/mac, or delete the worker"
        for hostname, worker_id in found.unbound.items()
    ]
    strange = [
        f"dhcp-hosts.conf binds {mac} to {hostname}, which is the hostname of no worker: it has "
        "no disk. Its next boot adds the record where registration is on, or remove the line"
        for hostname, mac in found.strange.items()
    ]
    return [*unbound, *strange]


class Counts(NamedTuple):
    """How many workers there are, and of each sort."""

    all: int
    states: dict[str, int]
    without_disk: int
    without_default: int


def _count() -> Counts:
    by_state = Worker.objects.order_by("state").values_list("state")
    states = dict(by_state.annotate(number=Count("pk")))
    with_disk = Disk.objects.values("worker_id")
    return Counts(
        all=sum(states.values()),
        states={state: states.get(state, 0) for state in State.values},
        without_disk=Worker.objects.exclude(pk__in=with_disk).count(),
        without_default=Worker.objects.filter(default_os="").count(),
    )


#: The numbers of workers.
counts = Kept(_count)


def under_way() -> QuerySet[Disk]:
    """Disks that are being made or deleted, or were when something ended."""
    # Not `exclude(status="")`: for that SQLite reads every row.
    return Disk.objects.filter(status__gt="").order_by("worker_id", "position")


def _find_homeless() -> tuple[tuple[str, str, str], ...]:
    known = Agent.objects.values("pk")
    return tuple(
        (worker_id, agent, iqn)
        for model in (Disk, Cd)
        for worker_id, agent, iqn in model.objects.exclude(agent__in=known)
        .order_by("worker_id")
        .values_list("worker_id", "agent", "iqn")
    )


#: Worker, node and IQN of disks and CDs whose node is not in the registry.
homeless = Kept(_find_homeless)


def workers_of(names: list[str]) -> list[Worker]:
    """The workers of these ids that there are."""
    found: list[Worker] = []
    for start in range(0, len(names), PART):
        found += Worker.objects.filter(pk__in=names[start : start + PART])
    return found


def hostnames_of(names: list[str]) -> dict[str, str]:
    """The hostname of each worker that there is."""
    found: dict[str, str] = {}
    for start in range(0, len(names), PART):
        part = Worker.objects.filter(pk__in=names[start : start + PART])
        found.update(part.values_list("worker_id", "hostname"))
    return found


def things_of(names: list[str]) -> dict[str, list[Disk | Cd]]:
    """The CD and the disks of each worker."""
    found: dict[str, list[Disk | Cd]] = {}
    for start in range(0, len(names), PART):
        part = names[start : start + PART]
        for cd in Cd.objects.filter(worker_id__in=part):
            found.setdefault(cd.worker_id, []).append(cd)
        for disk in Disk.objects.filter(worker_id__in=part).order_by("position"):
            found.setdefault(disk.worker_id, []).append(disk)
    return found


def bindings_of(hostnames: list[str]) -> dict[str, list[Binding]]:
    """The bindings that give each of these hostnames, in the order of the file."""
    found: dict[str, list[Binding]] = defaultdict(list)
    for start in range(0, len(hostnames), PART):
        part = hostnames[start : start + PART]
        for row in Binding.objects.filter(hostname__in=part).order_by("pk"):
            found[row.hostname].append(row)
    return found


def hostnames_held(hostnames: list[str]) -> set[str]:
    """Which of these names a worker has."""
    found: set[str] = set()
    for start in range(0, len(hostnames), PART):
        part = Worker.objects.filter(hostname__in=hostnames[start : start + PART])
        found.update(part.values_list("hostname", flat=True))
    return found
