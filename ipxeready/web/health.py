"""GET /healthz: one word for everybody, the state of the parts for those who may know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseBase, JsonResponse
from rest_framework.request import Request
from rest_framework.response import Response

from ipxeready.web.serializers import parse_boolean
from ipxeready.web.views import ApiView

#: Parts of the verbose answer by name; apps add theirs when they are ready.
SECTIONS: dict[str, Callable[[], Any]] = {}


def health_section(name: str, section: Callable[[], Any]) -> None:
    """Add a part to the verbose answer; it must answer quickly and never raise."""
    SECTIONS[name] = section


class VerboseHealth(ApiView):
    """What the parts say of themselves."""

    def get(self, request: Request) -> Response:
        """Every section, in the order they were added."""
        if not parse_boolean("verbose", request.query_params["verbose"]):
            return Response({"status": "ok"})
        return Response(
            {"status": "ok", **{name: part() for name, part in SECTIONS.items()}}
        )


_verbose = VerboseHealth.as_view()


def healthz(request: HttpRequest) -> HttpResponseBase:
    """`{"status": "ok"}` while we serve; with `verbose`, the parts."""
    if request.method not in ("GET", "HEAD"):
        body = {"detail": f'Method "{request.method}" not allowed.'}
        return JsonResponse(body, status=405, headers={"Allow": "GET, HEAD"})
    if "verbose" in request.GET:
        return _verbose(request)
    response: HttpResponse = JsonResponse({"status": "ok"})
    response["Cache-Control"] = "no-store"
    return response
