"""A disk for each of many workers: reserved and confirmed in one write for a hundred, made side by side on the nodes.

Each item stands on its own: one that cannot be made is told in the answer and stops nobody else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from typing import Any

from django.conf import settings

from agents.models import Agent
from agents.protocol.answers import Created, how_made
from agents.protocol.systems import DISK
from agents.scheduler import check_named_node
from agents.selectors import agent_get
from agents.spread import interleaved, spread
from agents.watched import create_disk
from ipxeready.actors import OPERATOR, Actor
from ipxeready.errors import ApplicationError, Conflict, Invalid, NodeRefused
from ipxeready.given import shown
from ipxeready.index import ensure_fresh, writing
from ipxeready.index.writer import Transaction
from ipxeready.jobs.watch import NOBODY, LeftOpen, Watch
from ipxeready.said import said
from ipxeready.storage import iqn as iqns
from ipxeready.storage.inflight import claim
from workers import selectors
from workers.batch_items import (
    Count,
    Item,
    answer_of,
    check_number,
    item_of,
    left_alone,
    refuse_repeated,
)
from workers.choices import CREATING, DiskType
from workers.disks import (
    UNSETTLED,
    DiskSpec,
    check_existing,
    disk_entry,
    disk_request,
    disk_reserve,
    disk_spec,
    look_again,
    not_in_ledger,
    told,
)
from workers.ledger import disk_drop, record_get, record_put
from workers.models import Disk, Worker
from workers.settle import backing_of, mark, settle, still_at_it

#: Items that are reserved together: each is claimed by an open file meanwhile.
CHUNK = 100


def disk_batch(
    *,
    actor: Actor,
    type: str,
    os: Any,
    targets: Sequence[tuple[str, str]],
    name: str | None = None,
    size: Any = None,
    watch: Watch = NOBODY,
) -> dict[str, list[dict[str, Any]]]:
    """A disk for each (worker_id, agent): `{succeeded, skipped, failed}`, each in the request's order.

    A success also becomes what the worker boots. For type existing without a name each worker gets
    the image that is its own.
    """
    spec = batch_check(
        actor=actor, type=type, os=os, targets=targets, name=name, size=size
    )
    items = [item_of(worker_id, agent_id) for worker_id, agent_id in targets]
    refuse_repeated(items)
    batch = _Batch(actor, spec, watch, len(items))
    ensure_fresh(wait=True)
    waiting = interleaved([item for item in items if item.open], lambda i: i.agent_id)
    batch.count.add(len(items) - len(waiting))
    for start in range(0, len(waiting), CHUNK):
        batch.run(waiting[start : start + CHUNK])
    if watch.may_leave and any(_is_left(item) for item in items):
        raise LeftOpen
    return answer_of(items)


def batch_check(
    *,
    actor: Actor,
    type: str,
    os: Any,
    targets: Sequence[tuple[str, str]],
    name: str | None = None,
    size: Any = None,
) -> DiskSpec:
    """What `disk_batch` refuses as a whole, before it asks or writes anything."""
    actor.require(OPERATOR)
    check_number(targets, "targets")
    spec = batch_spec(type=type, os=os, name=name, size=size)
    check_one_import(spec, len(targets))
    return spec


class _Part(Watch):
    """What one disk of a batch is told: it is finished even when the batch is cancelled."""

    def __init__(self, whole: Watch) -> None:
        self._whole = whole

    @property
    def may_leave(self) -> bool:
        """As the batch."""
        return self._whole.may_leave


def _is_left(item: Item) -> bool:
    """Whether its node goes on with it, or nobody knows."""
    return item.error is not None and item.error.code == UNSETTLED


def batch_spec(
    *, type: str, os: Any, name: str | None = None, size: Any = None
) -> DiskSpec:
    """The checked fields; `existing` needs no name, each worker gets its own."""
    if type == DiskType.EXISTING and not name:
        spec = disk_spec(type=type, os=os, name="its own", size=size)
        return dataclasses.replace(spec, name=None)
    return disk_spec(type=type, os=os, name=name, size=size)


def check_one_import(spec: DiskSpec, number: int) -> None:
    """Invalid when one image should become several workers' disks: it is renamed, not copied."""
    if spec.type == DiskType.IMPORT and number > 1:
        raise Invalid(
            said(
                "{name} becomes one worker's disk, not that of {number}: name one worker, or "
                "make it a master (with _tpl_ in its name) and clone that",
                name=shown(spec.name),
                number=number,
            ),
            field="name",
        )


class _Batch:
    """One request under way."""

    def __init__(self, actor: Actor, spec: DiskSpec, watch: Watch, total: int) -> None:
        self.actor = actor
        self.spec = spec
        self.watch = watch
        self.count = Count(watch, total)
        self.begun: list[str] = []
        self._agents: dict[str, Agent | ApplicationError] = {}

    def run(self, items: list[Item]) -> None:
        """Make the disks of one chunk; nothing more is begun once it is cancelled or the service is ending."""
        if left_alone(self.watch):
            for item in items:
                item.error = left_alone(self.watch)
            self.count.add(len(items))
            return
        with ExitStack() as stack:
            self._check(stack, items)
            self._reserve([item for item in items if item.open])
            self.count.add(sum(not item.open for item in items))
            self._make([item for item in items if item.open])

    # --- before anything is done -------------------------------------------
    def _check(self, stack: ExitStack, items: list[Item]) -> None:
        present = self._settled(items)
        workers = Worker.objects.in_bulk([item.worker_id for item in items])
        for item in items:
            try:
                worker = workers.get(item.worker_id)
                if worker is None:
                    raise selectors.no_worker(item.worker_id)
                item.agent = self._agent(item.agent_id)
                held = present.get(item.worker_id)
                if held is not None and not held.status:
                    item.skipped = f"{item.worker_id} has a {self.spec.os} disk already on node {held.agent}"
                    continue
                self._claim(stack, item.worker_id)
                if held is not None:
                    raise self._busy(item.worker_id)
                item.disk = disk_entry(worker, item.agent, self._own(worker))
            except ApplicationError as error:
                item.error = error

    def _settled(self, items: list[Item]) -> dict[str, Disk]:
        """The disks of this system that are there; what a crash left under way is decided first."""
        names = [item.worker_id for item in items]

        def present() -> dict[str, Disk]:
            found = Disk.objects.filter(worker_id__in=names, os=self.spec.os)
            return {disk.worker_id: disk for disk in found}

        disks = present()
        left = [disk for disk in disks.values() if disk.status]
        if not left:
            return disks
        settle(left)
        return present()

    def _agent(self, agent_id: str) -> Agent:
        if agent_id not in self._agents:
            try:
                agent = agent_get(agent_id)
                check_named_node(agent, DISK, field="agent")
                self._agents[agent_id] = agent
            except ApplicationError as error:
                self._agents[agent_id] = error
        found = self._agents[agent_id]
        if isinstance(found, ApplicationError):
            raise found
        return found

    def _claim(self, stack: ExitStack, worker_id: str) -> None:
        name = mark(worker_id, self.spec.os)
        if not stack.enter_context(claim(settings.IPXE_LAYOUT.run, name)):
            raise self._busy(worker_id)

    def _busy(self, worker_id: str) -> Conflict:
        return Conflict(
            said(
                "the {os} disk of {worker_id} is being worked on; try again when that is done",
                os=self.spec.os,
                worker_id=worker_id,
            )
        )

    def _own(self, worker: Worker) -> DiskSpec:
        """The specification for one worker."""
        if self.spec.type != DiskType.EXISTING:
            return self.spec
        own = iqns.image_name(worker.hostname, self.spec.os)
        spec = dataclasses.replace(self.spec, name=self.spec.name or own)
        check_existing(worker, spec)
        return spec

    # --- ledger, nodes, ledger ----------------------------------------------
    def _reserve(self, items: list[Item]) -> None:
        if not items:
            return
        try:
            # A broken file refuses all of them here, not each.
            with (
                writing(actor=self.actor, op="worker.disk.create") as tx,
                tx.yaml("workers").together(),
            ):
                for item in items:
                    try:
                        item.chap = disk_reserve(tx, item.worker_id, item.disk)
                    except ApplicationError as error:
                        item.error = error
        except ApplicationError as error:
            if not self.begun:
                raise
            for item in items:
                item.error = error
        self.begun += [item.worker_id for item in items if item.open]
        self.watch.note(begun=self.begun)

    def _make(self, items: list[Item]) -> None:
        if not items:
            return
        results = spread(self._jobs(items), self._ask, self.count.add)
        for item, result in zip(items, results, strict=True):
            if isinstance(result, ApplicationError):
                item.error = result
            else:
                item.made = result["backing"]
                item.how = how_made(result)
        try:
            with (
                writing(actor=self.actor, op="worker.disk.create") as tx,
                tx.yaml("workers").together(),
            ):
                for item in items:
                    self._confirm(tx, item)
        except ApplicationError as error:
            for item in items:
                if item.made is not None:
                    item.error = not_in_ledger(item.disk, error)

    @staticmethod
    def _jobs(items: list[Item]) -> Iterator[tuple[Agent, Item]]:
        for item in items:
            if item.agent is not None:
                yield item.agent, item

    def _ask(self, agent: Agent, item: Item) -> Created:
        """Have a node make one disk; runs in a thread of its own, without the database."""
        if (left := left_alone(self.watch)) is not None:
            raise left
        spec = dataclasses.replace(self.spec, name=item.disk["source"].get("name"))
        try:
            request = disk_request(spec, item.disk, item.chap)
            return create_disk(agent, request, _Part(self.watch))
        except NodeRefused:
            raise
        except LeftOpen:
            raise still_at_it(agent.id, item.disk["iqn"], code=UNSETTLED) from None
        except ApplicationError as error:
            if error.extra.get("sent") is False:
                raise
            target = look_again(agent, item.disk["iqn"])
            if target is None:
                raise
            return {"iqn": item.disk["iqn"], "backing": backing_of(target) or ""}

    def _confirm(self, tx: Transaction, item: Item) -> None:
        about = told(item.worker_id, item.disk)
        try:
            if item.made is not None:
                _ready(tx, item)
                tx.log(op="agent.create_disk", **about, **item.how)
                tx.log(**about)
                return
            if item.error is None or item.error.code == UNSETTLED:
                status = "failed"
            else:
                disk_drop(tx, item.worker_id, item.disk["os"], status=CREATING)
                status = "rollback"
            words = item.error.message[:500] if item.error else None
            tx.log(op="agent.create_disk", status="failed", **about, error=words)
            tx.log(status=status, **about, error=words)
        except ApplicationError as error:
            if item.made is not None:
                item.error = not_in_ledger(item.disk, error)
                tx.log(status="failed", **about, error=item.error.message[:500])


def _ready(tx: Transaction, item: Item) -> None:
    """The disk is there, and the worker boots it."""
    record = record_get(tx, item.worker_id)
    system = item.disk["os"]
    for at, disk in enumerate(record["disks"]):
        if str(disk.get("os", "")).lower() == system:
            there = {**disk, "backing": item.made}
            there.pop("status", None)
            record["disks"] = [*record["disks"]]
            record["disks"][at] = there
            record["default_os"] = system
            record_put(tx, item.worker_id, record)
            return
    raise Conflict(
        said(
            "{worker_id} has no {os} disk any more", worker_id=item.worker_id, os=system
        )
    )
