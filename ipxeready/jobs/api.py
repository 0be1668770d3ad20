"""The endpoints of jobs, and what views need that may answer with one."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from ipxeready.jobs import selectors, services
from ipxeready.jobs.serializers import JobSerializer, ListedJobSerializer
from ipxeready.jobs.services import Work
from ipxeready.jobs.watch import NOBODY
from ipxeready.prefer import APPLIED, HEADER, RESPOND_ASYNC, preference
from ipxeready.storage.jobs import DONE, ENDED, STATES, Job
from ipxeready.web.pagination import AskedForPagination
from ipxeready.web.routing import PREFIX
from ipxeready.web.serializers import no_body, strict_query
from ipxeready.web.views import ApiView

#: Seconds that a caller may have a thread of this server while it waits for a job's end.
MOST = 60.0
#: For the schema of a view that may answer with a job.
PREFER = OpenApiParameter(
    HEADER,
    str,
    OpenApiParameter.HEADER,
    description="`respond-async`: answer 202 with a job at once; `respond-async, wait=5`: "
    "wait for the answer for five seconds first.",
)
#: The answer of such a view, beside the one of its success.
ACCEPTED: dict[int, Any] = {202: JobSerializer}


class LongView(ApiView):
    """A view whose work may take long: `Prefer: respond-async` makes it a job."""

    def respond(self, work: Work, *, status: int = 200) -> Response:
        """The work's result with `status`; 202 and the job where the caller asked for one and it is not done yet.

        Check the request before: a job is no place to tell somebody of a typing error.
        """
        prefer = preference(self.request.headers.get(HEADER))
        if not prefer.respond_async:
            return Response(work.do(NOBODY), status=status)
        job = services.job_start(actor=self.actor, work=work)
        if prefer.wait:
            job = services.job_wait(job.id, min(prefer.wait, MOST))
            if job.state == DONE:
                return Response(job.result, status=status)
            if job.state in ENDED and job.error is not None:
                return Response(
                    {"detail": job.error["detail"]}, status=job.error["status"]
                )
        return Response(
            selectors.shown(job),
            status=202,
            headers={
                "Location": self._address(job),
                APPLIED: RESPOND_ASYNC,
            },
        )

    def _address(self, job: Job) -> str:
        """Where the job is, under the prefix that the caller uses."""
        prefixed = self.request.path_info.startswith(f"/{PREFIX}")
        return f"/{PREFIX if prefixed else ''}jobs/{job.id}"


class JobList(ApiView):
    """GET /jobs."""

    serializer_class = None

    @extend_schema(
        parameters=[
            OpenApiParameter("state", str, enum=STATES),
            OpenApiParameter("kind", str),
            *(OpenApiParameter(name, int) for name in ("limit", "offset")),
        ],
        responses=ListedJobSerializer(many=True),
    )
    def get(self, request: Request) -> Response:
        """All jobs, newest first; pages only when `limit` or `offset` is given."""
        names = ("state", "kind", "limit", "offset", "format")
        asked = strict_query(request, dict.fromkeys(names))
        found = selectors.jobs(
            actor=self.actor, state=asked["state"], kind=asked["kind"]
        )
        pages = AskedForPagination()
        page: list[Job] | None = pages.paginate_queryset(found, request, view=self)
        if page is None:
            return Response([selectors.listed(job) for job in found])
        return pages.get_paginated_response([selectors.listed(job) for job in page])


class JobDetail(ApiView):
    """GET, DELETE /jobs/{id}."""

    serializer_class = None

    @extend_schema(responses=JobSerializer)
    def get(self, request: Request, job_id: str) -> Response:
        """How far it is, and how it ended."""
        strict_query(request, {"format": None})
        return Response(
            selectors.shown(selectors.job_get(actor=self.actor, job_id=job_id))
        )

    @extend_schema(responses=JobSerializer)
    def delete(self, request: Request, job_id: str) -> Response:
        """Cancel: what is under way comes to a clean end first, so the job may go on for a moment."""
        strict_query(request, {})
        no_body(request)
        job = services.job_cancel(actor=self.actor, job_id=job_id)
        return Response(selectors.shown(job))
