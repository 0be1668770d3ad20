"""The edge of the node's API: who may ask, how bodies and parameters are read, how refusals are told."""

from __future__ import annotations

import functools
import hmac
import json
import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any, Concatenate, ParamSpec

from django.conf import settings
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    JsonResponse,
    UnreadablePostError,
)
from django.http.multipartparser import MultiPartParserError

from agents.node.errors import MethodRefused, TooLarge
from agents.protocol import paths
from agents.protocol.limits import MAX_BODY
from ipxeready.errors import ApplicationError, Invalid, Unauthenticated, Unavailable
from ipxeready.said import said

logger = logging.getLogger(__name__)

P = ParamSpec("P")
View = Callable[Concatenate[HttpRequest, P], HttpResponse]

_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


class BearerMiddleware:
    """Refuses every request without the node's token, before a byte of its body is read."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """401 or the answer."""
        if request.path_info.rstrip("/") != paths.HEALTHZ:
            try:
                authenticate(request)
            except ApplicationError as error:
                response = refusal(error)
                response["WWW-Authenticate"] = "Bearer"
                return response
        return self._get_response(request)


def authenticate(request: HttpRequest) -> None:
    """Compare the bearer token in constant time; no token set means nobody may, never everybody."""
    header = request.headers.get(paths.AUTHORIZATION, "")
    given = (
        header[len(paths.BEARER) :].strip()
        if header.lower().startswith("bearer ")
        else ""
    )
    wanted = token()
    if (
        not hmac.compare_digest(given.encode(errors="replace"), wanted.encode())
        or not wanted
    ):
        raise Unauthenticated(
            said(
                "this node wants its token: send `Authorization: Bearer <IPXE_AGENT_TOKEN>`."
            )
        )


def token() -> str:
    """The node's token: the environment's, else the content of config/agent-token."""
    if settings.IPXE.agent_token:
        return str(settings.IPXE.agent_token)
    try:
        return str(settings.IPXE_LAYOUT.agent_token.read_text(encoding="ascii")).strip()
    except (OSError, UnicodeDecodeError):
        return ""


def refusal(error: ApplicationError) -> JsonResponse:
    """The error body `{"detail": ...}` with the error's status."""
    response = JsonResponse({"detail": error.detail()}, status=error.status)
    if isinstance(error, Unavailable):
        response["Retry-After"] = str(error.retry_after)
    return response


def endpoint(**methods: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """One view out of a function for each method; ApplicationErrors become JSON refusals."""
    by_method = {name.upper(): function for name, function in methods.items()}
    if "GET" in by_method:
        by_method["HEAD"] = by_method["GET"]

    def view(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        function = by_method.get(request.method or "")
        if function is None:
            allowed = ", ".join(sorted(by_method))
            response = refusal(
                MethodRefused(
                    said(
                        "{method} is not allowed here; use {allowed}.",
                        method=request.method,
                        allowed=allowed,
                    )
                )
            )
            response["Allow"] = allowed
            return response
        try:
            return function(request, *args, **kwargs)
        except ApplicationError as error:
            return refusal(error)

    return functools.update_wrapper(view, next(iter(methods.values())))


def body(request: HttpRequest, fields: Collection[str]) -> dict[str, Any]:
    """The fields of a JSON object or a form; an unknown or repeated one is Invalid."""
    try:
        length = int(request.headers.get("Content-Length") or 0)
    except ValueError as error:
        raise Invalid(said("Content-Length is not a number.")) from error
    if length > MAX_BODY:
        raise TooLarge(
            said(
                "a body has at most {most} bytes here, this one {length}.",
                most=MAX_BODY,
                length=length,
            )
        )
    kind = (request.content_type or "").lower()
    try:
        if kind in {"application/x-www-form-urlencoded", "multipart/form-data"}:
            return _form(request, fields)
        raw = request.body
    except RequestDataTooBig as error:
        raise TooLarge(
            said("a body has at most {most} bytes here.", most=MAX_BODY)
        ) from error
    except (UnreadablePostError, SuspiciousOperation, MultiPartParserError) as error:
        raise Invalid(said("the body could not be read.")) from error
    if not raw.strip():
        return {}
    try:
        data = json.loads(raw, object_pairs_hook=_no_double)
    except (ValueError, RecursionError) as error:
        raise Invalid(
            said("the body is not JSON: {error}", error=str(error)), code="json"
        ) from error
    if not isinstance(data, dict):
        raise Invalid(said("the body must be a JSON object."), code="json")
    _known(data, fields)
    return data


def query(request: HttpRequest, fields: Collection[str]) -> dict[str, str]:
    """The query's parameters; an unknown or repeated one is Invalid."""
    _known(request.GET, fields)
    return {name: _single(name, request.GET.getlist(name)) for name in request.GET}


def boolean(values: Mapping[str, Any], name: str, default: bool = False) -> bool:
    """A boolean: true, false, 1 or 0 (JSON's own, too); anything else is Invalid."""
    value = values.get(name, default)
    if isinstance(value, bool):
        return value
    if isinstance(value, int | str) and str(value) in _BOOLEANS:
        return _BOOLEANS[str(value)]
    raise Invalid(
        said(
            "{name} {value} must be true, false, 1 or 0.", name=name, value=repr(value)
        ),
        field=name,
    )


def text(values: Mapping[str, Any], name: str, *, required: bool = False) -> str | None:
    """A string that is not empty, or None when it is absent or null."""
    value = values.get(name)
    if value is None and not required:
        return None
    if not isinstance(value, str) or not value:
        raise Invalid(
            said("{name} must be a text that is not empty.", name=name), field=name
        )
    return value


def whole(
    values: Mapping[str, Any], name: str, default: int, *, low: int, high: int
) -> int:
    """A whole number between `low` and `high`."""
    value = values.get(name, default)
    try:
        number = int(str(value))
    except ValueError:
        number = low - 1
    if not low <= number <= high:
        raise Invalid(
            said(
                "{name} {value} must be a whole number from {low} to {high}.",
                name=name,
                value=repr(value),
                low=low,
                high=high,
            ),
            field=name,
        )
    return number


def _form(request: HttpRequest, fields: Collection[str]) -> dict[str, Any]:
    if request.FILES:
        raise Invalid(said("no file is uploaded here."))
    sent = {name for name in request.POST if name != "csrfmiddlewaretoken"}
    _known(sent, fields)
    return {name: _single(name, request.POST.getlist(name)) for name in sent}


def _known(names: Collection[str] | Mapping[str, Any], fields: Collection[str]) -> None:
    for name in names:
        if name not in fields:
            raise Invalid(
                said(
                    "unknown field {name}; known here: {known}.",
                    name=repr(name),
                    known=", ".join(fields) or "none",
                ),
                field=name,
            )


def _single(name: str, values: list[Any]) -> str:
    if len(values) != 1:
        raise Invalid(
            said("{name} is given {count} times.", name=name, count=len(values)),
            field=name,
        )
    return str(values[0])


def _no_double(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) != len(pairs):
        raise ValueError("a field is given twice")
    return data


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's 400 as JSON."""
    return JsonResponse({"detail": said("malformed request")}, status=400)


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Django's 404 as JSON."""
    return JsonResponse(
        {"detail": said("no such address: {path}", path=request.path_info)}, status=404
    )


def server_error(request: HttpRequest) -> HttpResponse:
    """A bug of ours, as JSON; the log has the traceback."""
    return JsonResponse(
        {"detail": said("internal error; the node's log has the traceback")}, status=500
    )
