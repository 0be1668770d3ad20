"""What the pages of workers share: addresses, the way back, refusals beside their field, work that may take long."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.contrib.admin.utils import quote
from django.forms import Form
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext as _t

from agents.selectors import agent_find
from ipxeready.errors import Conflict, Invalid
from ipxeready.index.selectors import record_digest
from ipxeready.jobs.services import Work, job_start, job_wait, refusal_of
from ipxeready.storage.jobs import DONE, ENDED, Job
from ipxeready.web.actors import actor_of
from ipxeready.web.pages import page
from ipxeready.web.words import in_words
from ipxeready.web.words import refuse as refuse
from workers.models import Worker

#: Seconds that a page waits for work; what takes longer is followed on its job's page.
PATIENCE = 3.0
#: Lines of one kind that messages tell.
TOLD = 10


def list_url() -> str:
    """The address of the list."""
    return reverse("admin:workers_worker_changelist")


def worker_url(worker_id: str, name: str = "change", *more: str) -> str:
    """The address of a worker's page."""
    # Django's own pages take the id in its own quoting, in which `_` is the mark.
    args = quote(worker_id) if name in ("change", "delete", "history") else worker_id
    return reverse(f"admin:workers_worker_{name}", args=[args, *more])


def node_url(agent_id: str) -> str:
    """The address of a node's page; empty for one that the registry does not know."""
    if agent_find(agent_id) is None:
        return ""
    return reverse("admin:agents_agent_change", args=[quote(agent_id)])


def back(worker_id: str) -> HttpResponseRedirect:
    """To the worker's page."""
    return HttpResponseRedirect(worker_url(worker_id))


def trail_of(worker: Worker | None = None) -> list[tuple[str, str]]:
    """What lies between the start page and a page of this worker."""
    found = [(capfirst(_t("workers")), list_url())]
    if worker is not None:
        found.append((worker.pk, worker_url(worker.pk)))
    return found


def done(request: HttpRequest, text: str) -> None:
    """Say that it worked."""
    messages.success(request, text)


def ask(
    request: HttpRequest,
    worker: Worker,
    title: str,
    form: Form,
    *,
    submit: str,
    template: str = "workers/form.html",
    **context: Any,
) -> HttpResponse:
    """A page with a question about a worker."""
    return page(
        request,
        template,
        {
            "worker": worker,
            "form": form,
            "submit": submit,
            "back_url": worker_url(worker.pk),
            "record_digest": digest_of(worker),
            **context,
        },
        title=title,
        trail=trail_of(worker),
    )


def followed(request: HttpRequest, work: Work) -> Job | HttpResponseRedirect:
    """The job when it is done within a moment, else the way to its page; a refusal is raised."""
    job = job_wait(job_start(actor=actor_of(request), work=work).id, PATIENCE)
    if job.state not in ENDED:
        return HttpResponseRedirect(reverse("admin:job", args=[job.id]))
    if job.state != DONE:
        field, words = refusal_of(job)
        raise Invalid(words, field=field)
    return job


def digest_of(worker: Worker) -> str:
    """What tells whether a form about this worker's record is stale."""
    return record_digest("workers", worker.record)


def refuse_stale(request: HttpRequest, worker: Worker) -> None:
    """Conflict when the record has changed since the form was opened; certain inside a write only."""
    sent = request.POST.get("record_digest")
    if sent and sent != digest_of(worker):
        raise Conflict(
            _t(
                "this has been changed since you opened the form: open it again, then change it"
            )
        )


def say_kept(request: HttpRequest, kept: Sequence[dict[str, str]]) -> None:
    """Name what stays as it is."""
    for entry in kept[:TOLD]:
        words = _t("%(iqn)s stays as it is: %(reason)s")
        told = {"iqn": entry["iqn"], "reason": in_words(entry["reason"])}
        messages.warning(request, words % told)
    if len(kept) > TOLD:
        text = _t("%(number)s more stay as they are.") % {"number": len(kept) - TOLD}
        messages.warning(request, text)
