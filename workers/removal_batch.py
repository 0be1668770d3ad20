"""Deleting many workers: nodes asked once, targets taken off side by side, ledger and bindings in one save and one reload.

A worker that is in use, or whose node refuses, fails alone and stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from agents.client import NodeClient
from agents.models import Agent
from agents.protocol.answers import Session, Target
from agents.selectors import agents as all_agents
from agents.spread import spread
from agents.together import ask_all
from ipxeready.actors import OPERATOR, Actor
from ipxeready.errors import ApplicationError, Conflict, NotFound
from ipxeready.index import ensure_fresh, writing
from ipxeready.index.writer import Transaction
from ipxeready.jobs.watch import NOBODY, Watch
from ipxeready.said import said
from ipxeready.storage.inflight import claim
from workers import chap, selectors
from workers.batch_items import Count, check_number, left_alone, words_for
from workers.cds import claimed
from workers.choices import DELETING
from workers.dnsmasq import reload_after
from workers.ledger import disk_change, disk_drop
from workers.models import Cd, Disk
from workers.removal import (
    GONE,
    Removal,
    as_before,
    cannot_ask,
    dropped,
    given_meanwhile,
    log_dropped,
    refuse_target,
    remove_from,
)
from workers.services import removed
from workers.settle import mark
from workers.validators import check_worker_id

#: Workers whose targets are taken off together: each disk is claimed by an open file meanwhile.
CHUNK = 50

_Answers = dict[str, dict[str, Target] | ApplicationError]


@dataclass
class _Item:
    """One worker of the batch and what became of it."""

    worker_id: str
    hostname: str = ""
    things: list[Disk | Cd] = field(default_factory=list)
    gone: list[Disk | Cd] = field(default_factory=list)
    stays: list[tuple[Disk | Cd, ApplicationError]] = field(default_factory=list)
    closed: list[Session] = field(default_factory=list)
    error: ApplicationError | None = None


def workers_delete(
    *,
    actor: Actor,
    worker_ids: Sequence[str],
    delete_disk: bool = False,
    ignore_missing_target: bool = False,
    force: bool = False,
    forget: bool = False,
    watch: Watch = NOBODY,
) -> dict[str, Any]:
    """Delete workers with all that belongs to them: `{succeeded, failed}`, in the request's order."""
    delete_check(actor=actor, worker_ids=worker_ids)
    removal = Removal(
        delete_file=delete_disk,
        ignore_missing_target=ignore_missing_target,
        force=force,
        forget=forget,
    )
    ensure_fresh(wait=True)
    items = _items(worker_ids)
    agents = {agent.id: agent for agent in all_agents()}
    _refuse(items, removal, agents)
    watch.note(hostnames=[[item.worker_id, item.hostname] for item in items])
    busy = [item for item in items if item.error is None and item.things]
    count = Count(watch, len(items))
    count.add(sum(item.error is not None for item in items))
    bare = [item for item in items if item.error is None and not item.things]
    for start in range(0, len(busy), CHUNK):
        chunk = busy[start : start + CHUNK]
        if left_alone(watch):
            for item in chunk:
                item.error = left_alone(watch)
        else:
            _take_off(actor, chunk, removal, agents)
        count.add(len(chunk))
    if watch.cancelled():
        for item in bare:
            item.error = left_alone(watch)
    answer = _forget(actor, items, removal)
    count.add(len(bare))
    return answer


def delete_check(*, actor: Actor, worker_ids: Sequence[str]) -> None:
    """What `workers_delete` refuses as a whole, before it asks or writes anything."""
    actor.require(OPERATOR)
    check_number(worker_ids, "worker_ids")


def _items(worker_ids: Sequence[str]) -> list[_Item]:
    items, seen = [], set()
    for worker_id in worker_ids:
        item = _Item(worker_id)
        items.append(item)
        try:
            item.worker_id = check_worker_id(worker_id)
            if item.worker_id in seen:
                raise Conflict(
                    said(
                        "{worker_id} is named earlier in this request",
                        worker_id=item.worker_id,
                    )
                )
            seen.add(item.worker_id)
        except ApplicationError as error:
            item.error = error
    known = [item.worker_id for item in items if item.error is None]
    hostnames = selectors.hostnames_of(known)
    things = selectors.things_of(known)
    for item in items:
        if item.error is not None:
            continue
        if item.worker_id not in hostnames:
            item.error = selectors.no_worker(item.worker_id)
            continue
        item.hostname = hostnames[item.worker_id]
        item.things = things.get(item.worker_id, [])
    return items


# --- before anything goes ----------------------------------------------------


def _refuse(items: list[_Item], removal: Removal, agents: dict[str, Agent]) -> None:
    """Ask each node once; workers in use or on a node that is gone are left alone."""
    names = {thing.agent for item in items for thing in item.things}
    answers = ask_all(
        [agent for name, agent in agents.items() if name in names],
        lambda agent: {each["iqn"]: each for each in NodeClient(agent).targets()},
        settings.IPXE.agent_timeout,
    )
    for item in items:
        try:
            for thing in item.things:
                _refuse_thing(thing, answers, removal)
        except ApplicationError as error:
            item.error = error


def _refuse_thing(thing: Disk | Cd, answers: _Answers, removal: Removal) -> None:
    answer = answers.get(thing.agent)
    if answer is None:
        answer = NotFound(said("there is no node {agent}", agent=repr(thing.agent)))
    if isinstance(answer, ApplicationError):
        if removal.forget and isinstance(answer, GONE):
            return
        raise cannot_ask(thing, answer)
    refuse_target(thing, answer.get(thing.iqn), removal)


# --- on the nodes --------------------------------------------------------------


def _take_off(
    actor: Actor, items: list[_Item], removal: Removal, agents: dict[str, Agent]
) -> None:
    with ExitStack() as stack:
        for item in items:
            try:
                _claim(stack, item)
            except ApplicationError as error:
                item.error = error
        going = [item for item in items if item.error is None]
        try:
            # A broken file refuses all of them here, not each.
            with (
                writing(actor=actor, op="delete_worker") as tx,
                tx.yaml("workers").together(),
            ):
                now = selectors.things_of([item.worker_id for item in going])
                for item in going:
                    _mark(tx, item, now.get(item.worker_id, []))
        except ApplicationError as error:
            for item in going:
                item.error = error
        pairs = [
            (item, thing)
            for item in going
            if item.error is None
            for thing in item.things
        ]
        for item, thing in pairs:
            if thing.agent not in agents:  # to be forgotten, or it had been refused
                item.gone.append(thing)
        pairs = [pair for pair in pairs if pair[1].agent in agents]
        results = spread(
            ((agents[thing.agent], thing) for _, thing in pairs),
            lambda agent, thing: remove_from(agent, thing, removal),
        )
        for (item, thing), result in zip(pairs, results, strict=True):
            if not isinstance(result, ApplicationError):
                item.closed += result
            elif not (removal.forget and isinstance(result, GONE)):
                item.stays.append((thing, result))
                continue
            item.gone.append(thing)


def _claim(stack: ExitStack, item: _Item) -> None:
    for thing in item.things:
        if isinstance(thing, Disk):
            name = mark(thing.worker_id, thing.os)
            if not stack.enter_context(claim(settings.IPXE_LAYOUT.run, name)):
                raise Conflict(
                    said(
                        "the {os} disk of {worker_id} is being worked on; try again when that is done",
                        os=thing.os,
                        worker_id=item.worker_id,
                    )
                )
    stack.enter_context(claimed(item.hostname))


def _mark(tx: Transaction, item: _Item, now: list[Disk | Cd]) -> None:
    try:
        before = {thing.iqn for thing in item.things}
        if {thing.iqn for thing in now} != before:
            raise Conflict(
                said(
                    "{worker_id} was changed meanwhile; delete it again",
                    worker_id=item.worker_id,
                )
            )
        for thing in item.things:
            if isinstance(thing, Disk):
                disk_change(tx, item.worker_id, thing.os, status=DELETING)
        tx.log(status="started", worker_id=item.worker_id, hostname=item.hostname)
    except ApplicationError as error:
        item.error = error


# --- the workers themselves ------------------------------------------------------


def _forget(actor: Actor, items: list[_Item], removal: Removal) -> dict[str, Any]:
    """One save for all of them."""
    if not any(item.error is None for item in items):
        return _answer(items)
    with writing(actor=actor, op="delete_worker") as tx:
        workers, hosts = tx.yaml("workers"), tx.hosts
        left = [item.worker_id for item in items if item.error is None]
        hostnames_now, things_now = (
            selectors.hostnames_of(left),
            selectors.things_of(left),
        )
        going = []
        for item in items:
            if item.error is not None:
                continue
            item.error = _changed(
                item,
                hostnames_now.get(item.worker_id),
                things_now.get(item.worker_id, []),
            )
            if item.error is None and not item.stays:
                going.append(item)
                for thing in item.gone:
                    log_dropped(tx, thing, removal)
            else:
                _partly(tx, item, removal)
        names = [item.worker_id for item in going]
        workers.remove_many(names)
        chap.forget(tx, names)
        hostnames = [item.hostname for item in going]
        # What another record has by hand keeps its binding.
        shared = selectors.hostnames_held(hostnames)
        unbound = hosts.unbind_many([h for h in hostnames if h not in shared])
        reloading = reload_after(tx) if any(unbound.values()) else None
        for item in going:
            tx.log(
                worker_id=item.worker_id,
                hostname=item.hostname,
                delete_disk=removal.delete_file,
                **removed(unbound.get(item.hostname, [])),
            )
    return _answer(items) | (reloading.answer() if reloading else {})


def _changed(
    item: _Item, hostname: str | None, things: list[Disk | Cd]
) -> ApplicationError | None:
    """Why the worker is not the one any more whose targets were taken off."""
    if hostname is None:
        return selectors.no_worker(item.worker_id)
    if hostname != item.hostname:
        return Conflict(
            said(
                "{worker_id} was renamed meanwhile; try again", worker_id=item.worker_id
            )
        )
    ours = {thing.iqn for thing in item.things}
    for thing in things:
        made = isinstance(thing, Disk) and thing.status != DELETING
        if made or thing.iqn not in ours:
            kind = thing.os if isinstance(thing, Disk) else "CD"
            return given_meanwhile(item.worker_id, kind)
    return None


def _partly(tx: Transaction, item: _Item, removal: Removal) -> None:
    """Write down what is gone and what stays of a worker that stays."""
    try:
        for thing in item.gone:
            if isinstance(thing, Disk):  # but not one that was made anew meanwhile
                disk_drop(tx, item.worker_id, thing.os, status=DELETING)
                log_dropped(tx, thing, removal)
            else:
                dropped(tx, thing, removal)
        for thing, error in item.stays:
            as_before(tx, thing, error)
    except ApplicationError as error:
        item.error = item.error or error
    if item.stays:
        item.error = item.error or item.stays[0][1]
    tx.log(
        status="failed",
        worker_id=item.worker_id,
        hostname=item.hostname,
        agent=item.stays[0][0].agent if item.stays else None,
        done=[gone.iqn for gone in item.gone] or None,
        error=item.error.message[:500] if item.error else None,
    )


def _answer(items: list[_Item]) -> dict[str, Any]:
    succeeded: list[dict[str, Any]] = []
    failed: list[dict[str, Any]] = []
    for item in items:
        if item.error is None:
            done = {"worker_id": item.worker_id, "hostname": item.hostname}
            succeeded.append(done | ({"closed": item.closed} if item.closed else {}))
            continue
        words = words_for(item.error)
        if item.gone:
            words = (
                f"already deleted: {', '.join(g.iqn for g in item.gone)}; then: {words}"
            )
        failed.append({"worker_id": item.worker_id, "error": words})
    return {"succeeded": succeeded, "failed": failed}
