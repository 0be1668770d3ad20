"""The long work of this app as jobs: what each is about, when two are the same, how it is done."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agents.watched import open_if_unknown
from ipxeready.actors import Actor
from ipxeready.errors import ApplicationError
from ipxeready.jobs.services import Work
from ipxeready.jobs.watch import LeftOpen, Watch
from ipxeready.storage.jobs import BYTES
from workers.batch_items import answered
from workers.batches import batch_check, disk_batch
from workers.changing import disk_reset, reset_check
from workers.disks import UNSETTLED, DiskSpec, disk_check, disk_create
from workers.removal_batch import delete_check, workers_delete
from workers.services import worker_boot_set

DISK = "worker.disk.create"
DISKS = "worker.disk.batch"
RESET = "worker.disk.reset"
DELETION = "worker.delete.batch"


def disk_work(
    *,
    actor: Actor,
    worker_id: str,
    spec: DiskSpec,
    disk_agent: str | None = None,
    set_default: bool = False,
) -> Work:
    """One disk of one worker; with `set_default` it also becomes what the worker boots."""
    name = worker_id.lower()

    def check() -> None:
        disk_check(actor=actor, worker_id=name, spec=spec, named=disk_agent)

    def do(watch: Watch) -> dict[str, Any]:
        try:
            record = disk_create(
                actor=actor,
                worker_id=name,
                spec=spec,
                disk_agent=disk_agent,
                watch=watch,
            )
        except ApplicationError as error:
            if error.code == UNSETTLED and watch.may_leave:
                raise LeftOpen from error
            raise
        if not set_default:
            return record
        warned = {key: record[key] for key in ("warnings",) if key in record}
        return worker_boot_set(actor=actor, worker_id=name, os=spec.os) | warned

    about: dict[str, Any] = {"worker_id": name, "os": spec.os, "source": spec.source()}
    if disk_agent:
        about["agent"] = disk_agent.lower()
    if set_default:
        about["set_default"] = True
    return Work(
        kind=DISK,
        do=do,
        about=about,
        # Who asks for the same disk again means the same work, whatever else the request says.
        same=[name, spec.os, spec.source()],
        unit=BYTES,
        check=check,
    )


def disks_work(
    *,
    actor: Actor,
    type: str,
    os: Any,
    targets: Sequence[tuple[str, str]],
    name: str | None = None,
    size: Any = None,
) -> Work:
    """A disk for each of many workers."""
    what = {"type": type, "os": os, "name": name, "size": size}
    spec = batch_check(actor=actor, targets=targets, **what)

    def do(watch: Watch) -> dict[str, Any]:
        answer = disk_batch(actor=actor, targets=targets, watch=watch, **what)
        return answered(answer, watch)

    pairs = [[worker_id.lower(), agent.lower()] for worker_id, agent in targets]
    return Work(
        kind=DISKS,
        do=do,
        about={"os": spec.os, "source": spec.source(), "targets": pairs},
        same=[spec.os, spec.source(), pairs],
        total=len(pairs),
    )


def reset_work(
    *, actor: Actor, worker_id: str, os: str, master: str | None = None
) -> Work:
    """One disk back to its master."""

    def check() -> None:
        reset_check(actor=actor, worker_id=worker_id, os=os, master=master)

    def do(watch: Watch) -> dict[str, Any]:
        with open_if_unknown(watch):
            return disk_reset(
                actor=actor, worker_id=worker_id, os=os, master=master, watch=watch
            )

    about = {"worker_id": worker_id.lower(), "os": os.lower()}
    if master is not None:
        about["master"] = master
    return Work(kind=RESET, do=do, about=about, same=about, unit=BYTES, check=check)


def deletion_work(*, actor: Actor, worker_ids: Sequence[str], **options: bool) -> Work:
    """Many workers with all that belongs to them; `options` are those of `workers_delete`."""
    delete_check(actor=actor, worker_ids=worker_ids)

    def do(watch: Watch) -> dict[str, Any]:
        answer = workers_delete(
            actor=actor, worker_ids=worker_ids, watch=watch, **options
        )
        return answered(answer, watch)

    names = [name.lower() for name in worker_ids]
    return Work(
        kind=DELETION,
        do=do,
        about={**options, "worker_ids": names},
        same=[options, names],
        total=len(names),
    )
