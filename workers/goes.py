"""What goes with a worker and what stays, said before it is deleted; and with a disk, before it is reset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agents.protocol.answers import Session
from workers import selectors
from workers.choices import DiskType
from workers.inuse import session_words, sessions_of
from workers.models import Binding, Cd, Disk, Worker


def what_goes(workers: Sequence[Worker], *, delete_file: bool) -> list[dict[str, Any]]:
    """`{worker_id, hostname, bindings, disks, cd}` of each worker, with what its lines of the hosts file say besides.

    A disk or CD that is in use has its `sessions`.
    """
    things = selectors.things_of([worker.worker_id for worker in workers])
    sessions = sessions_of([thing for found in things.values() for thing in found])
    bound = selectors.bindings_of([worker.hostname for worker in workers])
    return [
        {
            "worker_id": worker.worker_id,
            "hostname": worker.hostname,
            "bindings": [_binding(row) for row in bound.get(worker.hostname, [])],
            "disks": [
                {
                    "os": disk.os,
                    "agent": disk.agent,
                    "iqn": disk.iqn,
                    "image": disk.filename,
                    "image_deleted": delete_file,
                    **_in_use(sessions, disk.iqn),
                }
                for disk in things.get(worker.worker_id, [])
                if isinstance(disk, Disk)
            ],
            "cd": next(
                (
                    {
                        "agent": cd.agent,
                        "iqn": cd.iqn,
                        "iso": cd.iso,
                        **_in_use(sessions, cd.iqn),
                    }
                    for cd in things.get(worker.worker_id, [])
                    if isinstance(cd, Cd)
                ),
                None,
            ),
        }
        for worker in workers
    ]


def _binding(row: Binding) -> dict[str, Any]:
    besides = {"ip": row.ip or None, "tags": row.tags or None}
    return {"mac": row.mac, **{key: value for key, value in besides.items() if value}}


def _in_use(sessions: dict[str, list[Session]], iqn: str) -> dict[str, Any]:
    return {"sessions": sessions[iqn]} if iqn in sessions else {}


def _cut(thing: dict[str, Any], fate: str = "stays, or is cut off with --force") -> str:
    who = "; ".join(map(session_words, thing.get("sessions", [])))
    return f", IN USE by {who}: {fate}" if who else ""


def in_words(entry: dict[str, Any]) -> str:
    """One line for people."""
    parts = [f"{entry['worker_id']}: hostname {entry['hostname']}"]
    for line in entry["bindings"]:
        besides = [line["ip"]] if "ip" in line else []
        besides += [f"tag {tag}" for tag in line.get("tags", [])]
        parts.append(line["mac"] + (f" ({', '.join(besides)})" if besides else ""))
    for disk in entry["disks"]:
        fate = "deleted" if disk["image_deleted"] else "stays"
        parts.append(
            f"{disk['os']} disk {disk['iqn']} on {disk['agent']} "
            f"(image {disk['image']} {fate})" + _cut(disk)
        )
    if entry["cd"]:
        parts.append(
            f"install CD {entry['cd']['iqn']} on {entry['cd']['agent']} (ISO stays)"
            + _cut(entry["cd"])
        )
    return "; ".join(parts)


def what_is_reset(
    workers: Sequence[Worker], *, os: str, master: str | None
) -> list[dict[str, Any]]:
    """`{worker_id, os, agent, iqn, image, master}` of each worker's disk, with its `sessions` while it is in use.

    Of a worker without such a disk `{worker_id, os}` only; `master` is None for a disk that was not cloned from one.
    """
    things = selectors.things_of([worker.worker_id for worker in workers])
    disks = {
        name: disk
        for name, found in things.items()
        for disk in found
        if isinstance(disk, Disk) and disk.os == os
    }
    sessions = sessions_of(list(disks.values()))
    return [
        {"worker_id": worker.worker_id, "os": os}
        | (
            {
                "agent": disk.agent,
                "iqn": disk.iqn,
                "image": disk.filename,
                "master": master or _cloned_from(disk),
                **_in_use(sessions, disk.iqn),
            }
            if (disk := disks.get(worker.worker_id))
            else {}
        )
        for worker in workers
    ]


def _cloned_from(disk: Disk) -> str | None:
    if disk.source.get("type") != DiskType.MASTER:
        return None
    return str(disk.source.get("name"))


def reset_in_words(entry: dict[str, Any]) -> str:
    """One line for people."""
    if "iqn" not in entry:
        return f"{entry['worker_id']}: has no {entry['os']} disk: is refused"
    what = f"{entry['worker_id']}: {entry['os']} disk {entry['iqn']} on {entry['agent']} (image {entry['image']})"
    if not entry["master"]:
        return f"{what} was not cloned from a master: is refused without --master"
    becomes = f"becomes {entry['master']}, with that one's size"
    return f"{what} {becomes}" + _cut(entry, "is refused")
