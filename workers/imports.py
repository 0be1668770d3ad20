"""Registering many workers: all rows are checked first, then there is one write and one reload, or nothing at all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ipxeready.actors import OPERATOR, Actor
from ipxeready.errors import ApplicationError, Invalid
from ipxeready.given import shown
from ipxeready.index import ensure_fresh, writing
from ipxeready.storage.hosts import HostsLine
from ipxeready.storage.mac import normalize_mac
from workers.adapters import normalized
from workers.dnsmasq import reload_after
from workers.models import Binding, Worker
from workers.services import checked_hostname, refuse_taken, removed
from workers.validators import check_worker_id

_FIELDS = ("worker_id", "mac", "hostname")


@dataclass(frozen=True)
class Row:
    """One row as given; `number` counts from 1, `line` is its line in the file (0: none).

    `problem`: why the row could not be read.
    """

    number: int
    worker_id: str
    mac: str
    hostname: str = ""
    line: int = 0
    problem: str = ""


@dataclass(frozen=True)
class RowFault:
    """What is wrong with a row: its field, the value and the rule in words."""

    row: int
    line: int
    field: str
    message: str

    def __str__(self) -> str:
        where = f" (line {self.line})" if self.line else ""
        return f"row {self.row}{where}: {self.message}"


class ImportRefused(Invalid):
    """Nothing was written; `faults` has every fault of every row, in the order of the rows."""

    default_code = "import.refused"

    def __init__(self, faults: list[RowFault], rows: int) -> None:
        wrong = len({fault.row for fault in faults})
        super().__init__(
            f"{wrong} of {rows} rows cannot be registered; nothing was written",
            extra={"faults": faults},
        )
        self.faults = faults


@dataclass
class Imported:
    """What an import did, or with `dry_run` would do: ids in the order of the rows."""

    created: list[str] = field(default_factory=list)
    unchanged: list[str] = field(default_factory=list)
    dry_run: bool = False
    #: `removed_lines` of the hosts file, and `dnsmasq` when it did not take the new content.
    more: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class _Checked:
    row: Row
    worker_id: str
    mac: str
    hostname: str


def workers_register(
    *, actor: Actor, rows: Sequence[Row], dry_run: bool = False
) -> Imported:
    """Register the workers of all rows; rows that equal what is there change nothing.

    1. each row by itself, the rows against each other, the rows against the present state
    2. ImportRefused names every fault; without any, one write and one reload
    """
    actor.require(OPERATOR)
    checked, faults = _check_rows(rows)
    if dry_run:
        ensure_fresh(wait=True)
        new, result = _against_state(checked, faults, len(rows))
        result.created = [each.worker_id for each in new]
        result.dry_run = True
        return result
    reloading = None
    with writing(actor=actor, op="create_worker") as tx:
        new, result = _against_state(checked, faults, len(rows))
        gone: dict[str, list[HostsLine]] = {}
        if new:
            records = {each.worker_id: _record(each) for each in new}
            tx.yaml("workers").put_many(records)
            gone = tx.hosts.bind_many([(each.mac, each.hostname) for each in new])
            reloading = reload_after(tx)
        for each in new:
            tx.log(
                worker_id=each.worker_id,
                hostname=each.hostname,
                mac=each.mac,
                **removed(gone.get(each.mac, [])),
            )
    result.created = [each.worker_id for each in new]
    result.more = removed([line for lines in gone.values() for line in lines])
    if reloading:
        result.more |= reloading.answer()
    return result


def _record(each: _Checked) -> dict[str, Any]:
    return normalized({"hostname": each.hostname, "arch": "x86_64"})


# --- each row by itself, and against the others ------------------------------


def _check_rows(rows: Sequence[Row]) -> tuple[list[_Checked], list[RowFault]]:
    """Rows that are well, and the faults of the others; a value that stands twice is the later row's fault."""
    checked: list[_Checked] = []
    faults: list[RowFault] = []
    first: dict[tuple[str, str], int] = {}
    whole: dict[tuple[str, ...], int] = {}
    for row in rows:
        values, wrong = _check_row(row)
        key = tuple(values.get(name, "") for name in _FIELDS)
        if not wrong and key in whole:
            wrong = [_fault(row, "", f"repeats row {whole[key]}; remove one of them")]
        else:
            for name, value in values.items():
                at = first.setdefault((name, value), row.number)
                derived = name == "hostname" and not row.hostname
                if at != row.number and not derived:
                    given = getattr(row, name) or value
                    wrong.append(
                        _fault(row, name, f"{shown(given)} stands on row {at} already")
                    )
        faults += wrong
        if not wrong:
            whole[key] = row.number
            checked.append(_Checked(row, *key))
    return checked, faults


def _check_row(row: Row) -> tuple[dict[str, str], list[RowFault]]:
    """The values that hold, by field, and the faults of the others."""
    if row.problem:
        return {}, [_fault(row, "", row.problem)]
    values: dict[str, str] = {}
    faults: list[RowFault] = []

    def check(name: str, made: Any) -> None:
        try:
            values[name] = made()
        except ApplicationError as error:
            faults.append(_of_error(row, error, name))

    check("worker_id", lambda: check_worker_id(row.worker_id))
    check("mac", lambda: normalize_mac(row.mac))
    if "worker_id" in values or row.hostname:
        worker_id = values.get("worker_id", "")
        check("hostname", lambda: checked_hostname(worker_id, row.hostname or None))
    return values, faults


def _of_error(row: Row, error: ApplicationError, name: str = "") -> RowFault:
    text = error.message
    head = text.partition(": ")[0]
    found = error.field or name or (head if head in _FIELDS else "")
    return _fault(row, found, text.removeprefix(f"{found}: ") if found else text)


def _fault(row: Row, name: str, text: str) -> RowFault:
    return RowFault(row.number, row.line, name, f"{name}: {text}" if name else text)


# --- against what is there -----------------------------------------------------


def _against_state(
    checked: list[_Checked], faults: list[RowFault], total: int
) -> tuple[list[_Checked], Imported]:
    """The rows to write; ImportRefused when there is any fault."""
    result = Imported()
    new: list[_Checked] = []
    found = list(faults)
    hostnames = dict(Worker.objects.values_list("worker_id", "hostname"))
    names = set(hostnames.values())
    macs: dict[str, str] = {}
    bindings = Binding.objects.filter(effective=True).order_by("pk")
    for mac, hostname in bindings.values_list("mac", "hostname"):
        macs[mac] = hostname
        names.add(hostname)
    for each in checked:
        if _equal(each, hostnames.get(each.worker_id), macs.get(each.mac)):
            result.unchanged.append(each.worker_id)
            continue
        # The rule is the service's; most rows touch nothing and need not be asked one by one.
        touching = (
            each.worker_id in hostnames or each.hostname in names or each.mac in macs
        )
        try:
            if touching:
                refuse_taken(
                    worker_id=each.worker_id, hostname=each.hostname, mac=each.mac
                )
        except ApplicationError as error:
            found.append(_of_error(each.row, error))
        else:
            new.append(each)
    if found:
        raise ImportRefused(sorted(found, key=lambda fault: fault.row), total)
    return new, result


def _equal(each: _Checked, hostname: str | None, bound: str | None) -> bool:
    """Whether the worker is there with this hostname (where the row gives one) and this MAC."""
    if hostname is None or bound != hostname:
        return False
    return hostname == each.hostname or not each.row.hostname
