"""The keeper: one thread of all serving processes settles disks that nobody works on and ends jobs whose process is gone."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Hashable
from dataclasses import dataclass, field

from django.conf import settings
from django.db import DatabaseError, connections

from ipxeready import index
from ipxeready.ending import ending
from ipxeready.errors import ApplicationError
from ipxeready.jobs.selectors import store
from ipxeready.jobs.services import jobs_recover
from ipxeready.storage.inflight import claim
from workers.models import Disk
from workers.selectors import under_way
from workers.settle import BUSY, CHUNK, settle

log = logging.getLogger(__name__)

#: Seconds between two looks.
PERIOD = 3.0
#: Seconds until a node that did not answer is asked again: doubled each time up to the second.
FIRST, LONGEST = 5.0, 60.0
#: Seconds between two looks for old jobs to remove.
PRUNING = 600.0
#: How soon an ending process is noticed.
_STEP = 0.25


#: By the disk's worker and system, or the job's id.
_Later = dict[Hashable, tuple[float, float]]


@dataclass
class Keeper:
    """What it remembers between two looks."""

    #: What could not be settled or ended: when it is looked at next, and after how many seconds again.
    _disks: _Later = field(default_factory=dict)
    _jobs: _Later = field(default_factory=dict)
    _pruned: float = float("-inf")

    def look(self) -> None:
        """One look; asks no node and writes nothing when nothing is left over."""
        index.ensure_fresh()
        self._settle()
        self._end_jobs()
        if time.monotonic() - self._pruned > PRUNING:
            store().prune()
            self._pruned = time.monotonic()

    def _settle(self) -> None:
        left = list(under_way())
        names = {(disk.worker_id, disk.os) for disk in left}
        self._disks = {name: at for name, at in self._disks.items() if name in names}
        due = [disk for disk in left if _due(self._disks, (disk.worker_id, disk.os))]
        for start in range(0, len(due), CHUNK):
            part = due[start : start + CHUNK]
            failed = settle(part)
            for disk in part:
                if disk.pk in failed:
                    self._put_off(disk, failed[disk.pk])

    def _put_off(self, disk: Disk, error: ApplicationError) -> None:
        name = disk.worker_id, disk.os
        if name not in self._disks:
            log.info("%s stays %s: %s", disk.iqn, disk.status, error)
        # A node that answers and is at it is asked as often as before.
        _put_off(self._disks, name, again=error.code == BUSY)

    def _end_jobs(self) -> None:
        left = jobs_recover(lambda job_id: _due(self._jobs, job_id))
        open_ = {job.id for job in store().unfinished()} if self._jobs else set()
        self._jobs = {name: at for name, at in self._jobs.items() if name in open_}
        for job_id, looked in left.items():
            if looked:
                self._jobs.pop(job_id, None)
            else:
                _put_off(self._jobs, job_id)


def _due(later: _Later, name: Hashable) -> bool:
    return later.get(name, (0.0, 0.0))[0] <= time.monotonic()


def _put_off(later: _Later, name: Hashable, *, again: bool = False) -> None:
    """Look later: after twice as long as the last time, unless it is the same `again`."""
    before = later.get(name)
    wait = min(before[1] * 2, LONGEST) if before and not again else FIRST
    later[name] = time.monotonic() + wait, wait


def keep(stopped: threading.Event) -> None:
    """Look every few seconds while this process is the one that does; until the event, or the process ends."""
    keeper = Keeper()
    try:
        while not _wait(stopped, _STEP):
            mine = False
            try:
                with claim(settings.IPXE_LAYOUT.run, "keeper") as mine:
                    while mine and not _wait(stopped, PERIOD):
                        _look(keeper)
            except ApplicationError as error:
                log.warning("the keeper cannot begin: %s", error)  # a full disk
            if not mine:
                _wait(stopped, PERIOD)
    finally:
        connections.close_all()


def _look(keeper: Keeper) -> None:
    try:
        keeper.look()
    except (ApplicationError, OSError, DatabaseError) as error:
        log.warning("the keeper cannot look: %s", error)
    except Exception:
        # It must outlive whatever one look meets.
        log.exception("the keeper failed")


def _wait(stopped: threading.Event, seconds: float) -> bool:
    """Wait so long; True as soon as it is over."""
    end = time.monotonic() + seconds
    while not (stopped.is_set() or ending()):
        left = end - time.monotonic()
        if left <= 0:
            return False
        stopped.wait(min(left, _STEP))
    return True


def start() -> None:
    """Begin to keep in this process; it ends with it."""
    threading.Thread(target=keep, args=(threading.Event(),), name="keeper").start()
