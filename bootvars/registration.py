"""Zero-touch registration: a MAC that nobody knows gets a name, a record and a binding; many at once share one write."""

from __future__ import annotations

from dataclasses import dataclass

from django.conf import settings

from ipxeready.actors import Actor
from ipxeready.errors import ApplicationError, Conflict
from ipxeready.index import Grouped
from ipxeready.index.writer import Transaction
from workers import selectors
from workers.adapters import normalized
from workers.dnsmasq import reload_after
from workers.ledger import refuse_broken

#: Seconds that a booting machine waits for a reload that hangs.
PATIENCE = 2.0


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
    return _waiting.submit(actor, Arrival(mac, hostname, actor.client))


def _handle(tx: Transaction, arrivals: list[Arrival]) -> list[str | Exception]:
    """Serve all that wait: records one by one, bindings together, one reload."""
    results: list[str | Exception] = []
    named: dict[str, str] = {}
    pairs: list[tuple[str, str]] = []
    room = settings.IPXE.auto_register_max - selectors.waiting_without_disk()
    serial = selectors.next_serial()
    for arrival in arrivals:
        if arrival.mac in named:
            results.append(named[arrival.mac])
            continue
        try:
            with tx.savepoint():
                hostname, bind, fresh = _decide(
                    tx, arrival, serial, room, set(named.values())
                )
        except ApplicationError as error:
            results.append(error)
            continue
        if fresh:
            serial, room = serial + 1, room - 1
        if bind:
            pairs.append((arrival.mac, hostname))
        named[arrival.mac] = hostname
        results.append(hostname)
    if pairs:
        tx.hosts.bind_many(pairs)
        reload_after(tx, PATIENCE)
    return results


def _decide(
    tx: Transaction, arrival: Arrival, serial: int, room: int, new: set[str]
) -> tuple[str, bool, bool]:
    """Hostname, whether the MAC must be bound to it, whether a new number was used."""
    bound = selectors.binding_of(arrival.mac)
    if bound is not None:
        if bound.hostname and selectors.worker_named(bound.hostname) is None:
            # Bound by hand to a name without a record: the record comes, the line stays.
            _add_record(tx, bound.hostname, arrival)
        return bound.hostname, False, False
    claimed = arrival.hostname
    if claimed and (claimed in new or selectors.bindings_named(claimed)):
        raise Conflict(
            "the hostname that this machine sends is bound to another machine"
        )
    worker = selectors.worker_named(claimed) if claimed else None
    if worker is not None:
        tx.log(
            op="worker.mac.update",
            client=arrival.client,
            worker_id=worker.worker_id,
            hostname=worker.hostname,
            new_mac=arrival.mac,
            changed=True,
        )
        return worker.hostname, True, False
    if room <= 0:
        raise RegistrationFull(
            f"{settings.IPXE.auto_register_max} registered workers wait without a disk: "
            "no more are registered. Give them disks, delete them, or raise IPXE_CP_AUTO_REGISTER_MAX"
        )
    name = f"worker-{serial:02d}"
    _add_record(tx, name, arrival)
    return name, True, True


def _add_record(tx: Transaction, name: str, arrival: Arrival) -> None:
    if selectors.workers().filter(pk=name).exists():
        raise Conflict(
            f"dhcp-hosts.conf binds this machine to {name}, which is the id of a worker with "
            "another hostname; correct one of the two"
        )
    refuse_broken(tx, name)
    tx.yaml("workers").put(name, normalized({"hostname": name}))
    tx.log(
        op="auto_register",
        client=arrival.client,
        worker_id=name,
        hostname=name,
        mac=arrival.mac,
    )


_waiting: Grouped[Arrival, str] = Grouped("auto_register", _handle)
