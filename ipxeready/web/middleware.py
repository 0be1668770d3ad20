"""Middleware of our own: firmware's short way, a fresh index, security headers."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from functools import lru_cache

from django.conf import settings
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    JsonResponse,
)
from django.template.response import SimpleTemplateResponse
from django.urls import ResolverMatch, resolve

from ipxeready import index
from ipxeready.errors import ApplicationError
from ipxeready.web.views import refused

logger = logging.getLogger(__name__)

GetResponse = Callable[[HttpRequest], HttpResponseBase]

_FIRMWARE = re.compile(
    r"/(?:api/cp/)?(?:(boot-vars)/?|(healthz)/?|file(?:/.*)?)\Z", re.DOTALL
)

#: A machine that meets a bug of ours tries again, rather than hanging at an error page.
_FAILED_SCRIPT = """#!ipxe
echo ipxeready: internal error, the server's log has the details
set menu-default reboot
set menu-timeout 5000
"""


class FirmwareMiddleware:
    """Answers what firmware asks on any Host, past redirects, sessions, cookies and CSRF.

    The index is not refreshed here: the view of /boot-vars does that, unless it knows the answer.
    It must be the first of the list. A booting machine calls by whatever name or address
    it has, may send no Host or a malformed one, and cannot do anything with a page.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Call the view at once for firmware's paths."""
        path = _FIRMWARE.match(request.path_info)
        # The verbose health page needs to know who asks, so it goes the long way.
        if path is None or (path[2] and "verbose" in request.GET):
            return self.get_response(request)
        try:
            # The two that all machines ask again and again have few spellings.
            match = (
                _resolved(request.path_info, settings.ROOT_URLCONF)
                if path[1] or path[2]
                else resolve(request.path_info)
            )
            request.resolver_match = match
            view: GetResponse = match.func
            response = view(request, *match.args, **match.kwargs)
            if isinstance(response, SimpleTemplateResponse):
                response.render()
            return _with_length(response)
        except Http404:
            return _with_length(_plain("not found", 404))
        except Exception:
            # The edge to firmware: whatever went wrong must not become a page.
            logger.exception("%s failed", request.path_info)
            return _with_length(
                _failed(request) if path[1] else _plain("internal error", 500)
            )


@lru_cache(maxsize=32)
def _resolved(path: str, urlconf: str) -> ResolverMatch:
    return resolve(path, urlconf)


def _with_length(response: HttpResponseBase) -> HttpResponseBase:
    """Say how long the answer is, as the skipped middleware would: no chunks for firmware."""
    if isinstance(response, HttpResponse) and not response.has_header("Content-Length"):
        response["Content-Length"] = str(len(response.content))
    return response


def _plain(text: str, status: int) -> HttpResponse:
    return HttpResponse(
        f"{text}\n", status=status, content_type="text/plain; charset=utf-8"
    )


def _failed(request: HttpRequest) -> HttpResponse:
    if request.GET.get("format") == "json":
        return JsonResponse({"refused": "internal error"})
    return HttpResponse(_FAILED_SCRIPT, content_type="text/plain; charset=utf-8")


class AddressMiddleware:
    """An address whose bytes are no UTF-8 leads back to itself: after a login, and when the language is switched.

    Django writes such bytes as `%FF`, and then quotes that again.
    """

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Let the request tell its address as it was sent."""
        path, mark, query = str(request.META.get("RAW_URI", "")).partition("?")
        if "%" in request.path_info and path[:1] == "/" and path[:2] != "//":

            def get_full_path(force_append_slash: bool = False) -> str:
                end = "/" if force_append_slash and not path.endswith("/") else ""
                return f"{path}{end}{mark}{query}"

            request.get_full_path = get_full_path  # type: ignore[method-assign]
        return self.get_response(request)


class FreshIndexMiddleware:
    """Hand edits count from the next request on: each one starts with the freshness check."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Refresh, then answer."""
        try:
            index.ensure_fresh()
        except ApplicationError as error:
            return refused(request, error)
        return self.get_response(request)


class HeadersMiddleware:
    """Content security policy: everything comes from here, nothing is inline, nobody frames us."""

    POLICY = (
        "default-src 'self'; img-src 'self' data:; object-src 'none'; "
        "base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
    )
    #: The browsable API's own pages set styles in attributes.
    API_POLICY = f"{POLICY}; style-src 'self' 'unsafe-inline'"

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        """Add the headers, and keep pages with someone's data out of shared caches."""
        response = self.get_response(request)
        admin = request.path_info.startswith("/admin/")
        policy = self.POLICY if admin else self.API_POLICY
        response.headers.setdefault("Content-Security-Policy", policy)
        if not request.path_info.startswith("/static/"):
            response.headers.setdefault("Cache-Control", "no-store, private")
        return response
