"""state/workers.yml: a record becomes a worker with its disks; a worker becomes a record."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from django.db.models import Count

from agents.protocol.access import ACCESS, OFF
from ipxeready.errors import ApplicationError
from ipxeready.index.models import IndexedModel
from ipxeready.index.sources import Fault, YamlSource
from ipxeready.said import joined, said
from ipxeready.storage.broken import RecordBroken
from ipxeready.storage.hostnames import check_hostname
from ipxeready.storage.iqn import OSES, check_iqn
from ipxeready.storage.paths import Layout
from ipxeready.storage.yamlrecords import YamlText
from workers.choices import CREATING, DELETING, MENU_DEFAULTS, State
from workers.models import Cd, Disk, Worker
from workers.validators import check_worker_id

_SERIAL = re.compile(r"worker-([0-9]{1,15})")
#: Fields of a record in the order in which we write them.
FIELDS = (
    "hostname",
    "arch",
    "state",
    "access",
    "default_os",
    "boot",
    "disks",
    "cd",
)


def serial(name: str) -> int | None:
    """NN of worker-NN, None for any other name."""
    found = _SERIAL.fullmatch(name)
    return int(found[1]) if found else None


def normalized(record: dict[str, Any]) -> dict[str, Any]:
    """A record with all fields: the old single `disk` becomes a list, the state is derived, unknown keys stay.

    `access`, `default_os` and `boot` are there only when they say something.
    """
    rest = {k: v for k, v in record.items() if k not in FIELDS and k != "disk"}
    disks, single = record.get("disks"), record.get("disk")
    if single and not disks:
        disks = [single]
    elif single:
        raise RecordBroken(
            said(
                "there are both disk and disks; move the one into the list of the other"
            )
        )
    elif disks is None:
        disks = []
    full: dict[str, Any] = {
        "hostname": record.get("hostname"),
        "arch": record.get("arch") or "x86_64",
        "state": derived_state(disks, record.get("cd")),
    }
    if record.get("access") is not None:
        full["access"] = record["access"]
    if record.get("default_os"):
        full["default_os"] = record["default_os"]
    if record.get("boot"):
        full["boot"] = record["boot"]
    full["disks"] = disks
    full["cd"] = record.get("cd") or None
    return full | rest


def derived_state(disks: Any, cd: Any) -> str:
    """The state that a record's disks and CD make: a CD first."""
    if cd:
        return State.INSTALLING.value
    there = isinstance(disks, list) and any(
        isinstance(disk, dict) and disk.get("status") != CREATING for disk in disks
    )
    return State.READY.value if there else State.REGISTERED.value


class WorkersSource(YamlSource):
    """The ledger of workers."""

    name = "workers"
    top = "workers"
    models = (Worker, Disk, Cd)
    default = b"workers: {}\n"

    def path(self, layout: Layout) -> Path:
        """state/workers.yml."""
        return layout.workers_yml

    def rows(self, text: YamlText, key: str) -> list[IndexedModel]:
        """The worker, its disks and its CD."""
        value = text.value(key)
        if value is None:
            raise RecordBroken(said("{key}: there is no such record", key=key))
        try:
            return worker_rows(key, normalized(value))
        except ApplicationError as error:
            field = f" ({error.field})" if error.field else ""
            raise RecordBroken(joined(": ", f"{key}{field}", error.message)) from None
        except RecordBroken as error:
            where = "" if error.message.startswith(key) else f"{key}: "
            raise RecordBroken(joined("", where, error.message)) from None

    def cross_check(self, text: YamlText) -> list[Fault]:
        """Hostnames and targets that two workers have."""
        doubled = (
            Worker.objects.values("hostname")
            .annotate(number=Count("pk"))
            .filter(number__gt=1)
            .order_by()
        )
        faults = []
        for row in doubled:
            names = Worker.objects.filter(hostname=row["hostname"]).values_list(
                "worker_id", flat=True
            )
            faults.append(doubled_hostname(row["hostname"], list(names)))
        return faults + _shared_disks()


def _shared_disks() -> list[Fault]:
    doubled = (
        Disk.objects.values("agent", "iqn")
        .annotate(number=Count("pk"))
        .filter(number__gt=1)
        .order_by()
    )
    faults = []
    for row in doubled:
        disks = Disk.objects.filter(agent=row["agent"], iqn=row["iqn"])
        names = sorted(set(disks.values_list("worker_id", flat=True)))
        faults.append(
            Fault(
                "workers.disk",
                said(
                    "the target {iqn} of node {agent} stands in the records of {names}: take it "
                    "out of the wrong one in state/workers.yml",
                    iqn=row["iqn"],
                    agent=row["agent"],
                    names=", ".join(names),
                ),
                record=names[0],
            )
        )
    return faults


def doubled_hostname(hostname: str, names: list[str]) -> Fault:
    """The fault of a hostname that several workers have."""
    return Fault(
        "workers.hostname",
        said(
            "the hostname {hostname} belongs to {names}: they would boot one disk. Give each "
            "its own in state/workers.yml",
            hostname=hostname,
            names=", ".join(names),
        ),
        record=names[0],
    )


def worker_rows(key: str, record: dict[str, Any]) -> list[IndexedModel]:
    """Rows of one normalized record; raises ApplicationError or RecordBroken naming the field."""
    if check_worker_id(key) != key:
        raise RecordBroken(
            said("{key}: a worker's id is written in lower case", key=key)
        )
    hostname = record["hostname"]
    if hostname is None:
        raise RecordBroken(
            said(
                "{key} (hostname): is missing; put quotes around a name like null",
                key=key,
            )
        )
    boot = record.get("boot") or {}
    if not isinstance(boot, dict):
        raise RecordBroken(
            said(
                "{key} (boot): must be a mapping of menu_default, menu_timeout", key=key
            )
        )
    menu_default = _choice(
        key, "boot.menu_default", boot.get("menu_default"), MENU_DEFAULTS
    )
    timeout = boot.get("menu_timeout")
    if timeout is not None and (
        isinstance(timeout, bool) or not isinstance(timeout, int) or timeout < 0
    ):
        raise RecordBroken(
            said(
                "{key} (boot.menu_timeout): {timeout} must be whole milliseconds, 0 or more",
                key=key,
                timeout=repr(timeout),
            )
        )
    hostname = check_hostname(_text(hostname))
    worker = Worker(
        record=key,
        worker_id=key,
        hostname=hostname,
        arch=_text(record["arch"])[:32],
        state=record["state"],
        access=_access(key, "access", record.get("access")),
        default_os=_choice(key, "default_os", record.get("default_os"), OSES),
        menu_default=menu_default,
        menu_timeout=timeout,
        serial=max(
            (n for n in (serial(key), serial(hostname)) if n is not None), default=None
        ),
        data=record,
    )
    rows: list[IndexedModel] = [worker]
    rows += _disks(key, record["disks"])
    cd = record["cd"]
    if cd is not None:
        rows.append(_cd(key, cd))
    return rows


def _disks(key: str, disks: Any) -> list[IndexedModel]:
    if not isinstance(disks, list):
        raise RecordBroken(said("{key} (disks): must be a list", key=key))
    rows: list[IndexedModel] = []
    seen: set[str] = set()
    for position, disk in enumerate(disks):
        place = f"disks[{position}]"
        if not isinstance(disk, dict):
            raise RecordBroken(
                said("{key} ({place}): must be a mapping", key=key, place=place)
            )
        os = _choice(key, f"{place}.os", disk.get("os"), OSES)
        if not os:
            raise RecordBroken(
                said("{key} ({place}.os): is missing", key=key, place=place)
            )
        if os in seen:
            raise RecordBroken(
                said(
                    "{key} ({place}.os): there are two disks with {os}",
                    key=key,
                    place=place,
                    os=os,
                )
            )
        seen.add(os)
        iqn = check_iqn(_needed(key, place, disk, "iqn"))
        status = _choice(
            key, f"{place}.status", disk.get("status"), (CREATING, DELETING)
        )
        source = disk.get("source")
        rows.append(
            Disk(
                record=key,
                worker_id=key,
                position=position,
                os=os,
                agent=_needed(key, place, disk, "agent").lower(),
                iqn=iqn,
                filename=_text(disk.get("filename") or f"{iqn.rpartition(':')[2]}.img"),
                backing=_text(disk.get("backing") or ""),
                status=status,
                source=source if isinstance(source, dict) else {},
                # Made before there was access control: open.
                access=_access(key, f"{place}.access", disk.get("access")) or OFF,
            )
        )
    return rows


def _cd(key: str, cd: Any) -> Cd:
    if not isinstance(cd, dict):
        raise RecordBroken(said("{key} (cd): must be a mapping", key=key))
    return Cd(
        record=key,
        worker_id=key,
        agent=_needed(key, "cd", cd, "agent").lower(),
        iqn=check_iqn(_needed(key, "cd", cd, "iqn")),
        iso=_text(cd.get("iso") or ""),
        backing=_text(cd.get("backing") or ""),
        access=_access(key, "cd.access", cd.get("access")) or OFF,
    )


def _access(key: str, place: str, value: Any) -> str:
    # `off` is text here, false what another YAML writer makes of it.
    return OFF if value is False else _choice(key, place, value, ACCESS)


def _text(value: Any) -> str:
    """The text as typed: plain numbers and true/false in the file are text here."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int):
        return str(value)
    raise RecordBroken(said("{value} must be text", value=repr(value)))


def _needed(key: str, place: str, data: dict[str, Any], name: str) -> str:
    value = data.get(name)
    if value in (None, ""):
        raise RecordBroken(
            said("{key} ({place}.{name}): is missing", key=key, place=place, name=name)
        )
    return _text(value)


def _choice(key: str, place: str, value: Any, allowed: tuple[str, ...]) -> str:
    if value in (None, ""):
        return ""
    text = _text(value).lower()
    if text not in allowed:
        raise RecordBroken(
            said(
                "{key} ({place}): {text} must be one of {choices}",
                key=key,
                place=place,
                text=repr(text),
                choices=", ".join(allowed),
            )
        )
    return text
