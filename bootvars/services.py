"""Who is asking, and what it boots: the rules of contract.md section 5."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from django.conf import settings

from agents.protocol.access import Chap
from agents.selectors import agent_find, iscsi_sep, iscsi_server_of
from bootvars.credentials import Caller, Withheld, asked_for, credentials
from bootvars.notes import note
from bootvars.registration import RegistrationFull, register
from bootvars.runtime import auto_register_enabled
from ipxeready.actors import Actor
from ipxeready.errors import ApplicationError, Invalid
from ipxeready.storage.hostnames import check_hostname
from ipxeready.storage.iqn import OSES
from ipxeready.storage.mac import normalize_mac
from workers import selectors
from workers.models import Cd, Disk, Worker


@dataclass(frozen=True)
class Answer:
    """What a machine is told. `values` in the order of the script; `refused` tells why there is no disk."""

    worker: str | None = None
    values: dict[str, str | int] = field(default_factory=dict)
    refused: str | None = None
    #: Never in JSON, never kept, never shown.
    credentials: Chap | None = field(default=None, repr=False)
    #: Why it is not told a secret that it needs.
    withheld: str | None = None
    #: Depends on nothing but the files: may be given again while they stand.
    plain: bool = False


class Refused(Exception):
    """No disk for this machine; the text is shown on its console, and never repeats the caller's words."""

    def __init__(self, reason: str, mac: str | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.mac = mac


def boot_vars(
    *,
    actor: Actor,
    macs: list[str],
    hostnames: list[str],
    changes: bool = True,
    caller: Caller | None = None,
) -> Answer:
    """The boot variables for a request; never raises ApplicationError. `changes` False (HEAD): nothing is written."""
    mac: str | None = None
    try:
        mac = _one_mac(macs)
        hostname = _one_hostname(hostnames)
        if mac is None:
            answer, bound = _by_hostname(hostname), None
        else:
            answer, bound = _by_mac(actor, mac, hostname, changes, sent=hostnames)
        return _with_credentials(actor, answer, bound, changes, caller or Caller())
    except Refused as error:
        if changes:
            note(actor, "boot.refused", error.reason, mac=mac)
        return Answer(refused=error.reason)
    except ApplicationError as error:
        if changes and not isinstance(error, RegistrationFull):
            note(actor, "boot.refused", error.message, mac=mac)
        elif changes:
            note(actor, "boot.refused", error.message)
        return Answer(refused=error.message)


def _with_credentials(
    actor: Actor, answer: Answer, mac: str | None, changes: bool, caller: Caller
) -> Answer:
    """The answer with the machine's secret where it needs one, or with the reason why it is not told."""
    worker = _worker_named(answer.worker) if answer.worker else None
    if worker is None or not asked_for(worker, _there(worker)):
        return answer
    # What it is told depends on who asks, from where and when: never given to the next one.
    answer = replace(answer, plain=False)
    if not changes or not caller.script:
        return answer
    try:
        return replace(answer, credentials=credentials(worker, mac, caller))
    except Withheld as error:
        note(
            actor,
            "boot.no_secret",
            error.reason,
            mac=mac,
            about=f"{worker.worker_id}: {error.reason}",
            worker_id=worker.worker_id,
        )
        return replace(answer, withheld=error.reason)


def _there(worker: Worker) -> list[Disk | Cd]:
    """The disks and the CD that the machine could log in to."""
    disks = [disk for disk in selectors.disks_of(worker.worker_id) if not disk.status]
    cd = selectors.cd_of(worker.worker_id)
    return [*disks, *([cd] if cd else [])]


def _one_mac(values: list[str]) -> str | None:
    """The MAC of the request, None when none is given at all; malformed and repeated are not absent."""
    if not values:
        return None
    if len(values) > 1:
        raise Refused("the request names more than one mac")
    try:
        return normalize_mac(values[0])
    except Invalid as error:
        if error.code in ("mac.zero", "mac.broadcast", "mac.multicast"):
            raise Refused("the network card reports no usable address") from None
        raise Refused(
            "the mac of the request is not a 6-byte hardware address"
        ) from None


def _one_hostname(values: list[str]) -> str | None:
    """The hostname of the request; one that cannot be a hostname says nothing."""
    if len(values) != 1 or not values[0]:
        return None
    try:
        return check_hostname(values[0])
    except Invalid:
        return None


def _by_hostname(hostname: str | None) -> Answer:
    worker = _worker_named(hostname) if hostname else None
    if worker is None:
        return Answer(plain=True)
    _refuse_conflict(worker.hostname)
    return Answer(worker.hostname, _values(worker, bound=False), plain=True)


def _by_mac(
    actor: Actor, mac: str, hostname: str | None, changes: bool, *, sent: list[str]
) -> tuple[Answer, str | None]:
    """The answer, and the MAC again where it is bound to that worker."""
    binding = selectors.binding_of(mac)
    if binding is None:
        return _unbound(actor, mac, hostname, changes), None
    if not binding.hostname:
        raise Refused(
            "dhcp-hosts.conf has a line for this machine that gives it no hostname; mend that line"
        )
    if binding.conflict:
        _refuse_conflict(binding.hostname)
    stale = any(name.strip().lower() not in ("", binding.hostname) for name in sent)
    if stale and changes:
        note(
            actor,
            "boot.stale_name",
            f"sent {hostname or 'what is no hostname'}, bound to {binding.hostname}: an old lease, or dnsmasq was not reloaded",
            mac=mac,
            about=binding.hostname,
            worker_id=binding.hostname,
        )
    worker = _worker_named(binding.hostname)
    if worker is None:
        if not (changes and auto_register_enabled()):
            return Answer(), None
        register(actor, mac)
        worker = _worker_named(binding.hostname)
    if worker is None:
        return Answer(), None
    values = _values(worker, bound=True)
    return Answer(worker.hostname, values, plain=not stale), mac


def _unbound(actor: Actor, mac: str, hostname: str | None, changes: bool) -> Answer:
    if hostname is not None and selectors.bindings_named(hostname):
        raise Refused(
            "the hostname that this machine sends is bound to another machine"
        )
    if not auto_register_enabled() or not changes:
        claimed = _worker_named(hostname) if hostname else None
        if claimed is None:
            return Answer()
        return Answer(claimed.hostname, _values(claimed, bound=False))
    name = register(actor, mac, hostname)
    worker = _worker_named(name)
    if worker is None:
        return Answer()
    return Answer(worker.hostname, _values(worker, bound=True))


def _worker_named(hostname: str) -> Worker | None:
    """The worker with that hostname; a hand edit that gave it to two lets neither machine have a disk."""
    found = selectors.workers_named(hostname)
    if len(found) > 1:
        names = ", ".join(worker.worker_id for worker in found)
        raise Refused(
            f"the hostname {hostname} belongs to {names} in state/workers.yml; no machine gets "
            "its disk until each has its own"
        )
    return found[0] if found else None


def _refuse_conflict(hostname: str) -> None:
    rows = selectors.bindings_named(hostname)
    if any(row.conflict for row in rows):
        raise Refused(
            f"two machines are bound to the hostname {hostname} in dhcp-hosts.conf; none gets "
            "its disk until one line is removed"
        )


def _values(worker: Worker, *, bound: bool) -> dict[str, str | int]:
    """The variables by their names in the script, in its order."""
    values: dict[str, str | int] = {}
    disks = [disk for disk in selectors.disks_of(worker.worker_id) if not disk.status]
    default = next((d for d in disks if d.os == worker.default_os), None)
    first = default or (disks[0] if disks else None)
    if first is not None:
        _refuse_foreign(worker, first)
        place = _place(first)
        if place is None:
            raise Refused(
                f"the node {first.agent} that holds {first.iqn} is not in config/agents.yml; "
                "register it again"
            )
        values["base-iqn"] = first.iqn.rpartition(":")[0]
        values["iscsi-server"], values["iscsi-sep"] = place
        for disk in disks:
            place = _place(disk) if disk.agent != first.agent else None
            if place is not None:
                values[f"iscsi-server-{disk.os}"] = place[0]
                values[f"iscsi-sep-{disk.os}"] = place[1]
    cd = selectors.cd_of(worker.worker_id)
    if cd is not None and (place := _place(cd)) is not None:
        values["cd-server"], values["cd-sep"] = place
        values["cd-iqn"] = cd.iqn
    if bound:
        values["hostname"] = worker.hostname
    config = settings.IPXE
    if default is not None:
        values["menu-default"], timeout = default.os, config.boot_menu_timeout
    elif _offered(worker.menu_default, disks):
        values["menu-default"], timeout = worker.menu_default, config.boot_menu_timeout
    else:
        values["menu-default"], timeout = "reboot", config.auto_boot_timeout
    values["menu-timeout"] = (
        timeout if worker.menu_timeout is None else worker.menu_timeout
    )
    return values


def _offered(menu_default: str, disks: list[Disk]) -> bool:
    """Whether the menu can do that: a system needs its disk, the menu's own items need nothing."""
    if menu_default in OSES:
        return any(disk.os == menu_default for disk in disks)
    return bool(menu_default)


def _place(thing: Disk | Cd) -> tuple[str, str] | None:
    """Server and separator of a disk or CD, from what is known of its node; the node is not asked.

    None when the registry does not know the node any more.
    """
    agent = agent_find(thing.agent)
    return None if agent is None else (iscsi_server_of(agent), iscsi_sep(agent))


def _refuse_foreign(worker: Worker, disk: Disk) -> None:
    """The menu makes the target's name from the hostname: a renamed worker would ask for one that is not there."""
    wanted = f"{worker.hostname}.{disk.os}"
    if disk.iqn.rpartition(":")[2] != wanted:
        raise Refused(
            f"the target {disk.iqn} does not carry the name {wanted} that the menu asks for; "
            "rename it back in state/workers.yml or make the disk anew"
        )
