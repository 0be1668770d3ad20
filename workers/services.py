"""The rules of a worker's identity: create, change its MAC, choose what it boots, delete."""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings

from agents.protocol.filenames import check_iso
from ipxeready.actors import OPERATOR, Actor
from ipxeready.errors import ApplicationError, Conflict, Invalid
from ipxeready.index import writing
from ipxeready.index.writer import Transaction
from ipxeready.said import said
from ipxeready.storage.hostnames import check_hostname
from ipxeready.storage.hosts import HostsLine
from ipxeready.storage.iqn import OSES, cd_iqn, target_iqn
from ipxeready.storage.mac import normalize_mac
from workers import cds, selectors
from workers.adapters import normalized
from workers.choices import CREATING, DELETING
from workers.dnsmasq import reload_after
from workers.ledger import record_get, record_put, refuse_broken
from workers.models import Binding, Worker
from workers.validators import (
    check_arch,
    check_menu_default,
    check_menu_timeout,
    check_os,
    check_worker_id,
)

#: "This field was not given", where None means "clear it".
UNSET: Final = object()


def worker_create(
    *,
    actor: Actor,
    worker_id: str,
    mac: str,
    hostname: str | None = None,
    arch: str | None = None,
    windows_iso: str | None = None,
    boot: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Register an identity and bind its MAC; the record. Conflict when id, hostname or MAC is taken.

    With `windows_iso` the CD is exported first: when no node can, nothing is written.
    """
    actor.require(OPERATOR)
    worker_id = check_worker_id(worker_id)
    hostname = checked_hostname(worker_id, hostname)
    mac = normalize_mac(mac)
    record: dict[str, Any] = {
        "hostname": hostname,
        "arch": check_arch(arch or "x86_64"),
    }
    if boot:
        record["boot"] = _boot(boot)
    if not windows_iso:
        return _register(actor, worker_id, mac, record)
    iso = check_iso(windows_iso, field="windows_iso")
    with cds.claimed(hostname):
        refuse_taken(worker_id=worker_id, hostname=hostname, mac=mac)
        with cds.exported(
            actor=actor, worker_id=worker_id, hostname=hostname, iso=iso
        ) as cd:
            return _register(actor, worker_id, mac, {**record, "cd": cd})


def _register(
    actor: Actor, worker_id: str, mac: str, record: dict[str, Any]
) -> dict[str, Any]:
    hostname, cd = record["hostname"], record.get("cd")
    with writing(actor=actor, op="create_worker") as tx:
        refuse_taken(worker_id=worker_id, hostname=hostname, mac=mac)
        refuse_broken(tx, hostname)
        tx.yaml("workers").put(worker_id, normalized(record))
        gone = bind(tx, mac, hostname)
        reloading = reload_after(tx)
        tx.log(worker_id=worker_id, hostname=hostname, mac=mac, **removed(gone))
        if cd:
            tx.log(op="lun.create_cd", **cds.told(worker_id, cd))
        answer = selectors.record_of(selectors.worker_get(worker_id))
    return answer | removed(gone) | reloading.answer()


def checked_hostname(worker_id: str, hostname: str | None) -> str:
    """The hostname that was given, else the id where that is one; checked against the longest IQN it makes."""
    if hostname in (None, ""):
        try:
            name = check_hostname(worker_id)
        except ApplicationError:
            raise Invalid(
                said(
                    "the worker_id {worker_id} cannot be a hostname; give one",
                    worker_id=repr(worker_id),
                ),
                field="hostname",
            ) from None
    else:
        name = check_hostname(str(hostname))
    for os in OSES:
        target_iqn(settings.IPXE.iqn_base, name, os)
    cd_iqn(settings.IPXE.iqn_base, name)
    return name


def _boot(boot: dict[str, Any]) -> dict[str, Any]:
    checked: dict[str, Any] = {}
    for key, value in boot.items():
        if key == "menu_default":
            checked[key] = check_menu_default(value, "boot.menu_default")
        elif key == "menu_timeout":
            checked[key] = check_menu_timeout(value, "boot.menu_timeout")
        else:
            raise Invalid(
                said("unknown field; known are: menu_default, menu_timeout"),
                field=f"boot.{key}",
            )
    return checked


def refuse_taken(*, worker_id: str, hostname: str, mac: str) -> None:
    """Conflict when the id, the hostname or the MAC belongs to somebody; inside the write only."""
    if Worker.objects.filter(pk=worker_id).exists():
        raise Conflict(
            said(
                "worker_id: there is a worker {worker_id} already; choose another id",
                worker_id=worker_id,
            )
        )
    other = selectors.worker_named(hostname)
    if other is not None:
        raise Conflict(
            said(
                "hostname: {hostname} belongs to worker {worker_id}; choose another",
                hostname=hostname,
                worker_id=other.worker_id,
            )
        )
    refuse_bound(mac, hostname)
    holders = [each for each in selectors.macs_of(hostname) if each != mac]
    if holders:
        raise Conflict(
            said(
                "hostname: {hostname} is bound to {holders} in dhcp-hosts.conf; choose "
                "another name or take that binding away first",
                hostname=hostname,
                holders=", ".join(holders),
            )
        )


def refuse_bound(mac: str, hostname: str) -> None:
    """Conflict when the MAC is bound to another hostname."""
    bound = selectors.binding_of(mac)
    if bound is None or bound.hostname == hostname:
        return
    if not bound.hostname:
        raise Conflict(
            said(
                "mac: {mac} has a line in dhcp-hosts.conf that gives it no hostname; mend "
                "that line first",
                mac=mac,
            )
        )
    raise Conflict(
        said(
            "mac: {mac} is bound to {hostname} in dhcp-hosts.conf; delete that worker, "
            "change its MAC or remove the line first",
            mac=mac,
            hostname=bound.hostname,
        )
    )


def bind(tx: Transaction, mac: str, hostname: str) -> list[HostsLine]:
    """Bind, leaving a line that says so already as it is; the lines that went."""
    rows = Binding.objects.filter(mac=mac)
    if rows.count() == 1 and rows.get().hostname == hostname:
        return []
    gone: list[HostsLine] = tx.hosts.bind(mac, hostname)
    return gone


def removed(lines: list[HostsLine]) -> dict[str, Any]:
    """Which lines of the hosts file went, for the answer and the audit."""
    if not lines:
        return {}
    texts = [line.raw.decode("utf-8", "backslashreplace").strip() for line in lines]
    return {"removed_lines": texts}


def worker_mac_update(*, actor: Actor, worker_id: str, mac: str) -> dict[str, Any]:
    """Bind another MAC to the worker's hostname; the record with `changed`.

    The hosts file keeps its inode and the other fields of the line. Conflict when the MAC is another's.
    """
    actor.require(OPERATOR)
    mac = normalize_mac(mac)
    reloading = None
    with writing(actor=actor, op="worker.mac.update") as tx:
        worker = selectors.worker_get(worker_id)
        refuse_bound(mac, worker.hostname)
        old = selectors.macs_of(worker.hostname)
        changed = mac not in old
        gone: list[HostsLine] = []
        if changed:
            _refuse_ambiguous(worker, old)
            if old:
                gone = tx.hosts.replace_mac(worker.hostname, old[0], mac)
            else:
                gone = tx.hosts.bind(mac, worker.hostname)
            reloading = reload_after(tx)
        tx.log(
            worker_id=worker.worker_id,
            hostname=worker.hostname,
            old_mac=(mac if not changed else old[0] if old else None),
            new_mac=mac,
            changed=changed,
            **removed(gone),
        )
        answer = selectors.record_of(worker) | {"changed": changed} | removed(gone)
    return answer | (reloading.answer() if reloading else {})


def _refuse_ambiguous(worker: Worker, macs: list[str]) -> None:
    if Binding.objects.filter(hostname=worker.hostname, conflict=True).exists():
        raise Conflict(
            said(
                "hostname: {hostname} stands on several lines of dhcp-hosts.conf ({macs}); "
                "remove the wrong ones there first",
                hostname=worker.hostname,
                macs=", ".join(macs),
            )
        )


def worker_boot_set(
    *,
    actor: Actor,
    worker_id: str,
    os: Any = UNSET,
    menu_default: Any = UNSET,
    menu_timeout: Any = UNSET,
) -> dict[str, Any]:
    """Choose what boots next; None clears a value, what is not given stays. The record."""
    actor.require(OPERATOR)
    if os is UNSET and menu_default is UNSET and menu_timeout is UNSET:
        raise Invalid(
            said("give at least one of os, menu_default, menu_timeout (null clears)")
        )
    with writing(actor=actor, op="worker.boot.set") as tx:
        worker = selectors.worker_get(worker_id)
        record = record_get(tx, worker.worker_id)
        if os is not UNSET:
            record["default_os"] = None if os is None else _bootable(worker, os)
        boot = dict(record.get("boot") or {})
        if menu_default is not UNSET:
            boot["menu_default"] = (
                None if menu_default is None else check_menu_default(menu_default)
            )
        if menu_timeout is not UNSET:
            boot["menu_timeout"] = (
                None if menu_timeout is None else check_menu_timeout(menu_timeout)
            )
        record["boot"] = {
            key: value for key, value in boot.items() if value is not None
        }
        record_put(tx, worker.worker_id, record)
        fresh = selectors.worker_get(worker.worker_id)
        tx.log(
            worker_id=worker.worker_id,
            default_os=fresh.default_os or None,
            menu_default=fresh.menu_default or None,
            menu_timeout=fresh.menu_timeout,
        )
        return selectors.record_of(fresh)


def _bootable(worker: Worker, os: Any) -> str:
    name = check_os(os)
    there = [
        d.os
        for d in selectors.disks_of(worker.worker_id)
        if d.status not in (CREATING, DELETING)
    ]
    if not there:
        raise Conflict(
            said(
                "os: {worker_id} has no disk; create one with POST "
                "/workers/{worker_id}/luns/disk first",
                worker_id=worker.worker_id,
            )
        )
    if name not in there:
        raise Invalid(
            said(
                "{worker_id} has no {name} disk; its disks are: {disks}",
                worker_id=worker.worker_id,
                name=name,
                disks=", ".join(there),
            ),
            field="os",
        )
    return name
