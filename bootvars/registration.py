"""Zero-touch registration: a MAC that nobody knows gets a name, a record and a binding; many at once share one write."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from ipxeready.actors import Actor
from ipxeready.errors import ApplicationError, Conflict, Unavailable
from ipxeready.index import Grouped
from ipxeready.index.writer import EDITED_NOW, Transaction
from ipxeready.said import said
from workers import selectors
from workers.adapters import normalized, serial
from workers.dnsmasq import reload_after
from workers.ledger import broken_hostnames, refuse_broken

#: Seconds that a booting machine waits for a reload that hangs.
PATIENCE = 2.0
#: Somebody saves a file at this very moment: the next try sees the edit and goes on.
_TRIES = 4


class RegistrationFull(Conflict):
    """As many workers without a disk as the limit allows: nothing more is written."""

    default_code = "register.full"


@dataclass(frozen=True)
class Arrival:
    """A machine that asks: its MAC, the hostname that it claims, its address."""

    mac: str
    hostname: str | None = None
    client: str | None = None


def register(actor: Actor, mac: str, hostname: str | None = None) -> str:
    """Make this MAC known, under the `hostname` that it claims where a worker without a MAC has it.

    Returns the hostname that it is bound to now. What the claim is worth is decided under the lock.
    Raises RegistrationFull at the limit and Unavailable when files or lock do not allow it; then nothing was written.
    """
    arrival = Arrival(mac, hostname, actor.client)
    for _ in range(_TRIES - 1):
        try:
            return _waiting.submit(actor, arrival)
        except Unavailable as error:
            if error.code != EDITED_NOW:
                raise
    return _waiting.submit(actor, arrival)


def _handle(tx: Transaction, arrivals: list[Arrival]) -> list[str | Exception]:
    """Serve all that wait: records together, bindings together, one reload."""
    results: list[str | Exception] = []
    told: dict[str, str] = {}
    fresh: dict[str, Arrival] = {}
    pairs: list[tuple[str, str]] = []
    room = settings.IPXE.auto_register_max - selectors.waiting_without_disk()
    number = _next_number(tx)
    for arrival in arrivals:
        if arrival.mac in told:
            results.append(told[arrival.mac])
            continue
        try:
            with tx.savepoint():
                hostname, bound = _known(tx, arrival, taken=set(told.values()))
            if hostname is None:
                _refuse_full(room - len(fresh))
                hostname = f"worker-{number + len(fresh):02d}"
                fresh[hostname] = arrival
        except ApplicationError as error:
            results.append(error)
            continue
        if not bound:
            pairs.append((arrival.mac, hostname))
        told[arrival.mac] = hostname
        results.append(hostname)
    _add_records(tx, fresh)
    if pairs:
        tx.hosts.bind_many(pairs)
        reload_after(tx, PATIENCE)
    return results


def _next_number(tx: Transaction) -> int:
    """NN of the next worker-NN; a record that does not validate keeps its name."""
    broken = [serial(hostname) or 0 for hostname in broken_hostnames(tx)]
    return max(selectors.next_serial(), *(number + 1 for number in broken), 1)


def _known(
    tx: Transaction, arrival: Arrival, taken: set[str]
) -> tuple[str | None, bool]:
    """The hostname that this machine has or claims rightly, and whether the hosts file says so; None: a new one."""
    line = selectors.binding_of(arrival.mac)
    if line is not None:
        if line.hostname and selectors.worker_named(line.hostname) is None:
            # Bound by hand to a name without a record: the record comes, the line stays.
            _refuse_record(tx, line.hostname)
            _add_records(tx, {line.hostname: arrival})
        return line.hostname, True
    claimed = arrival.hostname
    if claimed and (claimed in taken or selectors.bindings_named(claimed)):
        raise Conflict(
            said("the hostname that this machine sends is bound to another machine")
        )
    worker = selectors.worker_named(claimed) if claimed else None
    if worker is None:
        return None, False
    tx.log(
        op="worker.mac.update",
        client=arrival.client,
        worker_id=worker.worker_id,
        hostname=worker.hostname,
        new_mac=arrival.mac,
        changed=True,
    )
    return worker.hostname, False


def _refuse_full(room: int) -> None:
    if room <= 0:
        raise RegistrationFull(
            said(
                "{most} registered workers wait without a disk: no more are registered. Give "
                "them disks, delete them, or raise IPXE_CP_AUTO_REGISTER_MAX",
                most=settings.IPXE.auto_register_max,
            )
        )


def _refuse_record(tx: Transaction, name: str) -> None:
    if selectors.workers().filter(pk=name).exists():
        raise Conflict(
            said(
                "dhcp-hosts.conf binds this machine to {name}, which is the id of a worker "
                "with another hostname; correct one of the two",
                name=name,
            )
        )
    refuse_broken(tx, name)


def _add_records(tx: Transaction, arrivals: dict[str, Arrival]) -> None:
    """New records by their names, all in one go."""
    if not arrivals:
        return
    tx.yaml("workers").put_many(
        {name: normalized({"hostname": name}) for name in arrivals}
    )
    for name, arrival in arrivals.items():
        tx.log(
            op="auto_register",
            client=arrival.client,
            worker_id=name,
            hostname=name,
            mac=arrival.mac,
        )


_waiting: Grouped[Arrival, str] = Grouped("auto_register", _handle)
