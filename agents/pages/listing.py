"""The list of nodes as cards: what is on file, or, asked for, how they are right now."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agents import health, selectors, services
from agents.filters import AgentFilter
from agents.known import Known, known
from agents.models import Agent
from agents.pages.cards import STATES, Card, card
from agents.pages.common import LIST, find
from agents.protocol.access import ACCESS
from agents.protocol.systems import CD, DISK
from agents.services import Load
from agents.together import patience
from ipxeready.actors import ADMINISTRATOR
from ipxeready.errors import ApplicationError
from ipxeready.web.actors import actor_of
from ipxeready.web.pages import may, page
from ipxeready.web.serializers import parse_boolean
from ipxeready.web.words import in_words

#: Cards of one page: as many nodes are asked at a time.
PAGE = 48
_ROLES: dict[str, Any] = {
    DISK: gettext_lazy("disks"),
    CD: gettext_lazy("install CDs"),
}
_ORDERS: dict[str, tuple[Any, Callable[[Card], Any]]] = {
    "id": (gettext_lazy("name"), lambda each: each.agent.id),
    "state": (
        gettext_lazy("health, the worst first"),
        lambda each: (not each.bad, each.agent.id),
    ),
    "free": (
        gettext_lazy("free room, the least first"),
        lambda each: (each.room is None, each.room.free if each.room else 0),
    ),
    "disks": (
        gettext_lazy("disks, the most first"),
        lambda each: (-each.load.disks, each.agent.id),
    ),
}
#: What a page of the list is asked with, beside what the API's filter knows.
_OWN = ("state", "order", "p", "live")
_KEPT = ("search", "role", "access", "enabled", "tag", "state", "order", "p")


def nodes(request: HttpRequest) -> HttpResponse:
    """Every node that the filters leave, as it was last seen; `live=1` asks those of this page first, side by side."""
    query = request.GET
    filters = AgentFilter(query, queryset=selectors.agents())
    rows = list(filters.qs if filters.is_valid() else selectors.agents())
    loads = services.loads()
    notes = known(rows)
    cards = _chosen(rows, notes, loads, query.get("state", ""))
    order = query.get("order", "")
    cards.sort(key=_ORDERS[order if order in _ORDERS else "id"][1])
    shown = Paginator(cards, PAGE).get_page(query.get("p"))
    live = query.get("live") in ("1", "true")
    if live:
        asked = [each.agent for each in shown.object_list if each.agent.enabled]
        health.agents_health(actor=actor_of(request), agents=asked, timeout=patience())
        notes |= known(asked)
        shown.object_list = [
            card(each.agent, notes.get(each.agent.id), each.load)
            for each in shown.object_list
        ]
    kept = query.copy()
    for name in list(kept):
        if name not in _KEPT:
            del kept[name]
    return page(
        request,
        "agents/nodes.html",
        {
            "cards": shown.object_list,
            "page": shown,
            "count": len(cards),
            "all": len(rows) if not _filtered(query) else selectors.agents().count(),
            "live": live,
            "kept": kept.urlencode(),
            "wrong": _wrong(filters),
            "roles": _ROLES.items(),
            "modes": ACCESS,
            "states": STATES.items(),
            "orders": [(name, words) for name, (words, _key) in _ORDERS.items()],
            "asked": query,
            "may_register": may(request, ADMINISTRATOR),
        },
        title=_("Nodes"),
    )


def _chosen(
    rows: list[Agent],
    notes: dict[str, Known],
    loads: dict[str, Load],
    state: str,
) -> list[Card]:
    cards = [
        card(agent, notes.get(agent.id), loads.get(agent.id, Load())) for agent in rows
    ]
    if state in STATES:
        cards = [each for each in cards if each.state == state]
    return cards


def _wrong(filters: AgentFilter) -> list[str]:
    """Which filters do not hold, and why."""
    if filters.is_valid():
        return []
    return [
        f"{name}: {in_words(str(fault))}"
        for name, faults in filters.errors.items()
        for fault in faults
    ]


def _filtered(query: Any) -> bool:
    return any(query.get(name) for name in AgentFilter.base_filters)


def switch(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Let a node take new disks and CDs again, or no more; back to where the button was."""
    agent = find(agent_id)
    try:
        enabled = parse_boolean("enabled", request.POST.get("enabled", ""))
        services.agent_update(
            actor=actor_of(request), agent_id=agent.id, enabled=enabled
        )
    except ApplicationError as error:
        field = f"{error.field}: " if error.field else ""
        messages.error(request, f"{field}{in_words(error)}")
    else:
        words = (
            _("%(node)s is enabled: new disks may go there.")
            if enabled
            else _("%(node)s is disabled: nothing new goes there. What is on it stays and is served.")
        )  # fmt: skip
        messages.success(request, words % {"node": agent.id})
    if "list" in request.POST:
        return HttpResponseRedirect(f"{reverse(LIST)}?{request.POST['list']}")
    return HttpResponseRedirect(reverse("admin:agents_agent_change", args=[agent.pk]))
