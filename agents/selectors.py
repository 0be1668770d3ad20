"""Reading the registry of storage nodes; nothing here talks to a node."""

from __future__ import annotations

from django.db.models import QuerySet

from agents import seen
from agents.models import Agent
from agents.protocol.systems import ISCSI_SEP, STGT
from agents.validators import same_place, url_host
from ipxeready.errors import NotFound
from ipxeready.index.compiled import Compiled
from ipxeready.said import said

# Each boot asks it for the node of each disk.
_agent = Compiled(lambda agent_id: Agent.objects.filter(pk=agent_id).order_by("pk")[:1])


def agents() -> QuerySet[Agent]:
    """All nodes, by id."""
    return Agent.objects.order_by("id")


def agent_find(agent_id: str) -> Agent | None:
    """The node with this id, or None."""
    return _agent.first(str(agent_id).lower())


def agent_get(agent_id: str) -> Agent:
    """The node with this id; NotFound when there is none."""
    found = agent_find(agent_id)
    if found is None:
        raise NotFound(
            said(
                "there is no node {agent}; GET /agents lists them",
                agent=repr(str(agent_id)[:63]),
            ),
            code="agent.missing",
        )
    return found


def ids_at_the_place_of(agent_id: str) -> list[str]:
    """A node's id, and those under which the same scheme, host and port are registered as well."""
    urls = dict(Agent.objects.values_list("id", "base_url"))
    here = urls.get(agent_id)
    if here is None:
        return [agent_id]
    return sorted(name for name, url in urls.items() if same_place(url, here))


def agents_enabled_for_disks() -> list[Agent]:
    """Enabled nodes that take disks, by id."""
    return list(agents().filter(enabled=True, role_disk=True))


def agents_enabled_for_cd() -> list[Agent]:
    """Enabled nodes that take install CDs, by id."""
    return list(agents().filter(enabled=True, role_cd=True))


def iscsi_server_of(agent: Agent) -> str:
    """Where machines find the node's targets: its iscsi_server, else the host of its base_url."""
    return agent.iscsi_server or url_host(agent.base_url)


def iscsi_sep(agent: Agent) -> str:
    """What stands between server and target in a SAN path: by the tags, else by what was last seen, else stgt's."""
    for tag in agent.tags:
        if tag.lower() in ISCSI_SEP:
            return ISCSI_SEP[tag.lower()]
    return ISCSI_SEP[seen.backend_of(agent) or STGT]
