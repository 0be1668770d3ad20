"""The API's base view, and what is answered where no view is: errors of the whole site."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.utils.translation import gettext
from rest_framework.request import Request
from rest_framework.serializers import BaseSerializer
from rest_framework.views import APIView

from ipxeready.actors import Actor
from ipxeready.errors import ApplicationError
from ipxeready.said import joined
from ipxeready.web.actors import actor_of
from ipxeready.web.exceptions import error_headers
from ipxeready.web.words import in_words


class ApiView(APIView):
    """A view of the API: set `required_role` to a role or to a mapping by method."""

    required_role: str | dict[str, str] | None = None

    @property
    def actor(self) -> Actor:
        """Who asks, for the services."""
        return actor_of(self.request)

    def checked(
        self, serializer: type[BaseSerializer[Any]], data: Any = None
    ) -> dict[str, Any]:
        """The request's body through `serializer`; refused fields raise a 400."""
        bound = serializer(data=self.request.data if data is None else data)
        bound.is_valid(raise_exception=True)
        return dict(bound.validated_data)


def wants_html(request: HttpRequest | Request) -> bool:
    """Whether the caller is a browser looking at a page."""
    return "text/html" in request.META.get("HTTP_ACCEPT", "")


def _error(request: HttpRequest, status: int, title: str, detail: str) -> HttpResponse:
    if not wants_html(request):
        return JsonResponse({"detail": detail}, status=status)
    words = {"title": title, "detail": in_words(detail)}
    page = render_to_string("error.html", words)
    return HttpResponse(page, status=status)


def refused(request: HttpRequest, error: ApplicationError) -> HttpResponse:
    """A refusal outside of the API's views, in the caller's form."""
    if wants_html(request):
        # Beside no field here, so the field is named.
        known = not error.field or error.field in error.message
        words = (
            error.message if known else joined(": ", error.field or "", error.message)
        )
        response = _error(request, error.status, gettext("Not possible"), words)
    else:
        response = JsonResponse({"detail": error.detail()}, status=error.status)
    for name, value in error_headers(error).items():
        response[name] = value
    return response


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """400: the request itself is malformed."""
    return _error(request, 400, gettext("Bad request"), gettext("malformed request"))


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    """403: this user may not."""
    # The text itself, not its string: a page says it in its own language.
    detail = exception.args[0] if exception.args else ""
    detail = detail or gettext("not allowed for this user")
    return _error(request, 403, gettext("Not allowed"), detail)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """403: the form is stale or comes from another site."""
    detail = gettext("the form has expired: reload the page and send it again")
    return _error(request, 403, gettext("Not allowed"), detail)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """404: no such path."""
    return _error(request, 404, gettext("Not found"), gettext("no such path"))


def server_error(request: HttpRequest) -> HttpResponse:
    """500: a bug; the log has the traceback."""
    detail = gettext("internal error; the server's log has the details")
    return _error(request, 500, gettext("Internal error"), detail)
