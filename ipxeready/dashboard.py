"""The start page: numbers of workers, what is wrong and how it is mended, nodes with their room, work under way, the last operations."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext_lazy as _

from agents.health import agents_health
from agents.known import known
from agents.models import Agent
from agents.pages.cards import card
from agents.selectors import agents
from agents.services import Load
from agents.together import PATIENCE
from audit.models import Operation
from audit.selectors import operations
from ipxeready.actors import Actor
from ipxeready.jobs import pages as job_pages
from ipxeready.web.actors import actor_of
from ipxeready.web.pages import page
from ipxeready.web.troubles import troubles
from workers import selectors
from workers.choices import State

#: Answers that are younger (seconds) are not asked for again: many may look at once.
YOUNG: Final = 3.0
OPERATIONS: Final = 10
JOBS: Final = 5

#: Other addresses worth knowing.
_LINKS: Final = (
    ("schema", _("OpenAPI description of the API")),
    ("healthz", _("Health")),
)


def dashboard(request: HttpRequest) -> HttpResponse:
    """The page from what is known, at once; with `ask` the nodes are asked first, each at most a few seconds.

    A page with scripts does that by itself as soon as it is there.
    """
    nodes = list(agents())
    if "ask" in request.GET:
        _ask(actor_of(request), nodes)
    seen = known(nodes)
    jobs = job_pages.under_way()
    return page(
        request,
        "dashboard.html",
        {
            # All of them are among what is wrong.
            "file_problems": [],
            "troubles": troubles(),
            "workers": workers_card(),
            "nodes": [card(node, seen.get(node.pk), Load()) for node in nodes],
            "jobs": jobs[:JOBS],
            "more_jobs": max(len(jobs) - JOBS, 0),
            "operations": [_operation(row) for row in operations()[:OPERATIONS]],
            "links": links(),
        },
        title=str(_("Dashboard")),
    )


def _ask(actor: Actor, nodes: list[Agent]) -> None:
    """Ask the nodes that are switched on and were not asked just now."""
    seen = known(nodes)
    now = datetime.now(UTC)
    old = [
        node
        for node in nodes
        if node.enabled
        and (node.pk not in seen or (now - seen[node.pk].at).total_seconds() > YOUNG)
    ]
    if old:
        agents_health(actor=actor, agents=old, timeout=PATIENCE)


def workers_card() -> list[tuple[Any, int, str]]:
    """Name, number and list of each sort of workers."""
    counts = selectors.counts()
    address = reverse("admin:workers_worker_changelist")
    return [
        (_("all"), counts.all, address),
        *(
            (State(state).label, counts.states[state], f"{address}?state={state}")
            for state in State.values
        ),
        (_("without a disk"), counts.without_disk, f"{address}?has_disk=false"),
        (_("without a default system"), counts.without_default, ""),
    ]


def _operation(row: Operation) -> dict[str, Any]:
    return {
        "url": reverse("admin:audit_operation_change", args=[row.pk]),
        "at": row.ts,
        "op": row.op,
        "status": row.status,
        "bad": row.status in ("failed", "rollback"),
        "worker": row.worker_id,
        "agent": row.agent,
        "user": str(row.data.get("user") or ""),
    }


def links() -> list[dict[str, Any]]:
    """Addresses that are no pages of ours."""
    found = []
    for name, title in _LINKS:
        try:
            found.append({"url": reverse(name), "title": title})
        except NoReverseMatch:
            continue
    return found
