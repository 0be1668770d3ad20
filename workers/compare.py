"""What ledger, hosts file and registry say of each other, from rows in memory: contradictions and differences."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from ipxeready.storage.hosts import conflicts
from workers.adapters import doubled_hostname
from workers.choices import CREATING, DELETING
from workers.hostsfile import HostsFile
from workers.models import Binding, Cd, Disk, Worker


@dataclass
class State:
    """The rows of the files; `agents` is None where the registry cannot be read."""

    workers: list[Worker] = field(default_factory=list)
    disks: list[Disk] = field(default_factory=list)
    cds: list[Cd] = field(default_factory=list)
    bindings: list[Binding] = field(default_factory=list)
    agents: set[str] | None = None


@dataclass(frozen=True)
class Difference:
    """One finding: of the ledger (`workers`) or of the hosts file (`hosts`); not every one is a problem."""

    source: str
    code: str
    message: str
    record: str = ""
    line: int = 0
    problem: bool = True


def hosts_lines(text: HostsFile) -> list[Difference]:
    """Lines that dnsmasq drops and lines that contradict each other; lines with a remark are no problem."""
    lines = text.text.lines
    found = [
        Difference(
            "hosts",
            "hosts.line",
            str(line.problem),
            line=line.number,
            problem=line.kind == "invalid",
        )
        for line in lines
        if line.problem
    ]
    found += [
        Difference("hosts", f"hosts.{each.kind}", each.message, line=each.lines[0])
        for each in conflicts(lines)
    ]
    return found


def contradictions(state: State) -> list[Difference]:
    """What would let two machines write one disk, or leave one without its node."""
    found = []
    names: dict[str, list[str]] = defaultdict(list)
    for worker in state.workers:
        names[worker.hostname].append(worker.worker_id)
    for hostname, ids in names.items():
        if len(ids) > 1:
            fault = doubled_hostname(hostname, ids)
            found.append(
                Difference("workers", fault.code, fault.message, record=fault.record)
            )
    targets: dict[tuple[str, str], list[str]] = defaultdict(list)
    for disk in state.disks:
        targets[disk.agent, disk.iqn].append(disk.worker_id)
    for (agent, iqn), ids in targets.items():
        if len(ids) > 1:
            words = f"{', '.join(ids)} have one disk, {iqn} on node {agent}: give each its own"
            found.append(Difference("workers", "workers.disk", words, record=ids[0]))
    things: list[tuple[str, Disk | Cd]] = [
        *((f"the {disk.os} disk", disk) for disk in state.disks),
        *(("the install CD", cd) for cd in state.cds),
    ]
    for what, thing in things:
        if state.agents is not None and thing.agent not in state.agents:
            words = (
                f"{thing.worker_id}: {what} lies on node {thing.agent}, which is not "
                "in config/agents.yml"
            )
            found.append(
                Difference("workers", "workers.agent", words, record=thing.worker_id)
            )
    return found


def differences(state: State) -> list[Difference]:
    """What one file knows and the other does not; it may be meant, so none is a problem."""
    found = []
    bound = {row.hostname for row in state.bindings if row.effective}
    known = {worker.hostname for worker in state.workers}
    disks: dict[str, list[Disk]] = defaultdict(list)
    for disk in state.disks:
        disks[disk.worker_id].append(disk)
    for worker in state.workers:
        name = worker.worker_id
        if worker.hostname not in bound:
            words = f"{name}: no MAC is bound to its hostname {worker.hostname} in dhcp-hosts.conf"
            found.append(_note("workers", "workers.unbound", words, name))
        systems = [disk.os for disk in disks[name]]
        if worker.default_os and worker.default_os not in systems:
            words = f"{name}: its default system {worker.default_os} is on none of its disks"
            found.append(_note("workers", "workers.default_os", words, name))
    for disk in state.disks:
        if disk.status in (CREATING, DELETING):
            words = (
                f"{disk.worker_id}: the {disk.os} disk on node {disk.agent} is {disk.status}; "
                "if nobody works on it, the next start settles it"
            )
            found.append(_note("workers", "workers.under_way", words, disk.worker_id))
    found += _without_record(state.bindings, known)
    return found


def _without_record(bindings: Iterable[Binding], known: set[str]) -> list[Difference]:
    return [
        _note(
            "hosts",
            "hosts.unknown",
            f"{row.mac} is bound to {row.hostname}, which is no worker's hostname",
            row.hostname,
        )
        for row in bindings
        if row.effective and row.hostname and row.hostname not in known
    ]


def _note(source: str, code: str, message: str, record: str) -> Difference:
    return Difference(source, code, message, record=record, problem=False)
