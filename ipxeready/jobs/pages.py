"""The pages of jobs: the list, one with its bar, the question before it is cancelled. They need no JavaScript."""

from __future__ import annotations

from datetime import datetime
from functools import partial
from typing import Any

from django.contrib import messages
from django.contrib.admin import AdminSite
from django.core.exceptions import PermissionDenied
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    HttpResponseRedirect,
)
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.text import capfirst
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from ipxeready.actors import OPERATOR
from ipxeready.errors import ApplicationError, NotFound
from ipxeready.jobs import kinds, selectors, services
from ipxeready.storage.jobs import (
    BYTES,
    CANCELLED,
    DONE,
    ENDED,
    FAILED,
    QUEUED,
    RUNNING,
    STATES,
    Job,
)
from ipxeready.storage.sizes import format_size
from ipxeready.web.actors import actor_of
from ipxeready.web.words import in_words

#: Rows of one page of the list, and lines of a result.
PAGE = 100
_STATES: dict[str, Any] = {
    QUEUED: _("waits for its turn"),
    RUNNING: _("is running"),
    DONE: _("done"),
    FAILED: _("failed"),
    CANCELLED: _("cancelled"),
}
#: What people call what a job is about; a name without one is shown as it is.
_ABOUT: dict[str, Any] = {
    "worker_id": _("worker"),
    "os": _("system"),
    "agent": _("node"),
    "iqn": "IQN",
    "node_job": _("the node's job"),
    "source": _("made from"),
    "master": _("master"),
    "size": _("size"),
}
_OUTCOMES: dict[str, Any] = {
    "succeeded": _("Succeeded"),
    "skipped": _("Skipped"),
    "failed": _("Failed"),
    "created": _("Created"),
}


def urls(site: AdminSite) -> list[URLPattern]:
    """The addresses of these pages, for the site's own list."""
    return [
        path(f"jobs/{route}", site.admin_view(partial(view, site)), name=name)
        for route, view, name in (
            ("", _list, "jobs"),
            ("<str:job_id>/", _one, "job"),
            ("<str:job_id>/cancel/", _cancel, "job_cancel"),
        )
    ]


def under_way() -> list[dict[str, Any]]:
    """The jobs that have not ended, newest first, as the list shows them."""
    return [seen(job) for job in selectors.store().unfinished()]


def _list(site: AdminSite, request: HttpRequest) -> HttpResponse:
    state = request.GET.get("state") or None
    try:
        found = selectors.jobs(
            actor=actor_of(request), state=state if state in STATES else None
        )
    except ApplicationError as error:
        raise PermissionDenied(error.message) from error
    text = request.GET.get("p", "")
    start = int(text) * PAGE if text.isdecimal() and len(text) < 6 else 0
    shown = found[start : start + PAGE]
    return _page(
        site,
        request,
        "jobs/list.html",
        title=_t("Jobs"),
        jobs=[seen(job) for job in shown],
        open=any(job.state not in ENDED for job in shown),
        states=[(name, _STATES[name]) for name in STATES],
        state=state,
        older=start // PAGE + 1 if start + PAGE < len(found) else None,
        newer=start // PAGE - 1 if start else None,
    )


def _one(site: AdminSite, request: HttpRequest, job_id: str) -> HttpResponse:
    job = _job(request, job_id)
    return _page(
        site,
        request,
        "jobs/job.html",
        title=_kind(job),
        job=seen(job),
        open=job.state not in ENDED,
        may_cancel=actor_of(request).may(OPERATOR),
        rows_url=kinds.page_of(job),
        about=_about(job),
        outcome=_outcome(job),
    )


def _cancel(site: AdminSite, request: HttpRequest, job_id: str) -> HttpResponse:
    """Ask first; the answer is a POST."""
    job = _job(request, job_id)
    actor = actor_of(request)
    if not actor.may(OPERATOR):
        raise PermissionDenied
    back = reverse("admin:job", args=[job.id])
    if request.method in ("GET", "HEAD"):
        return _page(
            site,
            request,
            "jobs/cancel.html",
            title=_t("Cancel this job?"),
            job=seen(job),
            open=job.state not in ENDED,
        )
    if request.method != "POST":
        return HttpResponseNotAllowed(("GET", "HEAD", "POST"))
    try:
        services.job_cancel(actor=actor, job_id=job.id)
    except ApplicationError as error:
        messages.error(request, in_words(error))
    else:
        text = _t("It ends as soon as what is under way has come to a clean end.")
        messages.success(request, text)
    return HttpResponseRedirect(back)


def _page(
    site: AdminSite, request: HttpRequest, template: str, **context: Any
) -> HttpResponse:
    return TemplateResponse(
        request, template, {**site.each_context(request), **context}
    )


def _job(request: HttpRequest, job_id: str) -> Job:
    try:
        return selectors.job_get(actor=actor_of(request), job_id=job_id)
    except NotFound:
        raise Http404 from None


def seen(job: Job) -> dict[str, Any]:
    """A job for a template."""
    about = job.about
    subject = [str(about[name]) for name in ("worker_id", "agent") if about.get(name)]
    return {
        "id": job.id,
        "kind": _kind(job),
        "subject": " @ ".join(subject),
        "by": job.by,
        "state": job.state,
        "state_name": _STATES[job.state],
        "cancelling": selectors.shown(job)["cancelling"],
        "done": job.done,
        "total": job.total,
        "far": _far(job),
        "created": _time(job.created),
        "started": _time(job.started),
        "ended": _time(job.ended),
        "error": in_words(services.refusal_of(job)[1]),
    }


def _kind(job: Job) -> str:
    return str(capfirst(kinds.name_of(job.kind)))


def _far(job: Job) -> str:
    """How far it is, in words."""
    if job.unit == BYTES:
        if not job.done and not job.total:
            return ""
        words = {"done": format_size(job.done), "total": format_size(job.total or 0)}
    else:
        words = {"done": str(job.done), "total": str(job.total)}
    if job.total is None:
        return words["done"]
    return _t("%(done)s of %(total)s") % words


def _time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None


def _about(job: Job) -> list[tuple[str, str]]:
    """What it is about, for people; long lists are in the API's answer."""
    found = []
    for name, value in job.about.items():
        if isinstance(value, list) or value is None:
            continue
        if isinstance(value, dict):
            value = ", ".join(f"{key}: {each}" for key, each in value.items())
        found.append((str(_ABOUT.get(name, name)), str(value)))
    return found


def _outcome(job: Job) -> list[dict[str, Any]]:
    """The lists of a result: how many of each, and the first lines."""
    if not isinstance(job.result, dict):
        return []
    found = []
    for name, title in _OUTCOMES.items():
        entries = job.result.get(name)
        if isinstance(entries, list) and entries:
            lines = [
                ", ".join(in_words(value) for value in each.values())
                for each in entries
            ]
            found.append(
                {
                    "title": title,
                    "count": len(lines),
                    "lines": lines[:PAGE],
                    "more": max(len(lines) - PAGE, 0),
                }
            )
    return found
