"""Changing what is registered of a node, and taking it out of the registry."""

from __future__ import annotations

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _

from agents import services
from agents.forms import ConfirmForm, EditForm
from agents.models import Agent
from agents.pages.common import (
    LIST,
    NAMED,
    back_to,
    find,
    question,
    refuse,
    worker_address,
)
from ipxeready import index
from ipxeready.errors import ApplicationError, Conflict
from ipxeready.index.selectors import record_digest
from ipxeready.web.actors import actor_of
from ipxeready.web.words import in_words


def edit(request: HttpRequest, agent_id: str) -> HttpResponse:
    """An empty token keeps the stored one; another address needs its own."""
    agent = find(agent_id)
    initial = {
        "base_url": agent.base_url,
        "iscsi_server": agent.iscsi_server,
        "role_disk": agent.role_disk,
        "role_cd": agent.role_cd,
        "tags": agent.tags,
        "enabled": agent.enabled,
        "access": agent.access,
        "record_digest": record_digest("agents", agent.record),
    }
    form = EditForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        try:
            changed = _change(request, agent, form)
        except ApplicationError as error:
            refuse(form, error)
        else:
            if "access" in form.changed_data:
                text = _(
                    "Access %(access)s holds for targets that are made from now on; apply it to those that are there on this page."
                )
                messages.warning(request, text % {"access": changed.access})
            messages.success(request, _("%(node)s was changed.") % {"node": agent.id})
            return back_to(agent)
    title = _("Edit %(node)s") % {"node": agent.id}
    return question(request, agent, title=title, form=form, submit=_("Save"))


def _change(request: HttpRequest, agent: Agent, form: EditForm) -> Agent:
    """What the form changed, under the lock, so that nobody comes between the look at the record and the write."""
    data = form.cleaned_data
    # A box that is not ticked is not sent; another field that is not sent says nothing.
    changed = {
        name: data[name]
        for name in form.changed_data
        if name in data and (name in form.data or isinstance(data[name], bool))
    }
    role = {
        name: data[f"role_{name}"]
        for name in ("disk", "cd")
        if f"role_{name}" in changed
    }
    plain = ("base_url", "iscsi_server", "tags", "enabled", "access")
    given = {name: changed[name] for name in plain if name in changed}
    token = data.get("token") or ""
    if not given and not role and not token:
        return agent
    actor = actor_of(request)
    with index.writing(actor=actor, op="agent.update"):
        sent = data.get("record_digest")
        if sent and sent != record_digest("agents", find(agent.id).record):
            raise Conflict(
                _(
                    "this has been changed since you opened the form: open it again, then change it"
                )
            )
        return services.agent_update(
            actor=actor,
            agent_id=agent.id,
            token=token,
            role=role or None,
            moved_with_token=True,
            **given,
        )


def remove(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Take it out of the registry; while workers have something on it, they are named and it stays."""
    agent = find(agent_id)
    title = _("Delete %(node)s") % {"node": agent.id}
    form: ConfirmForm | None = ConfirmForm(
        request.POST if request.method == "POST" else None
    )
    why, status = "", 200
    if request.method == "POST":
        try:
            services.agent_delete(actor=actor_of(request), agent_id=agent.id)
        except ApplicationError as error:
            why, status = in_words(error), error.status
        else:
            messages.success(
                request, _("%(node)s is no longer registered.") % {"node": agent.id}
            )
            return HttpResponseRedirect(reverse(LIST))
    users = services.users_on(agent.id, most=NAMED)
    load = services.loads().get(agent.id)
    more = max(load.workers - len(users), 0) if load else 0
    links = [(worker_address(name), name) for name in users]
    if links:
        form = None
        why = why or _("It cannot be deleted while workers have disks or CDs on it. Delete those first, or disable the node: then nothing new goes there.")  # fmt: skip
    return question(
        request,
        agent,
        title=title,
        form=form,
        submit=_("Delete the node"),
        danger=True,
        why=why,
        failed=status != 200,
        status=status,
        links=links,
        more=more,
        goes=[] if links else [_("the entry of %(node)s, its address and its token") % {"node": agent.id}],
        stays=[] if links else [_("the agent itself, its images and its targets")],
    )  # fmt: skip
