"""Pages of our own inside the admin site: who may open them, what they carry, how a refusal looks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.template.response import TemplateResponse

from ipxeready.actors import OPERATOR, VIEWER
from ipxeready.errors import ApplicationError, Forbidden, NotFound
from ipxeready.web.actors import actor_of
from ipxeready.web.permissions import role_needed
from ipxeready.web.views import refused

View = Callable[..., HttpResponseBase]


def may(request: HttpRequest, role: str) -> bool:
    """Whether who asks has at least this role: for what a page offers. The service checks again."""
    return actor_of(request).may(role)


def page_view(
    view: View,
    *,
    look: str = VIEWER,
    change: str = OPERATOR,
    methods: Sequence[str] = ("GET",),
    home: Callable[..., str] | None = None,
) -> View:
    """`view` as a page of the admin site: its methods only, for those who log in with the role that the method needs.

    `look` is the role for reading, `change` for everything else. What a service refuses becomes a page that says
    so: a form that can show the refusal beside its field catches it itself. Where there is a POST only, `home` is the
    page of its form: a GET is somebody who changed the language there, or had to log in again first.
    """
    allowed = {*methods, *(["HEAD"] if "GET" in methods else [])}

    @functools.wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        method = request.method or ""
        if home is not None and method in ("GET", "HEAD"):
            return HttpResponseRedirect(home(**kwargs))
        if method not in allowed:
            return HttpResponseNotAllowed(sorted(allowed))
        needed = role_needed(method, look=look, change=change)
        if not may(request, needed):
            raise PermissionDenied
        try:
            return view(request, *args, **kwargs)
        except NotFound as error:
            raise Http404(error.message) from error
        except Forbidden as error:
            raise PermissionDenied(error.message) from error
        except ApplicationError as error:
            return refused(request, error)

    wrapped: View = admin.site.admin_view(guarded)
    return wrapped


def page(
    request: HttpRequest,
    template: str,
    context: Mapping[str, Any] | None = None,
    *,
    title: str,
    trail: Sequence[tuple[str, str]] = (),
    status: int = 200,
) -> HttpResponse:
    """The page of a template that extends page.html; `trail` are words and address of what lies between start and it."""
    return TemplateResponse(
        request,
        template,
        {
            **admin.site.each_context(request),
            "title": title,
            "trail": trail,
            **(context or {}),
        },
        status=status,
    )
