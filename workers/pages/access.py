"""Who may log in: to a worker's targets, and to those of a node with all that follow it."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.admin.utils import quote
from django.forms import Form
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext as _t

from agents.models import Agent
from agents.selectors import agent_get
from ipxeready.errors import ApplicationError
from ipxeready.web.actors import actor_of
from ipxeready.web.pages import page
from ipxeready.web.words import in_words
from workers import access_set, selectors
from workers.forms import AccessForm, NodeAccessForm
from workers.pages.common import TOLD, ask, back, done, refuse, say_kept
from workers.services import UNSET


def worker_access(request: HttpRequest, worker_id: str) -> HttpResponse:
    """Who may log in to this worker's targets."""
    worker = selectors.worker_get(worker_id)
    form = AccessForm(request.POST or None, initial={"access": worker.access})
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        try:
            record = access_set.worker_access_set(
                actor=actor_of(request),
                worker_id=worker.pk,
                access=(data["access"] or None) if "access" in request.POST else UNSET,
                force=data["force"],
                rotate=data["rotate"],
            )
        except ApplicationError as error:
            refuse(form, error)
        else:
            say_kept(request, record["kept"])
            done(request, _t("The access was set."))
            return back(worker.pk)
    title = _t("Access to the targets of %(worker)s") % {"worker": worker.pk}
    return ask(
        request,
        worker,
        title,
        form,
        notes=_what_access_means(),
        submit=_t("Set the access"),
    )


def node_access(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Who may log in to a node's targets: first what changes and what stays, then it is done."""
    agent = agent_get(agent_id)
    form = NodeAccessForm(request.POST or None, initial={"access": agent.access})
    back_url = reverse("admin:agents_agent_change", args=[quote(agent.pk)])
    context: dict[str, Any] = {"submit": _t("Show what changes")}
    if request.method == "POST" and form.is_valid():
        mode = form.cleaned_data["access"]
        confirmed = request.POST.get("confirmed") == mode
        if confirmed and _set_node_access(request, agent, form):
            return HttpResponseRedirect(back_url)
        changes, kept = access_set.agent_access_plan(agent, mode)
        context = {
            "goes_title": _t("These targets get access %(mode)s:") % {"mode": mode},
            "goes": changes or [_t("none; it holds for new targets")],
            "stays": [f"{entry['iqn']}: {in_words(entry['reason'])}" for entry in kept],
            "confirmed": mode,
            "submit": _t("Set the access"),
            "danger": True,
        }
    return page(
        request,
        "workers/form.html",
        {
            "form": form,
            "back_url": back_url,
            "notes": _what_access_means(),
            **context,
        },
        title=_t("Access to the targets of node %(node)s") % {"node": agent.pk},
        trail=[
            (
                capfirst(_t("storage nodes")),
                reverse("admin:agents_agent_changelist"),
            ),
            (agent.pk, back_url),
        ],
    )


def _set_node_access(request: HttpRequest, agent: Agent, form: Form) -> bool:
    try:
        result = access_set.agent_access_set(
            actor=actor_of(request),
            agent_id=agent.pk,
            access=form.cleaned_data["access"],
            force=form.cleaned_data["force"],
        )
    except ApplicationError as error:
        refuse(form, error)
        return False
    for entry in result["failed"][:TOLD]:
        messages.error(request, f"{entry['iqn']}: {in_words(entry['error'])}")
    say_kept(request, result["kept"])
    text = _t("%(number)s targets were set, %(failed)s failed.") % {
        "number": len(result["changed"]),
        "failed": len(result["failed"]),
    }
    say = messages.warning if result["failed"] else messages.success
    say(request, text)
    return True


def _what_access_means() -> list[str]:
    return [
        _t(
            "acl keeps out machines that call themselves by another name; chap also those that only "
            "pretend to be this one. Neither encrypts: whoever listens on the network reads disks and secrets."
        ),
        _t(
            "A machine that is connected stays connected. The secret is in config/chap-secrets.yml and "
            "is shown nowhere; a changed one there is sent to the nodes when access is set again."
        ),
    ]
