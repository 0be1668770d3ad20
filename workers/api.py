"""The workers' endpoints: from a request to a service and back."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from ipxeready.actors import ADMINISTRATOR
from ipxeready.errors import Invalid
from ipxeready.jobs.api import ACCEPTED, PREFER, LongView
from ipxeready.web.pagination import AskedForPagination
from ipxeready.web.serializers import no_body, parse_boolean, strict_query
from ipxeready.web.views import ApiView
from workers import (
    access_set,
    cds,
    changing,
    disks,
    jobs,
    selectors,
    services,
    status,
)
from workers.filters import WorkerFilterSet
from workers.removal import Removal, cd_delete, disk_delete, worker_delete
from workers.serializers import (
    AgentAccessSerializer,
    CdCreateSerializer,
    DefaultOsSerializer,
    DiskBatchSerializer,
    DiskCreateSerializer,
    DiskGrowSerializer,
    DiskResetSerializer,
    MacSerializer,
    WorkerAccessSerializer,
    WorkerCreateSerializer,
    WorkerRecordSerializer,
    WorkersDeleteSerializer,
)

_DELETION = {
    "ignore_missing_target": False,
    "force": False,
    "forget": False,
}


def deletion_parameters(*more: str) -> list[OpenApiParameter]:
    """The parameters of a DELETE, for the schema."""
    return [OpenApiParameter(name, bool) for name in (*more, *_DELETION)]


class WorkersView(ApiView):
    """The list of workers, and new ones."""

    serializer_class = WorkerCreateSerializer
    filterset_class = WorkerFilterSet

    @extend_schema(responses=WorkerRecordSerializer(many=True), filters=True)
    def get(self, request: Request) -> Response:
        """All workers by id; filters, `ordering`; pages only when `limit` or `offset` is given."""
        known = (*WorkerFilterSet.base_filters, "limit", "offset", "format")
        asked = strict_query(request, dict.fromkeys(known))
        for name in ("limit", "offset", "format"):
            asked.pop(name)
        given = {name: value for name, value in asked.items() if value is not None}
        if given.get("has_disk") == "":
            parse_boolean(
                "has_disk", ""
            )  # a page's filter may be left open, a query's not
        filters = WorkerFilterSet(given, queryset=selectors.workers())
        if not filters.is_valid():
            name, faults = next(iter(filters.errors.items()))
            raise Invalid(" ".join(str(fault) for fault in faults), field=name)
        pages = AskedForPagination()
        page: list[Any] | None = pages.paginate_queryset(filters.qs, request, view=self)
        if page is None:
            return Response(selectors.records(filters.qs))
        return pages.get_paginated_response(selectors.records(page))

    @extend_schema(
        request=WorkerCreateSerializer, responses={201: WorkerRecordSerializer}
    )
    def post(self, request: Request) -> Response:
        """Register an identity and bind its MAC."""
        data = self.checked(WorkerCreateSerializer)
        return Response(services.worker_create(actor=self.actor, **data), status=201)


class WorkerView(ApiView):
    """One worker."""

    serializer_class = None

    @extend_schema(responses=WorkerRecordSerializer)
    def get(self, request: Request, worker_id: str) -> Response:
        """The record."""
        strict_query(request, {"format": None})
        return Response(selectors.record_of(selectors.worker_get(worker_id)))

    @extend_schema(
        parameters=deletion_parameters("delete_disk"), responses={200: dict[str, Any]}
    )
    def delete(self, request: Request, worker_id: str) -> Response:
        """CD, disks, ledger, binding, reload."""
        no_body(request)
        asked = strict_query(request, {"delete_disk": False, **_DELETION})
        removal = Removal(delete_file=asked.pop("delete_disk"), **asked)
        return Response(
            worker_delete(actor=self.actor, worker_id=worker_id, removal=removal)
        )


class WorkerStatusView(ApiView):
    """What is really there of a worker."""

    serializer_class = None

    @extend_schema(responses={200: dict[str, Any]})
    def get(self, request: Request, worker_id: str) -> Response:
        """The record, its binding, and its targets as the nodes have them."""
        strict_query(request, {"format": None})
        return Response(status.worker_status(actor=self.actor, worker_id=worker_id))


class WorkerMacView(ApiView):
    """The MAC that is bound to a worker."""

    serializer_class = MacSerializer

    @extend_schema(request=MacSerializer, responses=WorkerRecordSerializer)
    def put(self, request: Request, worker_id: str) -> Response:
        """Bind another MAC; the same one changes nothing."""
        data = self.checked(MacSerializer)
        return Response(
            services.worker_mac_update(actor=self.actor, worker_id=worker_id, **data)
        )


class WorkerDefaultOsView(ApiView):
    """What a worker boots."""

    serializer_class = DefaultOsSerializer

    @extend_schema(request=DefaultOsSerializer, responses=WorkerRecordSerializer)
    def put(self, request: Request, worker_id: str) -> Response:
        """Set any of os, menu_default, menu_timeout; null clears."""
        data = self.checked(DefaultOsSerializer)
        return Response(
            services.worker_boot_set(actor=self.actor, worker_id=worker_id, **data)
        )


class WorkerAccessView(ApiView):
    """Who may log in to a worker's targets."""

    serializer_class = WorkerAccessSerializer

    @extend_schema(request=WorkerAccessSerializer, responses=WorkerRecordSerializer)
    def put(self, request: Request, worker_id: str) -> Response:
        """Set it in the ledger and on the nodes; null is the nodes' own, `rotate` makes a new secret."""
        data = self.checked(WorkerAccessSerializer)
        return Response(
            access_set.worker_access_set(actor=self.actor, worker_id=worker_id, **data)
        )


class AgentAccessView(ApiView):
    """Who may log in to the targets of a node."""

    serializer_class = AgentAccessSerializer
    required_role = ADMINISTRATOR

    @extend_schema(request=AgentAccessSerializer, responses={200: dict[str, Any]})
    def post(self, request: Request, agent_id: str) -> Response:
        """Set it for new targets, and for those of all workers without a word of their own."""
        data = self.checked(AgentAccessSerializer)
        return Response(
            access_set.agent_access_set(actor=self.actor, agent_id=agent_id, **data)
        )


class WorkerDisksView(LongView):
    """The system disks of a worker."""

    serializer_class = DiskCreateSerializer

    @extend_schema(
        parameters=[PREFER],
        request=DiskCreateSerializer,
        responses={201: WorkerRecordSerializer, **ACCEPTED},
    )
    def post(self, request: Request, worker_id: str) -> Response:
        """Make a disk (clone, empty, or an image that was kept) and attach it."""
        data = self.checked(DiskCreateSerializer)
        agent = data.pop("disk_agent", None)
        work = jobs.disk_work(
            actor=self.actor,
            worker_id=worker_id,
            spec=disks.disk_spec(**data),
            disk_agent=agent,
        )
        return self.respond(work, status=201)


class WorkerDiskView(ApiView):
    """One system disk of a worker."""

    serializer_class = None

    @extend_schema(
        parameters=deletion_parameters("delete_file"),
        responses={200: WorkerRecordSerializer},
    )
    def delete(self, request: Request, worker_id: str, os: str) -> Response:
        """Delete the target, with `delete_file` the image too."""
        no_body(request)
        asked = strict_query(request, {"delete_file": False, **_DELETION})
        return Response(
            disk_delete(
                actor=self.actor, worker_id=worker_id, os=os, removal=Removal(**asked)
            )
        )


class WorkerDiskGrowView(ApiView):
    """The size of one system disk."""

    serializer_class = DiskGrowSerializer

    @extend_schema(request=DiskGrowSerializer, responses={200: WorkerRecordSerializer})
    def post(self, request: Request, worker_id: str, os: str) -> Response:
        """Make it larger; refused while it is in use."""
        data = self.checked(DiskGrowSerializer)
        return Response(
            changing.disk_grow(actor=self.actor, worker_id=worker_id, os=os, **data)
        )


class WorkerDiskResetView(LongView):
    """The content of one system disk."""

    serializer_class = DiskResetSerializer

    @extend_schema(
        parameters=[PREFER],
        request=DiskResetSerializer,
        responses={200: WorkerRecordSerializer, **ACCEPTED},
    )
    def post(self, request: Request, worker_id: str, os: str) -> Response:
        """Give it the content of its master again; all that was written to it is lost."""
        data = self.checked(DiskResetSerializer)
        changing.reset_check(
            actor=self.actor, worker_id=worker_id, os=os, master=data.get("master")
        )
        return self.respond(
            jobs.reset_work(actor=self.actor, worker_id=worker_id, os=os, **data)
        )


class WorkerCdView(ApiView):
    """The install CD of a worker."""

    serializer_class = CdCreateSerializer

    @extend_schema(request=CdCreateSerializer, responses={201: WorkerRecordSerializer})
    def post(self, request: Request, worker_id: str) -> Response:
        """Attach an ISO of a node as a CD: the worker's state is `installing` then."""
        data = self.checked(CdCreateSerializer)
        record = cds.cd_attach(actor=self.actor, worker_id=worker_id, **data)
        return Response(record, status=201)

    @extend_schema(
        parameters=deletion_parameters(), responses={200: WorkerRecordSerializer}
    )
    def delete(self, request: Request, worker_id: str) -> Response:
        """Detach it; the ISO stays."""
        no_body(request)
        removal = Removal(**strict_query(request, _DELETION))
        return Response(
            cd_delete(actor=self.actor, worker_id=worker_id, removal=removal)
        )


class DiskBatchView(LongView):
    """Disks of many workers."""

    serializer_class = DiskBatchSerializer

    @extend_schema(
        parameters=[PREFER],
        request=DiskBatchSerializer,
        responses={200: dict[str, Any], **ACCEPTED},
    )
    def post(self, request: Request) -> Response:
        """Make a disk for each target; each on its own, and what boots next."""
        data = self.checked(DiskBatchSerializer)
        targets = [(each["worker_id"], each["agent"]) for each in data.pop("targets")]
        return self.respond(jobs.disks_work(actor=self.actor, targets=targets, **data))


class WorkersDeleteView(LongView):
    """Many workers at once."""

    serializer_class = WorkersDeleteSerializer

    @extend_schema(
        parameters=[PREFER],
        request=WorkersDeleteSerializer,
        responses={200: dict[str, Any], **ACCEPTED},
    )
    def post(self, request: Request) -> Response:
        """Delete each with its CD, disks and binding; one save, one reload."""
        data = self.checked(WorkersDeleteSerializer)
        return self.respond(jobs.deletion_work(actor=self.actor, **data))
