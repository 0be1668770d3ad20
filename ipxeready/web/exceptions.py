"""What the API answers when something is refused: always `{"detail": ...}`."""

from __future__ import annotations

from typing import Any

from django.core.exceptions import RequestDataTooBig
from rest_framework.exceptions import ValidationError
from rest_framework.response import Response
from rest_framework.views import exception_handler as drf_exception_handler

from ipxeready.errors import ApplicationError, Unauthenticated, Unavailable


def error_headers(error: ApplicationError) -> dict[str, str]:
    """The headers that belong to a refusal."""
    if isinstance(error, Unavailable):
        return {"Retry-After": str(error.retry_after)}
    if isinstance(error, Unauthenticated):
        return {"WWW-Authenticate": 'Bearer realm="ipxeready"'}
    return {}


def exception_handler(exc: Exception, context: dict[str, Any]) -> Response | None:
    """Translate refusals; None for anything else, which is a bug and becomes a 500."""
    if isinstance(exc, ApplicationError):
        body = {"detail": exc.detail()}
        return Response(body, status=exc.status, headers=error_headers(exc))
    if isinstance(exc, RequestDataTooBig):
        return Response({"detail": "the body is too large"}, status=413)
    response = drf_exception_handler(exc, context)
    if response is not None and isinstance(exc, ValidationError):
        response.data = {"detail": response.data}
    return response
