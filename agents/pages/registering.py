"""Registering a node in two steps: what is at the address, then what it is to us."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _

from agents import probed, selectors, services
from agents.forms import ProbeForm, RegisterForm
from agents.pages.common import LIST, back_to, refuse, trail
from agents.probed import Probed
from agents.validators import same_place, url_host
from ipxeready.errors import ApplicationError
from ipxeready.storage.sizes import format_size
from ipxeready.web.actors import actor_of
from ipxeready.web.pages import page


def register(request: HttpRequest) -> HttpResponse:
    """Both steps have this address; the second names the probe of the first."""
    number = request.POST.get("probe") or request.GET.get("probe") or ""
    if number:
        return _second(request, number)
    form = ProbeForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        actor = actor_of(request)
        base_url, token = form.cleaned_data["base_url"], form.cleaned_data["token"]
        try:
            found = services.agent_probe(actor=actor, base_url=base_url, token=token)
        except ApplicationError as error:
            refuse(form, error)
        else:
            kept = Probed(actor.name, found["base_url"], token, found)
            number = probed.keep(kept)
            return HttpResponseRedirect(f"{reverse(_ADD)}?probe={number}")
    return _page(request, form, step=1, submit=_("See what is there"))


_ADD = "admin:agents_agent_add"


def _second(request: HttpRequest, number: str) -> HttpResponse:
    actor = actor_of(request)
    kept = probed.kept(number, actor.name)
    if kept is None:
        messages.warning(request, _("Too long ago: see again what is at the address."))
        return HttpResponseRedirect(reverse(_ADD))
    found = kept.found
    initial = {
        "iscsi_server": found["iscsi_server"],
        "role_disk": found["role"]["disk"],
        "role_cd": found["role"]["cd"],
        "tags": found["tags"],
    }
    form = RegisterForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        try:
            agent = services.agent_register(
                actor=actor,
                agent_id=data["id"],
                base_url=kept.base_url,
                token=kept.token,
                iscsi_server=data["iscsi_server"],
                role={"disk": data["role_disk"], "cd": data["role_cd"]},
                tags=data["tags"],
                enabled=data["enabled"],
                access=data["access"],
            )
        except ApplicationError as error:
            refuse(form, error)
        else:
            probed.forget(number)
            messages.success(request, _("%(node)s is registered.") % {"node": agent.id})
            return back_to(agent)
    return _page(
        request,
        form,
        step=2,
        submit=_("Register it"),
        facts=_facts(kept),
        facts_title=_("What is at %(address)s") % {"address": kept.base_url},
        warnings=_warnings(kept),
        action=f"{reverse(_ADD)}?probe={number}",
        back=reverse(_ADD),
    )


def _page(
    request: HttpRequest, form: Any, *, step: int, submit: str, **context: Any
) -> HttpResponse:
    shown = {
        "form": form,
        "submit": submit,
        "step": step,
        "steps": [_("Find the node"), _("Register it")],
        "back": reverse(LIST),
        **context,
    }
    return page(
        request, "agents/form.html", shown, title=_("Add a node"), trail=trail()
    )


def _facts(kept: Probed) -> list[tuple[str, str]]:
    found = kept.found
    yes, no = _("yes"), _("no")
    return [
        (_("Target system"), str(found["backend"])),
        (_("Base of its IQNs"), str(found["base_iqn"])),
        (_("File system"), str(found["fs_type"])),
        (_("Clones share blocks"), yes if found.get("reflink") else no),
        (
            _("Room"),
            _("%(free)s free of %(total)s")
            % {
                name: format_size(max(int(found.get(f"{name}_bytes") or 0), 0))
                for name in ("free", "total")
            },
        ),
        (_("Install CDs"), yes if found["role"]["cd"] else no),
        (_("Targets outlive its restart"), yes if found["persistent"] else no),
    ]


def _warnings(kept: Probed) -> list[str]:
    found = kept.found
    warnings = []
    if found["base_iqn"] != settings.IPXE.iqn_base:
        warnings.append(
            _("Its targets are named %(theirs)s:..., ours %(ours)s:... The node would refuse every disk. Set IPXE_IQN_BASE there, or here, and restart that one.")
            % {"theirs": found["base_iqn"], "ours": settings.IPXE.iqn_base}
        )  # fmt: skip
    for agent in selectors.agents():
        if same_place(agent.base_url, kept.base_url):
            warnings.append(
                _("%(node)s is registered with this address already.")
                % {"node": agent.id}
            )
    if not kept.token:
        warnings.append(
            _("It answers without a token: whoever reaches it may change it.")
        )
    if url_host(kept.base_url) in ("127.0.0.1", "localhost", "[::1]"):
        warnings.append(
            _("Machines cannot reach %(host)s: give the address for iSCSI as they see it.")
            % {"host": url_host(kept.base_url)}
        )  # fmt: skip
    return warnings
