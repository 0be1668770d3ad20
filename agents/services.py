"""The registry's rules: who may register, change, probe and remove a storage node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from agents import selectors
from agents.adapters import DEFAULT_ROLE
from agents.calls import expand_token
from agents.models import Agent
from agents.probing import probe
from agents.protocol.access import ACL
from agents.validators import (
    check_access,
    check_agent_id,
    check_base_url,
    check_iscsi_server,
    check_sent_token,
    check_tags,
    same_place,
)
from audit.services import record_quietly
from ipxeready import index
from ipxeready.actors import ADMINISTRATOR, Actor
from ipxeready.errors import ApplicationError, Conflict, Invalid, NotFound, Unavailable
from ipxeready.index import Transaction
from ipxeready.said import said

#: Who uses a node: each returns names of workers with something on it, at most so many. The apps above fill it.
IN_USE: list[Callable[[str, int | None], list[str]]] = []


class Load(NamedTuple):
    """What workers have on a node."""

    disks: int = 0
    cds: int = 0
    workers: int = 0


#: Whose disks or CDs targets are: each gets a node's id and IQNs and returns names by IQN. The apps above fill it.
TARGET_OWNERS: list[Callable[[str, list[str]], dict[str, list[str]]]] = []
#: What is on each node, by id. The apps above fill it.
LOADS: list[Callable[[], dict[str, Load]]] = []
#: Ids that would hide an address of the API.
_RESERVED = frozenset({"probe"})
#: Names in one refusal; more are counted only.
_NAMED = 20


def agent_register(
    *,
    actor: Actor,
    agent_id: str,
    base_url: str,
    token: str = "",
    iscsi_server: str = "",
    role: Mapping[str, bool] | None = None,
    tags: list[str] | None = None,
    enabled: bool = True,
    access: str | None = None,
) -> Agent:
    """Add a storage node to the registry; a new one admits each worker to its own targets only (acl)."""
    actor.require(ADMINISTRATOR)
    name = check_agent_id(agent_id)
    if name in _RESERVED:
        raise Invalid(
            said("{name} is an address of the API; take another id", name=name),
            field="id",
        )
    record = {
        "base_url": check_base_url(base_url),
        "token": check_sent_token(token),
        "iscsi_server": check_iscsi_server(iscsi_server),
        "role": _role(role, DEFAULT_ROLE),
        "tags": check_tags(tags or []),
        "enabled": bool(enabled),
        "access": ACL if access is None else check_access(access),
    }
    with index.writing(actor=actor, op="agent.register") as tx:
        if tx.yaml("agents").get(name) is not None:
            raise Conflict(
                said(
                    "there is a node {name} already; change it with PUT /agents/{name}, or take "
                    "another id",
                    name=name,
                ),
                code="agent.exists",
                field="id",
            )
        tx.yaml("agents").put(name, record)
        tx.log(op="agent.register", agent=name, **_told(record))
    return selectors.agent_get(name)


def agent_update(
    *,
    actor: Actor,
    agent_id: str,
    base_url: str | None = None,
    token: str = "",
    iscsi_server: str | None = None,
    role: Mapping[str, bool] | None = None,
    tags: list[str] | None = None,
    enabled: bool | None = None,
    access: str | None = None,
    moved_with_token: bool = False,
) -> Agent:
    """Change what is given; an empty token keeps the old one.

    `access` holds for targets that are made from now on; those that are there keep theirs. `moved_with_token` refuses
    another address without the token for it, as pages do: a slip of the hand must not send the stored one elsewhere.
    """
    actor.require(ADMINISTRATOR)
    changes: dict[str, Any] = {}
    if base_url is not None:
        changes["base_url"] = check_base_url(base_url)
    if token:
        changes["token"] = check_sent_token(token)
    if iscsi_server is not None:
        changes["iscsi_server"] = check_iscsi_server(iscsi_server)
    if tags is not None:
        changes["tags"] = check_tags(tags)
    if enabled is not None:
        changes["enabled"] = bool(enabled)
    if access is not None:
        changes["access"] = check_access(access)
    name = str(agent_id).lower()
    with index.writing(actor=actor, op="agent.update") as tx:
        record = _existing(tx, name)
        before = selectors.agent_find(name)
        if before is None:
            raise Unavailable(
                said(
                    "the record {name} of config/agents.yml does not validate; mend it in the "
                    "file first",
                    name=name,
                ),
                code="state.invalid",
            )
        moved = base_url is not None and not same_place(
            changes["base_url"], before.base_url
        )
        if moved and moved_with_token and not token and before.token:
            raise Invalid(
                said(
                    "give the token: the stored one of {name} belongs to {base_url}, and is not "
                    "sent to another address",
                    name=name,
                    base_url=before.base_url,
                ),
                code="agent.moved",
                field="token",
            )
        if role is not None:
            old = {"disk": before.role_disk, "cd": before.role_cd}
            kept = record.get("role")
            changes["role"] = {
                **(kept if isinstance(kept, dict) else {}),
                **_role(role, old),
            }
        changed = sorted(
            field for field, value in changes.items() if record.get(field) != value
        )
        if changed:
            tx.yaml("agents").put(name, {**record, **changes})
        # The op by name: on a page this runs inside the page's own write.
        tx.log(
            op="agent.update",
            agent=name,
            changed=changed,
            **_told({field: changes[field] for field in changed}),
        )
    return selectors.agent_get(name)


def only_new_targets(agent: Agent) -> str:
    """What to know after a change of a node's access, and what to do about the targets that are there."""
    return (
        f"access {agent.access} holds for targets that are made from now on; those that are on "
        f"{agent.id} keep theirs. POST /agents/{agent.id}/access, the node's page or `manage.py "
        f"access {agent.access} --node {agent.id}` sets them too"
    )


def agent_delete(*, actor: Actor, agent_id: str) -> str:
    """Take a node out of the registry and return its id; Conflict while workers have disks or CDs on it."""
    actor.require(ADMINISTRATOR)
    name = str(agent_id).lower()
    with index.writing(actor=actor, op="agent.delete") as tx:
        _existing(tx, name)
        users = users_on(name)
        if users:
            raise Conflict(
                said(
                    "node {name} still has disks or CDs of {workers}; delete those first (or "
                    "disable the node: then nothing new goes there)",
                    name=name,
                    workers=_names(users),
                ),
                code="agent.in_use",
                extra={"agent": name, "workers": users},
            )
        tx.yaml("agents").remove(name)
        tx.log(op="agent.delete", agent=name)
    return name


def agent_probe(
    *, actor: Actor, base_url: str, token: str = "", agent_id: str = ""
) -> dict[str, Any]:
    """Ask what is at an address; nothing is written but an audit line.

    An empty token with an id uses the stored one, and only towards the place it is stored for.
    For administrators, as it is a step of registering and makes us call any address.
    """
    actor.require(ADMINISTRATOR)
    url = check_base_url(base_url)
    given = check_sent_token(token)
    name = str(agent_id).lower() if agent_id else None
    if not given and name:
        stored = selectors.agent_get(name)
        if not same_place(url, stored.base_url):
            raise Invalid(
                said(
                    "give the token: the stored one of {name} is only ever sent to {base_url}",
                    name=name,
                    base_url=stored.base_url,
                ),
                code="probe.token",
                field="token",
            )
        given = expand_token(stored)
    try:
        found = probe(url, given)
    except ApplicationError as error:
        record_quietly(
            actor=actor,
            op="agent.probe",
            status="failed",
            agent=name,
            base_url=url,
            error=error.message,
        )
        raise
    record_quietly(actor=actor, op="agent.probe", agent=name, base_url=url)
    return found


def owners_on(agent_id: str, iqns: list[str]) -> dict[str, list[str]]:
    """Whose each of these targets of a node is; those that are nobody's are not in it.

    A node that is registered twice is one machine: what is there belongs to whoever has it under either id.
    """
    # A node may list names that are none; nobody owns those, and not all of them can be asked for.
    asked = [iqn for iqn in iqns if iqn.isascii()]
    found: dict[str, set[str]] = {}
    for ask in TARGET_OWNERS:
        for same_machine in selectors.ids_at_the_place_of(agent_id):
            for iqn, names in ask(same_machine, asked).items():
                found.setdefault(iqn, set()).update(names)
    return {iqn: sorted(names) for iqn, names in found.items()}


def users_on(agent_id: str, most: int | None = None) -> list[str]:
    """The workers with something on a node, by id; the first `most`, if given."""
    return sorted({user for ask in IN_USE for user in ask(agent_id, most)})[:most]


def loads() -> dict[str, Load]:
    """What workers have on each node, by id; a node that has nothing may be missing."""
    found: dict[str, Load] = {}
    for ask in LOADS:
        for agent_id, load in ask().items():
            before = found.get(agent_id, Load())
            found[agent_id] = Load(*(a + b for a, b in zip(before, load, strict=True)))
    return found


def _existing(tx: Transaction, name: str) -> dict[str, Any]:
    record: dict[str, Any] | None = tx.yaml("agents").get(name)
    if record is None:
        raise NotFound(
            said("there is no node {agent}", agent=repr(name[:63])),
            code="agent.missing",
        )
    return record


def _role(
    given: Mapping[str, bool] | None, rest: Mapping[str, bool]
) -> dict[str, bool]:
    wrong = sorted(set(given or ()) - set(DEFAULT_ROLE))
    if wrong:
        raise Invalid(
            said(
                "{names}: a role has disk and cd, each true or false",
                names=", ".join(wrong),
            ),
            field="role",
        )
    return {**rest, **(given or {})}


def _told(record: Mapping[str, Any]) -> dict[str, Any]:
    """A record as the audit may show it."""
    told = {field: value for field, value in record.items() if field != "token"}
    if record.get("token"):
        told["token_set"] = True
    return told


def _names(users: list[str]) -> str:
    more = len(users) - _NAMED
    named = ", ".join(users[:_NAMED])
    if more <= 0:
        return named
    return said("{names} and {count} more workers", names=named, count=more)
