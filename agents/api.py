"""The API of storage nodes (contract.md section 4)."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from agents import (
    health,
    jobs,
    lun_access,
    node_jobs,
    node_log,
    nodes,
    selectors,
    services,
)
from agents.filters import AgentFilter
from agents.models import Agent
from agents.serializers import (
    AgentChangeSerializer,
    AgentCreateSerializer,
    LunAccessSerializer,
    LunCdSerializer,
    LunDiskSerializer,
    ProbeSerializer,
    agent_shown,
)
from ipxeready.actors import ADMINISTRATOR
from ipxeready.errors import Invalid
from ipxeready.jobs.api import ACCEPTED, PREFER, LongView
from ipxeready.jobs.serializers import JobSerializer
from ipxeready.storage.jobs import STATES
from ipxeready.web.pagination import AskedForPagination
from ipxeready.web.serializers import no_body, strict_query
from ipxeready.web.views import ApiView

_ANY = {200: dict[str, Any]}
_DELETION = {"delete_file": False, "ignore_missing": False, "force": False}
#: DRF's own parameter, and those of the paginator.
_LISTS = {"format": None, "limit": None, "offset": None}


class AgentList(ApiView):
    """GET, POST /agents."""

    serializer_class = AgentCreateSerializer
    required_role = {"POST": ADMINISTRATOR}

    @extend_schema(
        parameters=[
            OpenApiParameter("live", bool),
            *(OpenApiParameter(name, str) for name in AgentFilter.base_filters),
            *(OpenApiParameter(name, int) for name in ("limit", "offset")),
        ],
        responses=_ANY,
    )
    def get(self, request: Request) -> Response:
        """The nodes, with `live=true` asked side by side; never with tokens."""
        filters: dict[str, None] = dict.fromkeys(AgentFilter.base_filters)
        query = strict_query(request, {"live": False, **filters, **_LISTS})
        found = AgentFilter(request.query_params, queryset=selectors.agents())
        if not found.is_valid():
            raise ValidationError(found.errors)
        paginator = AskedForPagination()
        page: list[Agent] | None = paginator.paginate_queryset(
            found.qs, request, view=self
        )
        agents = list(found.qs) if page is None else page
        shown = [agent_shown(agent) for agent in agents]
        if query["live"]:
            state = nodes.live(agents)
            shown = [{**entry, **state[entry["id"]]} for entry in shown]
        return (
            Response(shown) if page is None else paginator.get_paginated_response(shown)
        )

    @extend_schema(request=AgentCreateSerializer, responses={201: dict[str, Any]})
    def post(self, request: Request) -> Response:
        """Register a node."""
        data = self.checked(AgentCreateSerializer)
        agent = services.agent_register(
            actor=self.actor,
            agent_id=data.pop("id"),
            token=data.pop("token", None) or "",
            **data,
        )
        return Response(agent_shown(agent), status=201)


class AgentDetail(ApiView):
    """GET, PUT, DELETE /agents/{id}."""

    serializer_class = AgentChangeSerializer
    required_role = {"PUT": ADMINISTRATOR, "DELETE": ADMINISTRATOR}

    @extend_schema(parameters=[OpenApiParameter("live", bool)], responses=_ANY)
    def get(self, request: Request, agent_id: str) -> Response:
        """One node; `live=true` asks it."""
        query = strict_query(request, {"live": False, "format": None})
        agent = selectors.agent_get(agent_id)
        shown = agent_shown(agent)
        if query["live"]:
            shown |= nodes.live([agent])[agent.id]
        return Response(shown)

    @extend_schema(request=AgentChangeSerializer, responses=_ANY)
    def put(self, request: Request, agent_id: str) -> Response:
        """Change a node; what is left out stays, an empty token keeps the old one."""
        data = self.checked(AgentChangeSerializer)
        if not data:
            raise Invalid(
                "nothing is given; known are: "
                f"{', '.join(AgentChangeSerializer().fields)}",
                code="agent.nothing",
            )
        before = selectors.agent_find(agent_id)
        agent = services.agent_update(
            actor=self.actor,
            agent_id=agent_id,
            token=data.pop("token", None) or "",
            **data,
        )
        shown = agent_shown(agent)
        if before is not None and before.access != agent.access:
            shown["warnings"] = [services.only_new_targets(agent)]
        return Response(shown)

    @extend_schema(responses=_ANY)
    def delete(self, request: Request, agent_id: str) -> Response:
        """Take a node out of the registry; 409 while workers have something on it."""
        strict_query(request, {})
        no_body(request)
        gone = services.agent_delete(actor=self.actor, agent_id=agent_id)
        return Response({"deleted": gone})


class AgentHealth(ApiView):
    """GET /agents/{id}/health."""

    @extend_schema(responses=_ANY)
    def get(self, request: Request, agent_id: str) -> Response:
        """How a node is: whether it answers, and what it says of itself."""
        strict_query(request, {"format": None})
        return Response(health.agent_health(actor=self.actor, agent_id=agent_id))


class AgentProbe(ApiView):
    """POST /agents/probe."""

    serializer_class = ProbeSerializer
    required_role = {"POST": ADMINISTRATOR}

    @extend_schema(request=ProbeSerializer, responses=_ANY)
    def post(self, request: Request) -> Response:
        """What is at this address."""
        data = self.checked(ProbeSerializer)
        found = services.agent_probe(
            actor=self.actor,
            base_url=data["base_url"],
            token=data.get("token") or "",
            agent_id=data.get("agent_id") or "",
        )
        return Response(found)


class LunList(ApiView):
    """GET, DELETE /agents/{id}/luns."""

    @extend_schema(responses=_ANY)
    def get(self, request: Request, agent_id: str) -> Response:
        """The targets of a node."""
        return Response(nodes.luns_list(actor=self.actor, agent_id=agent_id))

    @extend_schema(
        parameters=[
            OpenApiParameter("iqn", str, required=True),
            *(OpenApiParameter(name, bool) for name in _DELETION),
        ],
        responses=_ANY,
    )
    def delete(self, request: Request, agent_id: str) -> Response:
        """Take a target off, with its image if asked."""
        query = strict_query(request, {"iqn": None, **_DELETION})
        no_body(request)
        if not query["iqn"]:
            raise Invalid("is missing: give the target's name", field="iqn")
        return Response(nodes.lun_delete(actor=self.actor, agent_id=agent_id, **query))


class LunDisk(LongView):
    """POST /agents/{id}/luns/disk."""

    serializer_class = LunDiskSerializer

    @extend_schema(
        parameters=[PREFER],
        request=LunDiskSerializer,
        responses={201: dict[str, Any], **ACCEPTED},
    )
    def post(self, request: Request, agent_id: str) -> Response:
        """Make and export a disk."""
        data = self.checked(LunDiskSerializer)
        work = jobs.disk_work(actor=self.actor, agent_id=agent_id, **data)
        return self.respond(work, status=201)


class LunCd(ApiView):
    """POST /agents/{id}/luns/cd."""

    serializer_class = LunCdSerializer

    @extend_schema(request=LunCdSerializer, responses={201: dict[str, Any]})
    def post(self, request: Request, agent_id: str) -> Response:
        """Export an ISO as a CD."""
        data = self.checked(LunCdSerializer)
        made = nodes.lun_create_cd(actor=self.actor, agent_id=agent_id, **data)
        return Response({key: made[key] for key in ("iqn", "backing")}, status=201)


class LunAccess(ApiView):
    """POST /agents/{id}/luns/access."""

    serializer_class = LunAccessSerializer

    @extend_schema(request=LunAccessSerializer, responses=_ANY)
    def post(self, request: Request, agent_id: str) -> Response:
        """Say who may log in to a target that belongs to no worker."""
        data = self.checked(LunAccessSerializer)
        return Response(
            lun_access.lun_access_set(actor=self.actor, agent_id=agent_id, **data)
        )


class AgentLog(ApiView):
    """GET /agents/{id}/logs."""

    @extend_schema(
        parameters=[
            OpenApiParameter(name, int) for name in ("since", "before", "limit")
        ],
        responses=_ANY,
    )
    def get(self, request: Request, agent_id: str) -> Response:
        """The node's own log: above `since`, oldest first, or newest first below `before`."""
        query = strict_query(
            request, dict.fromkeys(("since", "before", "limit", "format"))
        )
        numbers = {
            name: node_log.check_number(query[name], name)
            for name in ("since", "before")
        }
        limit = node_log.check_number(query["limit"], "limit", most=node_log.MOST)
        return Response(
            node_log.node_log(
                actor=self.actor, agent_id=agent_id, **numbers, limit=limit or 100
            )
        )


class LunScan(LongView):
    """POST /agents/{id}/luns/scan."""

    @extend_schema(parameters=[PREFER], request=None, responses={**_ANY, **ACCEPTED})
    def post(self, request: Request, agent_id: str) -> Response:
        """Export what has no target."""
        no_body(request)
        return self.respond(jobs.scan_work(actor=self.actor, agent_id=agent_id))


class NodeJobList(ApiView):
    """GET /agents/{id}/jobs."""

    @extend_schema(
        parameters=[
            OpenApiParameter("state", str, enum=STATES),
            OpenApiParameter("limit", int),
        ],
        responses=JobSerializer(many=True),
    )
    def get(self, request: Request, agent_id: str) -> Response:
        """The node's own jobs, newest first."""
        query = strict_query(request, {"state": None, "limit": None, "format": None})
        del query["format"]
        found = node_jobs.node_jobs(actor=self.actor, agent_id=agent_id, **query)
        return Response(found)


class NodeJobDetail(ApiView):
    """GET, DELETE /agents/{id}/jobs/{job}."""

    @extend_schema(responses=JobSerializer)
    def get(self, request: Request, agent_id: str, job_id: str) -> Response:
        """How far it is, and how it ended."""
        strict_query(request, {"format": None})
        return Response(
            node_jobs.node_job_get(actor=self.actor, agent_id=agent_id, job_id=job_id)
        )

    @extend_schema(responses=JobSerializer)
    def delete(self, request: Request, agent_id: str, job_id: str) -> Response:
        """Cancel: the node stops it at its next step and removes what is half made."""
        strict_query(request, {})
        no_body(request)
        return Response(
            node_jobs.node_job_cancel(
                actor=self.actor, agent_id=agent_id, job_id=job_id
            )
        )


class MasterList(ApiView):
    """GET /masters."""

    @extend_schema(responses=_ANY)
    def get(self, request: Request) -> Response:
        """The masters of all enabled disk nodes."""
        return Response(nodes.masters_list(actor=self.actor))
