"""A worker's record under change: taken whole, put back in our order, one disk or the CD changed or dropped."""

from __future__ import annotations

from typing import Any

from ipxeready.errors import ApplicationError, NotFound, Unavailable
from ipxeready.index.writer import Transaction
from ipxeready.said import said
from ipxeready.storage.broken import RecordBroken
from workers import selectors
from workers.adapters import derived_state, normalized, worker_rows


def record_get(tx: Transaction, worker_id: str) -> dict[str, Any]:
    """The normalized record; NotFound when it is gone, Unavailable when it does not validate.

    A broken record keeps its last good rows in the index: what the file says now is what is changed.
    """
    data = tx.yaml("workers").get(worker_id)
    if data is None:
        raise NotFound(
            said(
                "there is no worker {worker_id} any more",
                worker_id=repr(worker_id[:80]),
            )
        )
    try:
        record = normalized(data)
        worker_rows(worker_id, record)
    except (ApplicationError, RecordBroken) as error:
        raise Unavailable(
            said(
                "workers: {error}; mend this record in state/workers.yml first",
                error=error.message,
            ),
            code="state.invalid",
        ) from None
    return record


def broken_hostnames(tx: Transaction) -> dict[str, str]:
    """Hostnames of records that do not validate, with their ids: mended, they would be there twice."""
    found = {}
    for worker_id in selectors.broken_ids():
        try:
            data = tx.yaml("workers").get(worker_id) or {}
        except Unavailable:
            continue  # no mapping, so no hostname either
        found[str(data.get("hostname", "")).lower()] = worker_id
    return found


def refuse_broken(tx: Transaction, hostname: str) -> None:
    """Unavailable when a record that does not validate has this hostname."""
    worker_id = broken_hostnames(tx).get(hostname)
    if worker_id is not None:
        raise Unavailable(
            said(
                "the hostname {hostname} belongs to the record {worker_id}, which does not "
                "validate; mend it in state/workers.yml first",
                hostname=hostname,
                worker_id=worker_id,
            ),
            code="state.invalid",
        )


def record_put(tx: Transaction, worker_id: str, record: dict[str, Any]) -> None:
    """Write a record with its state derived and empty choices left out."""
    full = dict(record)
    full["state"] = derived_state(full["disks"], full.get("cd"))
    for key in ("access", "default_os", "boot"):
        if not full.get(key):
            full.pop(key, None)
    tx.yaml("workers").put(worker_id, full)


def disk_change(tx: Transaction, worker_id: str, os: str, **values: Any) -> None:
    """Set fields of one disk; None removes a field. NotFound when the disk or its worker is gone."""
    record = record_get(tx, worker_id)
    disks = []
    found = False
    for disk in record["disks"]:
        if _os(disk) == os:
            found = True
            merged = {**disk, **values}
            disk = {key: value for key, value in merged.items() if value is not None}
        disks.append(disk)
    if not found:
        raise NotFound(
            said("{worker_id} has no {os} disk any more", worker_id=worker_id, os=os)
        )
    record_put(tx, worker_id, {**record, "disks": disks})


def disk_drop(
    tx: Transaction, worker_id: str, os: str, status: str | None = None
) -> None:
    """Take one disk out (only with that status, if given) with the defaults that name it; gone already is well."""
    try:
        record = record_get(tx, worker_id)
    except NotFound:
        return
    left = [
        disk
        for disk in record["disks"]
        if _os(disk) != os or (status is not None and disk.get("status") != status)
    ]
    if len(left) == len(record["disks"]):
        return
    record["disks"] = left
    if str(record.get("default_os") or "").lower() == os:
        record["default_os"] = None
    boot = dict(record.get("boot") or {})
    if str(boot.get("menu_default") or "").lower() == os:
        del boot["menu_default"]
    record["boot"] = boot
    record_put(tx, worker_id, record)


def cd_put(tx: Transaction, worker_id: str, cd: dict[str, Any] | None) -> None:
    """Set the worker's install CD, None takes it out. NotFound when the worker is gone."""
    record_put(tx, worker_id, {**record_get(tx, worker_id), "cd": cd})


def _os(disk: dict[str, Any]) -> str:
    return str(disk.get("os", "")).lower()
