"""Batches about workers that are there, as jobs: what they boot, who may log in, their disks back to the master.

Each worker is tried, and told of in the result, on its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from agents.protocol.filenames import check_master
from agents.validators import check_access
from ipxeready.actors import OPERATOR, Actor
from ipxeready.jobs.services import Work
from ipxeready.jobs.watch import Watch
from workers.access_set import worker_access_set
from workers.batch_items import Changed, answered, check_number, words_for
from workers.boots import workers_boot_set
from workers.changing import disk_reset, disks_change
from workers.validators import check_os

BOOTS = "worker.boot.batch"
RESETS = "worker.disk.reset.batch"
ACCESSES = "worker.access.batch"


def boots_work(*, actor: Actor, worker_ids: Sequence[str], **boot: Any) -> Work:
    """What many workers boot; `boot` is any of `os`, `menu_default`, `menu_timeout`, None clears."""
    actor.require(OPERATOR)
    names = _names(worker_ids)

    def do(watch: Watch) -> dict[str, Any]:
        done = workers_boot_set(
            actor=actor, worker_ids=names, progress=watch.at, watch=watch, **boot
        )
        return answered(_answer(done), watch)

    return _work(BOOTS, do, names, boot)


def resets_work(
    *, actor: Actor, worker_ids: Sequence[str], os: str, master: str | None = None
) -> Work:
    """The disk of one system of many workers back to its master (or to another one)."""
    actor.require(OPERATOR)
    names, system = _names(worker_ids), check_os(os)
    if master is not None:
        check_master(master, field="master")

    def reset(name: str) -> object:
        return disk_reset(actor=actor, worker_id=name, os=system, master=master)

    options = {"os": system, "master": master}
    return _work(RESETS, _each(names, reset), names, options)


def accesses_work(
    *,
    actor: Actor,
    worker_ids: Sequence[str],
    access: str | None,
    force: bool = False,
) -> Work:
    """Who may log in to the targets of many workers; None: as their nodes say."""
    actor.require(OPERATOR)
    names = _names(worker_ids)
    if access is not None:
        check_access(access)

    def change(name: str) -> object:
        return worker_access_set(
            actor=actor, worker_id=name, access=access, force=force
        )

    options = {"access": access, "force": force}
    return _work(ACCESSES, _each(names, change), names, options)


def _names(worker_ids: Sequence[str]) -> list[str]:
    check_number(worker_ids, "worker_ids")
    return [name.lower() for name in worker_ids]


def _each(
    names: list[str], change: Callable[[str], object]
) -> Callable[[Watch], dict[str, Any]]:
    def do(watch: Watch) -> dict[str, Any]:
        done = disks_change(names, change, progress=watch.at, watch=watch)
        return answered(_answer(done), watch)

    return do


def _answer(done: Changed) -> dict[str, list[dict[str, Any]]]:
    return {
        "succeeded": [{"worker_id": name} for name in done.succeeded],
        "failed": [
            {"worker_id": name, "error": words_for(error)}
            for name, error in done.failed
        ],
    }


def _work(
    kind: str,
    do: Callable[[Watch], dict[str, Any]],
    names: list[str],
    options: dict[str, Any],
) -> Work:
    return Work(
        kind=kind,
        do=do,
        about={**options, "worker_ids": names},
        same=[options, names],
        total=len(names),
    )
