"""What the pages of a node have in common: finding it, its addresses, asking it without being held up, following a job."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.contrib.admin.utils import quote, unquote
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _

from agents import selectors
from agents.models import Agent
from ipxeready.errors import Invalid
from ipxeready.jobs.services import Work, job_start, job_wait, refusal_of
from ipxeready.storage.jobs import DONE, ENDED, Job
from ipxeready.web.actors import actor_of
from ipxeready.web.pages import page
from ipxeready.web.words import refuse as refuse

#: Seconds that a form waits for its work; what takes longer is followed on its job's page.
WORK_PATIENCE = 3.0
#: Lines of one list on a page of questions; more are counted.
NAMED = 20

LIST = "admin:agents_agent_changelist"
NODE = "admin:agents_agent_change"


def find(agent_id: str) -> Agent:
    """The node of an address, as it is or as the admin writes keys."""
    found = selectors.agent_find(agent_id) or selectors.agent_find(unquote(agent_id))
    if found is None:
        raise Http404
    return found


def address(route: str, agent: Agent, /, *args: str, **query: str) -> str:
    """The address of a page of this node, what is in `query` behind it."""
    path = reverse(route, args=[agent.pk, *args])
    # A node may write what no address can hold; that leads to a page which says that there is no such thing.
    return f"{path}?{urlencode(query, errors='replace')}" if query else path


def worker_address(worker_id: str) -> str:
    """The page of a worker."""
    return reverse("admin:workers_worker_change", args=[quote(worker_id)])


def trail(agent: Agent | None = None) -> list[tuple[str, str]]:
    """What lies between the start and a page of nodes, or of one node."""
    found = [(_("Nodes"), reverse(LIST))]
    if agent is not None:
        found.append((agent.pk, address(NODE, agent)))
    return found


def back_to(agent: Agent) -> HttpResponseRedirect:
    """To the node's page."""
    return HttpResponseRedirect(address(NODE, agent))


def question(
    request: HttpRequest,
    agent: Agent,
    *,
    title: str,
    form: Form | None,
    submit: str,
    danger: bool = False,
    status: int = 200,
    **context: Any,
) -> HttpResponse:
    """The page of a form: `notes`, what `goes` and `stays`, `warnings`; without a form it says `why` there is none."""
    shown = {
        "agent": agent,
        "form": form,
        "submit": submit,
        "danger": danger,
        "back": address(NODE, agent),
        **context,
    }
    return page(
        request,
        "agents/form.html",
        shown,
        title=title,
        trail=trail(agent),
        status=status,
    )


def followed(
    request: HttpRequest, agent: Agent, work: Work, done: Callable[[Job], str]
) -> HttpResponse:
    """Wait a moment for the work, else lead to its job; `done` are the words for its end, a refusal is raised."""
    job = job_wait(job_start(actor=actor_of(request), work=work).id, WORK_PATIENCE)
    if job.state not in ENDED:
        return HttpResponseRedirect(reverse("admin:job", args=[job.id]))
    if job.state != DONE:
        field, words = refusal_of(job)
        raise Invalid(words, field=field)
    messages.success(request, done(job))
    return back_to(agent)


def named(names: Sequence[str]) -> tuple[list[str], int]:
    """The first of many names, and how many more there are."""
    return list(names[:NAMED]), max(len(names) - NAMED, 0)


def moment(text: Any) -> datetime | None:
    """A time as somebody else wrote it; None where it is none."""
    try:
        found = datetime.fromisoformat(text)
    except (ValueError, TypeError):
        return None
    # Times at the ends of the calendar cannot be told in another zone.
    if not 1970 <= found.year <= 9000:
        return None
    return found if found.tzinfo else found.astimezone()
