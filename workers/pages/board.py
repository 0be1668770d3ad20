"""The batch board: rows ticked, nodes given to them, what will happen shown before it begins. It holds no rule."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from django.contrib import messages
from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseRedirect,
    JsonResponse,
    QueryDict,
)
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t

from agents import nodes
from agents.masters import masters_offered
from agents.models import Agent
from agents.selectors import agents
from agents.together import PATIENCE
from ipxeready.actors import OPERATOR
from ipxeready.errors import ApplicationError, Invalid
from ipxeready.index.selectors import records_digest
from ipxeready.jobs.services import job_find, job_start
from ipxeready.storage.sizes import format_size
from ipxeready.web.actors import actor_of
from ipxeready.web.pages import page, page_view
from ipxeready.web.words import in_words, refuse
from workers import planning, selectors
from workers.batch_items import MOST
from workers.filters import filtered
from workers.models import Disk, Worker
from workers.pages import board_job
from workers.pages.board_forms import DisksForm, FilterForm, label, master_label
from workers.pages.board_steps import STEPS, Step, facts, offer_words
from workers.pages.chosen import chosen_of, filters_in, matching, written

#: Rows of a page of the list.
SIZES = (50, 100, 200, 500)
_SIZE = 100
#: Rows of one listing; the others are counted.
LISTED = 500


def urls() -> list[URLPattern]:
    """The addresses of the board, for the site's own list; all of it is for operators."""
    mine = partial(page_view, look=OPERATOR, change=OPERATOR)
    return [
        path("board/", mine(_board, methods=("GET", "POST")), name="board"),
        path("board/ids/", mine(_ids), name="board_ids"),
        path("board/plan/", mine(_plan, methods=("POST",)), name="board_plan"),
        path("board/masters/", mine(_masters), name="board_masters"),
        path("board/nodes/", mine(_nodes), name="board_nodes"),
        path("board/jobs/<str:job_id>/", page_view(board_job.show), name="board_job"),
        path(
            "board/<str:what>/", mine(_ask, methods=("GET", "POST")), name="board_ask"
        ),
    ]


# --- the board ---------------------------------------------------------------


def _board(request: HttpRequest) -> HttpResponse:
    """The list; a POST comes from the buttons that share nodes out, or back from a question: it changes nothing."""
    chosen = chosen_of(request) if request.method == "POST" else {}
    if request.method == "POST":
        chosen = _shared(request, chosen)
    given = filters_in(request.GET)
    registry = list(agents())
    filters = FilterForm(request.GET or None, nodes=[agent.id for agent in registry])
    rows = filtered(given)
    number = request.GET.get("n", "")
    size = int(number) if number in map(str, SIZES) else _SIZE
    shown = Paginator(rows, size).get_page(request.GET.get("p"))
    form = DisksForm({**DisksForm.FIRST, **request.POST.dict()})
    form.is_valid()
    sent = form.data.get("name", "")
    form.offer({sent: 0} if sent else {}, _t("chosen in the next step"))
    form.errors.clear()
    system = form.data["os"]
    return page(
        request,
        "workers/board.html",
        {
            "filters": filters,
            "query": QueryDict(request.GET.urlencode()).urlencode(),
            "page": shown,
            "size": size,
            "sizes": SIZES,
            "count": shown.paginator.count,
            "most": MOST,
            "rows": _rows(list(shown), chosen, registry),
            "nodes": _cards(registry, chosen, live="live" in request.GET),
            "live": "live" in request.GET,
            "form": form,
            "chosen": written(chosen),
            "facts": facts(planning.count_chosen(chosen, system)) if chosen else [],
            "steps": STEPS,
        },
        title=_t("Board"),
        trail=[(_t("Workers"), reverse("admin:workers_worker_changelist"))],
    )


def _shared(request: HttpRequest, chosen: dict[str, str]) -> dict[str, str]:
    """The chosen once the pressed button has given them nodes."""
    try:
        to = _takers(request)
        return planning.shared_out(chosen, to) if to else chosen
    except ApplicationError as error:
        messages.error(request, in_words(error))
        return chosen


def _takers(request: HttpRequest) -> list[str]:
    """The nodes that take the chosen, if a button for that was pressed."""
    if "take" in request.POST:
        return [request.POST["take"]]
    if "share" not in request.POST:
        return []
    ticked = request.POST.getlist("on")
    if not ticked:
        raise Invalid(_t("Tick the nodes that take part first."))
    return ticked


def _rows(
    workers: list[Worker], chosen: Mapping[str, str], registry: list[Agent]
) -> list[dict[str, Any]]:
    """The rows of one page: no query for each."""
    things = selectors.things_of([worker.pk for worker in workers])
    options = _Options(registry)
    return [
        {
            "id": worker.pk,
            "url": reverse("admin:workers_worker_change", args=[quote(worker.pk)]),
            "hostname": worker.hostname,
            "state": worker.get_state_display(),
            "boots": worker.default_os,
            "disks": [
                {"os": thing.os, "agent": thing.agent, "status": thing.status}
                for thing in things.get(worker.pk, [])
                if isinstance(thing, Disk)
            ],
            "ticked": worker.pk in chosen,
            "options": options.of(chosen.get(worker.pk, "")),
        }
        for worker in workers
    ]


class _Options:
    """The options of a row's node: the same for hundreds of rows, so written once for each choice."""

    def __init__(self, registry: list[Agent]) -> None:
        self._names = [agent.id for agent in registry if _takes(agent)]
        self._made: dict[str, SafeString] = {}

    def of(self, node: str) -> SafeString:
        """With this node chosen."""
        if node not in self._made:
            names = self._names if node in ("", *self._names) else [*self._names, node]
            self._made[node] = format_html(
                '<option value="">{}</option>{}',
                _t("any node"),
                format_html_join(
                    "",
                    '<option value="{}"{}>{}</option>',
                    (
                        (
                            name,
                            SafeString(" selected" if name == node else ""),
                            label(name),
                        )
                        for name in names
                    ),
                ),
            )
        return self._made[node]


def _takes(agent: Agent) -> bool:
    return agent.enabled and agent.role_disk


def _cards(
    registry: list[Agent], chosen: Mapping[str, str], *, live: bool
) -> list[dict[str, Any]]:
    """The nodes that take disks, or would if they were enabled."""
    held = selectors.disk_counts()
    shown = [agent for agent in registry if agent.role_disk]
    told = _told(shown) if live else {}
    on = planning.count_chosen(chosen).on
    return [
        {
            "id": agent.id,
            "url": reverse("admin:agents_agent_change", args=[quote(agent.id)]),
            "enabled": agent.enabled,
            "disks": held.get(agent.id, 0),
            "given": on.get(agent.id, 0),
            "told": told.get(agent.id),
        }
        for agent in shown
    ]


def _told(registry: list[Agent]) -> dict[str, dict[str, Any]]:
    """How the nodes say they are: `ok`, and `words` about it."""
    answers = nodes.live(registry, timeout=PATIENCE)
    found: dict[str, dict[str, Any]] = {}
    for agent in registry:
        answer = answers[agent.id]
        can = answer["capabilities"]
        if can is None:
            words = (
                _t("disabled")
                if not agent.enabled
                else _t("does not answer: %(why)s")
                % {"why": in_words(answer["health"])}
            )
            found[agent.id] = {"ok": not agent.enabled, "words": words}
            continue
        room = {
            "free": format_size(max(can["free_bytes"], 0)),
            "total": format_size(can["total_bytes"]),
        }
        found[agent.id] = {
            "ok": True,
            "words": _t("answers, %(free)s free of %(total)s") % room,
        }
    return found


# --- what the page asks while somebody works on it -----------------------------


def _plan(request: HttpRequest) -> HttpResponse:
    """The choice in numbers; with `take` or `share` (and `on`) also the node that each gets."""
    chosen = chosen_of(request)
    answer: dict[str, Any] = {}
    if to := _takers(request):
        chosen = planning.shared_out(chosen, to)
        answer["placed"] = written(chosen)
    there = selectors.hostnames_of(list(chosen))
    if gone := sorted(set(chosen) - set(there)):
        answer["gone"] = gone
        chosen = {name: node for name, node in chosen.items() if name in there}
    system = request.POST.get("os", "")
    return JsonResponse(
        {**answer, "facts": facts(planning.count_chosen(chosen, system))}
    )


def _ids(request: HttpRequest) -> HttpResponse:
    """All that the filters find."""
    return JsonResponse({"ids": matching(request.GET)})


def _masters(request: HttpRequest) -> HttpResponse:
    """The masters that every one of the nodes named has."""
    offer = masters_offered(actor=actor_of(request), nodes=request.GET.getlist("node"))
    return JsonResponse(
        {
            "masters": [
                {"name": name, "label": master_label(name, size)}
                for name, size in offer.masters.items()
            ],
            "words": offer_words(offer),
        }
    )


def _nodes(request: HttpRequest) -> HttpResponse:
    """How the nodes say they are."""
    return JsonResponse(_told([agent for agent in agents() if agent.role_disk]))


# --- what will happen, and the beginning of it ------------------------------------


def _ask(request: HttpRequest, what: str) -> HttpResponse:
    """List what will happen with the chosen; begin it only when what was listed is what is sent."""
    if what not in STEPS:
        raise Http404
    board = reverse("admin:board")
    if request.method != "POST":  # somebody came back, or changed the language
        return HttpResponseRedirect(board)
    step = STEPS[what]
    chosen = chosen_of(request)
    if not chosen:
        messages.error(request, _t("Nothing is chosen: tick workers first."))
        return HttpResponseRedirect(_back(request))
    asked = "asked" in request.POST
    form = step.form({**({} if asked else step.form.FIRST), **request.POST.dict()})
    listing = None
    if form.is_valid():
        listing = step.listing(actor_of(request), chosen, form)
    digest = _digest(what, step, chosen, form)
    ready = listing is not None and listing.ready and not form.errors
    if ready and request.POST.get("begin") == digest:
        try:
            return _begun(request, step, chosen, form)
        except PermissionDenied:
            raise
        except ApplicationError as error:
            refuse(form, error)
            ready = False
    elif request.POST.get("begin"):
        if ready and (address := _under_way(request, step, chosen, form)):
            return HttpResponseRedirect(address)
        text = _t("Something has changed since this was listed: look at it again.")
        messages.warning(request, text)
    rows = sorted(listing.rows, key=lambda row: not row.bad) if listing else []
    return page(
        request,
        "workers/board_ask.html",
        {
            "step": step,
            "form": form,
            "listing": listing,
            "rows": rows[:LISTED],
            "more": max(len(rows) - LISTED, 0),
            "chosen": written(chosen),
            "number": len(chosen),
            "filters_text": request.POST.get("filters", ""),
            "digest": digest,
            "ready": ready,
            "back_url": _back(request),
        },
        title=str(step.title),
        trail=[(_t("Board"), board)],
        status=200 if ready or not form.errors else 400,
    )


def _begun(
    request: HttpRequest, step: Step[Any], chosen: Mapping[str, str], form: Any
) -> HttpResponse:
    actor = actor_of(request)
    work = step.work(actor, chosen, form)
    job = job_start(actor=actor, work=work)
    address = reverse("admin:board_job", args=[job.id])
    return HttpResponseRedirect(f"{address}?begun")


def _under_way(
    request: HttpRequest, step: Step[Any], chosen: Mapping[str, str], form: Any
) -> str:
    """The page of the job that does this already, if the button was pressed twice."""
    try:
        job = job_find(step.work(actor_of(request), chosen, form))
    except ApplicationError:
        return ""
    return reverse("admin:board_job", args=[job.id]) if job else ""


def _digest(what: str, step: Step[Any], chosen: Mapping[str, str], form: Any) -> str:
    """What was listed; a form that says something else, or loses something else, is listed again first."""
    said = [what, sorted(chosen.items()), getattr(form, "cleaned_data", None)]
    if step.danger:
        said.append(records_digest("workers", sorted(chosen)))
    text = json.dumps(said, sort_keys=True, default=str)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _back(request: HttpRequest) -> str:
    """The board with the filters that it had."""
    query = QueryDict(request.POST.get("filters", "")).urlencode()
    board = reverse("admin:board")
    return f"{board}?{query}" if query else board
