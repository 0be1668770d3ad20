"""Changing who may log in: of one worker, and of a node with all workers that follow it.

The ledger says what is wanted before a node is asked, and each disk's and CD's entry what its target was given last.
So whatever dies in between, what is not yet so is known: boots are given the secret for either, `differences` names the
targets, and the same call again goes on. Nodes are never asked inside a write.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings

from agents.client import NodeClient
from agents.models import Agent
from agents.nodes import words_of
from agents.protocol.access import CHAP, Chap
from agents.protocol.answers import Target
from agents.selectors import agent_find, agent_get
from agents.services import agent_update
from agents.spread import spread
from agents.validators import check_access
from ipxeready.actors import ADMINISTRATOR, OPERATOR, Actor
from ipxeready.ending import ending, not_tried
from ipxeready.errors import ApplicationError, Conflict, Invalid, NodeRefused
from ipxeready.index import ensure_fresh, writing
from ipxeready.index.writer import Transaction
from ipxeready.said import joined, said
from ipxeready.storage.inflight import claim
from workers import chap, selectors
from workers.access import effective, noted
from workers.cds import claimed
from workers.ledger import record_get, record_put
from workers.models import Cd, Disk, Worker
from workers.removal import GONE, cannot_ask
from workers.services import UNSET
from workers.settle import mark

_WORKER, _AGENT = "worker.access.set", "agent.access.set"
#: Workers of a node that are done together: each is claimed by open files meanwhile.
CHUNK = 50


@dataclass
class _Step:
    """One target to be set."""

    worker: Worker
    thing: Disk | Cd
    mode: str
    agent: Agent | None
    chap: Chap | None = field(default=None, repr=False)
    error: ApplicationError | None = None


# --- one worker ------------------------------------------------------------------


def worker_access_set(
    *,
    actor: Actor,
    worker_id: str,
    access: Any = UNSET,
    force: bool = False,
    rotate: bool = False,
) -> dict[str, Any]:
    """Say who may log in to a worker's targets, None: as their nodes say; `rotate` makes a new secret.

    The record with `changed` (targets that were set) and `kept` (those that are not there). A node that does not
    answer is Unavailable, a machine that could not come back is Conflict unless forced: then nothing was changed, or
    the refusal names what was.
    """
    actor.require(OPERATOR)
    if access is UNSET and not rotate:
        raise Invalid(
            said("give access (off, acl, chap, or null for the node's) or rotate")
        )
    own = access if access in (UNSET, None) else check_access(access)
    worker = selectors.worker_get(worker_id)
    with _claims(worker):
        worker = selectors.worker_get(worker.worker_id)
        word = worker.access if own is UNSET else own or ""
        steps = _steps(worker, word)
        if rotate and all(step.mode != CHAP for step in steps):
            raise Conflict(
                said(
                    "rotate: no target of {worker_id} has access chap, so there is no secret to "
                    "change",
                    worker_id=worker.worker_id,
                )
            )
        kept = _missing(steps)
        steps = [step for step in steps if step.thing.iqn not in kept]
        _begin(actor, worker, word, steps, rotate, {*kept})
        done = _carry_out(steps, force)
        return _end(actor, worker, word, steps, done, kept, rotate)


@contextmanager
def _claims(worker: Worker) -> Iterator[None]:
    """Keep everybody else from the worker's disks and CD; Conflict when somebody is at them."""
    with ExitStack() as stack:
        for disk in selectors.disks_of(worker.worker_id):
            name = mark(worker.worker_id, disk.os)
            if disk.status or not stack.enter_context(
                claim(settings.IPXE_LAYOUT.run, name)
            ):
                raise Conflict(
                    said(
                        "access: the {os} disk of {worker_id} is being worked on; try again when "
                        "that is done",
                        os=disk.os,
                        worker_id=worker.worker_id,
                    )
                )
        stack.enter_context(claimed(worker.hostname))
        yield


def _things(worker_id: str) -> list[Disk | Cd]:
    cd = selectors.cd_of(worker_id)
    return [*selectors.disks_of(worker_id), *([cd] if cd else [])]


def _steps(worker: Worker, word: str) -> list[_Step]:
    steps = []
    for thing in _things(worker.worker_id):
        agent = agent_find(thing.agent)
        steps.append(_Step(worker, thing, effective(word, agent), agent))
    return steps


def _missing(steps: Sequence[_Step]) -> dict[str, str]:
    """Targets that are not there to be set, and why; each node must answer before anything is changed."""
    there: dict[str, set[str]] = {}
    found: dict[str, str] = {}
    for step in steps:
        thing = step.thing
        if thing.agent not in there:
            try:
                targets = NodeClient(agent_get(thing.agent)).targets()
            except GONE as error:
                raise cannot_ask(thing, error, forget=False) from error
            there[thing.agent] = {target["iqn"] for target in targets}
        if thing.iqn not in there[thing.agent]:
            found[thing.iqn] = said(
                "node {agent} has no such target", agent=thing.agent
            )
    return found


def _begin(
    actor: Actor,
    worker: Worker,
    word: str,
    steps: Sequence[_Step],
    rotate: bool,
    kept: set[str],
) -> None:
    """The ledger says what is wanted, and the secret is durable, before a node hears of it."""
    with writing(actor=actor, op=_WORKER) as tx:
        now = selectors.worker_get(worker.worker_id)
        there = {thing.iqn for thing in _things(worker.worker_id)}
        known = {step.thing.iqn for step in steps} | kept
        if now.hostname != worker.hostname or there != known:
            raise Conflict(
                said(
                    "{worker_id} was changed meanwhile; try again",
                    worker_id=worker.worker_id,
                )
            )
        _put_word(tx, worker.worker_id, word)
        if word == CHAP or any(step.mode == CHAP for step in steps):
            make = chap.change if rotate else chap.ensure
            secret = make(tx, worker.worker_id, worker.hostname)
            for step in steps:
                step.chap = secret if step.mode == CHAP else None
        tx.log(
            status="started",
            worker_id=worker.worker_id,
            access=word or None,
            rotated=rotate or None,
        )


def _put_word(tx: Transaction, worker_id: str, word: str) -> None:
    record = record_get(tx, worker_id)
    if (record.get("access") or "") != word:
        record["access"] = word or None
        record_put(tx, worker_id, record)


def _carry_out(steps: Sequence[_Step], force: bool) -> list[_Step]:
    """Set one after the other; the first that fails ends it."""
    done = []
    for step in steps:
        try:
            _set(agent_get(step.thing.agent), step, force)
        except ApplicationError as error:
            step.error = error
            break
        done.append(step)
    return done


def _set(agent: Agent, step: _Step, force: bool) -> Target:
    return NodeClient(agent).set_access(
        step.thing.iqn, step.mode, step.chap, force=force
    )


def _end(
    actor: Actor,
    worker: Worker,
    word: str,
    steps: Sequence[_Step],
    done: Sequence[_Step],
    kept: dict[str, str],
    rotate: bool,
) -> dict[str, Any]:
    """Write down what the nodes have now; raises what a node refused."""
    failed = next((step.error for step in steps if step.error), None)
    nothing = failed is not None and not done and _certain(failed)
    names = [step.thing.iqn for step in done]
    with writing(actor=actor, op=_WORKER) as tx:
        if nothing:
            _put_word(tx, worker.worker_id, worker.access)
        _put_told(tx, worker.worker_id, done)
        if failed is None or nothing:
            chap.settle(tx, worker.worker_id, taken=failed is None)
        tx.log(
            status="ok" if failed is None else "rollback" if nothing else "failed",
            worker_id=worker.worker_id,
            access=word or None,
            rotated=rotate or None,
            changed=names or None,
            error=failed.message[:500] if failed else None,
        )
        record = selectors.record_of(selectors.worker_get(worker.worker_id))
    if failed is not None:
        raise failed if nothing else _partly(failed, names)
    return record | {"changed": names, "kept": _kept(kept)}


def _certain(error: ApplicationError) -> bool:
    """Whether the node has done nothing, rather than nobody knowing."""
    return isinstance(error, NodeRefused) or error.extra.get("sent") is False


def _partly(error: ApplicationError, names: list[str]) -> ApplicationError:
    """The refusal, naming what is set already and how to go on."""
    done = [said("set on {names}; ", names=", ".join(names))] if names else []
    if isinstance(error, NodeRefused):
        rest = said("then: {error}. Set it again to go on", error=error.error)
        words = joined("", *done, rest)
        return NodeRefused(agent=error.agent, status=error.status, error=words)
    rest = said(
        "then: {error}. The ledger says what is wanted: set it again to go on, or back to "
        "what it was",
        error=error.message,
    )
    error.message = joined("", *done, rest)
    return error


def _put_told(tx: Transaction, worker_id: str, steps: Sequence[_Step]) -> None:
    """Say in the entries which access their targets were given."""
    told = {step.thing.iqn: step.mode for step in steps}
    if not told:
        return
    record = record_get(tx, worker_id)
    record["disks"] = [
        noted(disk, told[disk["iqn"]]) if disk.get("iqn") in told else disk
        for disk in record["disks"]
    ]
    cd = record.get("cd")
    if cd and cd.get("iqn") in told:
        record["cd"] = noted(cd, told[cd["iqn"]])
    record_put(tx, worker_id, record)


def _kept(reasons: dict[str, str]) -> list[dict[str, str]]:
    return [{"iqn": iqn, "reason": reason} for iqn, reason in reasons.items()]


# --- a node with all that follow it ------------------------------------------------


def agent_access_plan(
    agent: Agent, mode: str
) -> tuple[list[str], list[dict[str, str]]]:
    """What `agent_access_set` would set, and what it would leave, by the ledger alone: for a question beforehand."""
    steps, kept = _of_node(agent, mode)
    return [step.thing.iqn for step in steps], _kept(kept)


def agent_access_set(
    *, actor: Actor, agent_id: str, access: str, force: bool = False
) -> dict[str, list[Any]]:
    """Set a node's access and that of all targets there of workers without a word of their own.

    `{changed: [iqn], kept: [{iqn, reason}], failed: [{iqn, error}]}`: one that fails stops no other. A node that does
    not answer is Unavailable, and nothing was changed. With `off` this is the way back.
    """
    actor.require(ADMINISTRATOR)
    mode = check_access(access)
    agent = agent_get(agent_id)
    there = {target["iqn"] for target in NodeClient(agent).targets()}
    ensure_fresh(wait=True)
    with writing(actor=actor, op=_AGENT) as tx:
        agent_update(actor=actor, agent_id=agent.id, access=mode)
        tx.log(op=_AGENT, status="started", agent=agent.id, access=mode)
    steps, kept = _of_node(agent, mode)
    for step in [step for step in steps if step.thing.iqn not in there]:
        steps.remove(step)
        kept[step.thing.iqn] = said("the node has no such target")
    for iqn in sorted(there - {step.thing.iqn for step in steps} - set(kept)):
        kept[iqn] = said("it belongs to no worker")
    by_worker: dict[str, list[_Step]] = {}
    for step in steps:
        by_worker.setdefault(step.worker.worker_id, []).append(step)
    groups = list(by_worker.values())
    for start in range(0, len(groups), CHUNK):
        _set_many(actor, agent, groups[start : start + CHUNK], force)
    changed = [step.thing.iqn for step in steps if step.error is None]
    failed = [
        {"iqn": step.thing.iqn, "error": words_of(step.error)}
        for step in steps
        if step.error is not None
    ]
    with writing(actor=actor, op=_AGENT) as tx:
        tx.log(
            status="failed" if failed else "ok",
            agent=agent.id,
            access=mode,
            changed_count=len(changed),
            kept_count=len(kept),
            failed=[entry["iqn"] for entry in failed][:CHUNK] or None,
            forced=force or None,
        )
    return {"changed": changed, "kept": _kept(kept), "failed": failed}


def _of_node(agent: Agent, mode: str) -> tuple[list[_Step], dict[str, str]]:
    """The targets of a node that follow it, and those that do not with the reason."""
    steps: list[_Step] = []
    kept: dict[str, str] = {}
    names = selectors.workers_on(agent.id)
    workers = {row.worker_id: row for row in selectors.workers_of(names)}
    for worker_id, things in selectors.things_of(names).items():
        worker = workers[worker_id]
        for thing in things:
            if thing.agent != agent.id:
                continue
            if worker.access:
                kept[thing.iqn] = said(
                    "{worker_id} has access {access} of its own",
                    worker_id=worker_id,
                    access=worker.access,
                )
            elif isinstance(thing, Disk) and thing.status:
                kept[thing.iqn] = said("it is {status}", status=thing.status)
            else:
                steps.append(_Step(worker, thing, mode, agent))
    return steps, kept


def _set_many(
    actor: Actor, agent: Agent, groups: Sequence[list[_Step]], force: bool
) -> None:
    """Set the targets of some workers: secrets in one write, the node, then what was done in one write."""
    if ending():
        for step in (step for group in groups for step in group):
            step.error = not_tried()
        return
    with ExitStack() as stack:
        mine = []
        for group in groups:
            try:
                stack.enter_context(_claims(group[0].worker))
                mine.append(group)
            except ApplicationError as error:
                for step in group:
                    step.error = error
        _give_secrets(actor, mine)
        going = [step for group in mine for step in group if step.error is None]
        results = spread(
            ((agent, step) for step in going),
            lambda node, step: _set(node, step, force),
        )
        for step, result in zip(going, results, strict=True):
            step.error = result if isinstance(result, ApplicationError) else None
        try:
            with (
                writing(actor=actor, op=_AGENT) as tx,
                tx.yaml("workers").together(),
            ):
                for group in mine:
                    _note_group(tx, group)
        except ApplicationError as error:
            for step in going:
                step.error = step.error or error


def _give_secrets(actor: Actor, groups: Sequence[list[_Step]]) -> None:
    """The secret of each worker that needs one, durable before the node hears of it."""
    needing = [group for group in groups if any(step.mode == CHAP for step in group)]
    if not needing:
        return
    try:
        with writing(actor=actor, op=_AGENT) as tx:
            for group in needing:
                worker = group[0].worker
                secret = chap.ensure(tx, worker.worker_id, worker.hostname)
                for step in group:
                    step.chap = secret
    except ApplicationError as error:
        for step in (step for group in needing for step in group):
            step.error = error


def _note_group(tx: Transaction, group: list[_Step]) -> None:
    done = [step for step in group if step.error is None]
    try:
        _put_told(tx, group[0].worker.worker_id, done)
    except ApplicationError as error:
        for step in done:
            step.error = error
