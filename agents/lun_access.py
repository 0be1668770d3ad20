"""Who may log in to a target that belongs to no worker. Never called inside `index.writing()`."""

from __future__ import annotations

from agents import selectors
from agents.client import NodeClient
from agents.nodes import audited
from agents.protocol.access import CHAP
from agents.protocol.answers import Target
from agents.services import owners_on
from agents.validators import check_access
from ipxeready.actors import OPERATOR, Actor
from ipxeready.errors import Conflict, Invalid
from ipxeready.said import said
from ipxeready.storage.iqn import check_iqn


def lun_access_set(
    *, actor: Actor, agent_id: str, iqn: str, access: str, force: bool = False
) -> Target:
    """Set it, and return the target as the node lists it now. Conflict for a worker's target: that follows the worker's word.

    chap is Invalid: a secret is a worker's. No session is cut; the node refuses (409) what a machine that is connected
    could not come back under, unless `force`.
    """
    actor.require(OPERATOR)
    agent = selectors.agent_get(agent_id)
    name = check_iqn(iqn)
    mode = check_access(access)
    if owners := owners_on(agent.id, [name]).get(name):
        raise Conflict(
            said(
                "access: {name} belongs to {owners}: set it there, with PUT "
                "/workers/{owner}/access or on the worker's page",
                name=name,
                owners=", ".join(owners),
                owner=owners[0],
            ),
            code="target.owned",
        )
    if mode == CHAP:
        raise Invalid(
            said(
                "access: {name} belongs to no worker, so there is no secret for it; take off "
                "or acl",
                name=name,
            ),
            code="access.no_secret",
            field="access",
        )
    with audited(
        actor,
        "lun.access.set",
        agent=agent.id,
        iqn=name,
        access=mode,
        force=force or None,
    ):
        return NodeClient(agent).set_access(name, mode, force=force)
