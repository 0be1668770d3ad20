"""Addresses with views that do nothing but refuse, fail or echo."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse
from rest_framework import serializers
from rest_framework.generics import ListAPIView
from rest_framework.request import Request
from rest_framework.response import Response

from ipxeready import errors, urls
from ipxeready.web.pagination import AskedForPagination
from ipxeready.web.routing import api_path
from ipxeready.web.serializers import StrictSerializer
from ipxeready.web.views import ApiView

KINDS: dict[str, errors.ApplicationError] = {
    "invalid": errors.Invalid("no", field="mac"),
    "missing": errors.NotFound("no worker x"),
    "conflict": errors.Conflict("taken"),
    "lock": errors.Unavailable("lock held by y", retry_after=7),
    "node": errors.NodeRefused(agent="n1", status=507, error="full" * 100),
    "login": errors.Unauthenticated("log in"),
}


class Refusing(ApiView):
    def get(self, request: Request, kind: str) -> Response:
        raise KINDS[kind]


class EchoInput(StrictSerializer):
    text = serializers.CharField()


class Echo(ApiView):
    required_role = {"PUT": "administrator"}

    def get(self, request: Request) -> Response:
        actor = self.actor
        return Response(
            {"name": actor.name, "role": actor.role, "client": actor.client}
        )

    def post(self, request: Request) -> Response:
        return Response(self.checked(EchoInput), status=201)

    put = post


class Bug(ApiView):
    def get(self, request: Request) -> Response:
        raise RuntimeError("secret detail")


class Numbers(ListAPIView[Any]):
    pagination_class = AskedForPagination

    def list(self, request: Request, *args: Any, **kwargs: Any) -> Response:
        numbers = list(range(250))
        page = self.paginate_queryset(numbers)
        return Response(numbers) if page is None else self.get_paginated_response(page)


def boot_vars(request: HttpRequest) -> HttpResponse:
    if request.GET.get("mac") == "bug":
        raise RuntimeError("secret detail")
    return HttpResponse("#!ipxe\n", content_type="text/plain")


urlpatterns = [
    api_path("refuse/<kind>", Refusing.as_view()),
    api_path("echo", Echo.as_view()),
    api_path("bug", Bug.as_view()),
    api_path("numbers", Numbers.as_view()),
    api_path("boot-vars", boot_vars),
    api_path("api/cp/boot-vars", boot_vars),
    *urls.urlpatterns,
]
handler400, handler403 = urls.handler400, urls.handler403
handler404, handler500 = urls.handler404, urls.handler500
