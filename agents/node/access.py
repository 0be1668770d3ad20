"""Who may log in to which target: what a request says, else what is remembered, else the node's default. It never cuts a session."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

from agents.node.backends.base import Export, describe, shown_as
from agents.node.memory import State
from agents.node.runtime import Node
from agents.protocol.access import CHAP, OFF, Access, Chap, access_of, check_access
from agents.protocol.answers import Session, Target
from agents.protocol.systems import CD
from ipxeready.errors import ApplicationError, Conflict, Invalid
from ipxeready.said import said
from ipxeready.storage import iqn as iqns

logger = logging.getLogger(__name__)


@contextlib.contextmanager
def remembered(
    node: Node,
    iqn: str,
    mode: str | None,
    chap: Chap | None,
    targets: list[Target],
    *,
    force: bool = False,
) -> Iterator[Access]:
    """The access that a request leads to, remembered for the length of the block and, unless that fails, afterwards.

    `targets` are those that a change of it has to know of, just seen. A new secret of an initiator goes to all its targets.
    The caller holds the lock.
    """
    state = node.memory.read()
    access = wanted(node, state, iqn, mode, chap)
    siblings = _with_new_secret(node, iqn, access, targets)
    if not force:
        for target in targets:
            if target["iqn"] == iqn:
                _check_not_locked_out(target, access, changed=bool(siblings))
            elif target["iqn"] in siblings:
                _check_not_locked_out(target, access, changed=True)
    before = node.memory.set(iqn, access=mode)
    old: Chap | None = None
    try:
        if access.chap is not None:
            old = node.secrets.set(access.initiator or "", access.chap)
        # A new secret shuts all targets of its name on the way.
        with node.in_doubt(*siblings):
            yield access
            others = [export for name, export in siblings.items() if name != iqn]
            taken = node.backend.export_all(others)
        for name, error in taken.items():
            if error is not None:
                node.doubtful.add(name)
                raise Conflict(
                    said(
                        "{name} did not take the new secret: {why}",
                        name=name,
                        why=error.message,
                    ),
                    code="chap.half",
                ) from error
    except BaseException:
        if access.chap is not None and old != access.chap:
            node.secrets.set(access.initiator or "", old)
        node.memory.restore(iqn, before)
        raise


def expect(node: Node, iqn: str, mode: str | None, chap: Chap | None) -> State:
    """Before an image comes to the name of a target that has none; what was remembered before.

    Should we be killed before its export, the next start exports it, and lets in whom the request says. What was taken
    off under that name is gone, and no reason to leave the new one off. The caller holds the lock.
    """
    before = node.memory.set(iqn, off=False, access=mode)
    initiator = iqns.initiator_of(iqn)
    try:
        if chap is not None and initiator not in node.secrets.read():
            node.secrets.set(initiator, chap)
    except BaseException:
        expect_no_more(node, iqn, before)
        raise
    return before


def expect_no_more(node: Node, iqn: str, before: State) -> None:
    """That image did not come, or went again. What cannot be forgotten harms nobody, and is in the log."""
    try:
        with node.changing():
            if iqn in before.access:
                node.memory.set(iqn, access=before.access[iqn])
            else:
                forget(node, iqn)
    except ApplicationError as error:
        logger.warning("%s was not made; %s", iqn, error.message)


def wanted(
    node: Node, state: State, iqn: str, mode: str | None, chap: Chap | None = None
) -> Access:
    """The access to a target; Invalid when it is chap and there is no secret for it."""
    if mode is not None:
        check_access(mode)
    if chap is not None and mode != CHAP:
        raise Invalid(
            said(
                "chap is given and access is {access}; give both, or leave chap out.",
                access=mode,
            )
            if mode
            else said("chap is given and access is not; give both, or leave chap out."),
            code="chap.without_access",
            field="chap",
        )
    mode = mode or node.memory.mode(state, iqn)
    if mode != CHAP or chap is not None:
        return access_of(iqn, mode, chap)
    initiator = iqns.initiator_of(iqn)
    known = node.secrets.read().get(initiator)
    if known is None:
        raise Invalid(
            said(
                "access chap needs chap with username and secret: this node has no secret for "
                "{initiator}.",
                initiator=initiator,
            ),
            code="chap.missing",
            field="chap",
        )
    return access_of(iqn, mode, known)


def is_shared(iqn: str, path: str) -> bool:
    """Whether a target is the one that all machines share of an ISO: it bears the ISO's own name."""
    name = iqn.rpartition(":")[2]
    return name.endswith(iqns.ISO_SUFFIX) and name == path.rpartition("/")[2].lower()


def check_shared(iqn: str, path: str, mode: str | None) -> None:
    """Refuse to close an ISO that all machines share."""
    if mode not in (None, OFF) and is_shared(iqn, path):
        raise Invalid(
            said(
                "access {mode}: {iqn} bears the ISO's own name, so it is no worker's alone: it is "
                "read-only and open to all. Attach the ISO to one worker under that worker's name.",
                mode=repr(mode),
                iqn=iqn,
            ),
            code="access.shared",
            field="access",
        )


def forget(node: Node, iqn: str) -> None:
    """Forget all about a target that is gone for good, and its initiator's secret with the last one."""
    initiator = iqns.initiator_of(iqn)
    state = node.memory.set(iqn, off=False, cd=False, forget=True)
    others = f"{initiator}."
    if any(
        f"{name}.".startswith(others) and name != iqn
        for name in (*state.access, *state.cds)
    ):
        return
    if initiator not in node.secrets.read():
        return
    names = {
        *(t["iqn"] for t in node.about(iqn) if t["iqn"] != iqn),
        *(
            f"{node.base_iqn}:{entry.name.removesuffix(iqns.IMAGE_SUFFIX)}"
            for entry in node.images.entries()
        ),
    }
    if all(iqns.initiator_of(name) != initiator for name in names):
        node.secrets.set(initiator, None)


def export_of(target: Target, access: Access) -> Export:
    """The export that a listed target is, with another access."""
    lun = target["luns"][0]
    return Export(target["iqn"], lun["backing"], cd=lun["type"] == CD, access=access)


def locked_out(target: Target, access: Access) -> list[Session]:
    """The sessions whose initiators could not log in again once a target has that access instead of its present one.

    With CHAP that is everybody: a machine learns its secret at its boot.
    """
    if access.mode == OFF:
        return []
    return [
        session
        for session in target["sessions"]
        if session["initiator"] != access.initiator or access.mode == CHAP
    ]


# -- inside --------------------------------------------------------------


def _with_new_secret(
    node: Node, iqn: str, access: Access, targets: list[Target]
) -> dict[str, Export]:
    """The initiator's targets with CHAP, where `access` brings it another secret; by IQN."""
    if access.chap is None or access.initiator is None:
        return {}
    known = node.secrets.read().get(access.initiator)
    if known is None or known == access.chap:
        return {}
    return {
        target["iqn"]: export_of(target, access)
        for target in targets
        if iqns.initiator_of(target["iqn"]) == access.initiator
        and target["luns"]
        and (target.get("access") == CHAP or target["iqn"] == iqn)
    }


def _check_not_locked_out(target: Target, access: Access, *, changed: bool) -> None:
    """Conflict where a machine that is connected could not log in again; `changed` tells of a new secret."""
    if shown_as(target, access) and not changed:
        return
    out = locked_out(target, access)
    if out:
        why = (
            said("it has not been given that secret")
            if access.mode == CHAP
            else said("only {initiator} may then log in", initiator=access.initiator)
        )
        raise Conflict(
            said(
                "{iqn} is in use by {sessions}, which could not come back after a break of its "
                "connection: {why}. Shut that machine down, or repeat with force=true; nobody is cut "
                "off.",
                iqn=target["iqn"],
                sessions=describe(out),
                why=why,
            ),
            code="access.locked_out",
            extra={"sessions": out},
        )
