"""One node: what is registered, how it is, its targets and its jobs."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from agents import node_jobs, services
from agents.calls import node_words
from agents.forms import ConfirmForm
from agents.known import known
from agents.models import Agent
from agents.overview import Overview, node_overview
from agents.pages.cards import card
from agents.pages.common import (
    address,
    back_to,
    find,
    moment,
    question,
    trail,
    worker_address,
)
from agents.protocol.answers import Target
from agents.protocol.systems import CD
from agents.together import patience
from ipxeready.actors import ADMINISTRATOR, OPERATOR
from ipxeready.errors import ApplicationError
from ipxeready.jobs.kinds import name_of
from ipxeready.storage.jobs import BYTES, ENDED
from ipxeready.storage.sizes import format_size
from ipxeready.web.actors import actor_of
from ipxeready.web.pages import may, page
from ipxeready.web.words import in_words

#: Targets of one page.
PAGE = 100
#: Sessions of one target that are written out.
_SESSIONS = 5


def node(request: HttpRequest, agent_id: str) -> HttpResponse:
    """Asked when the page is opened, within one time limit for all of it; a node that is gone is said to be."""
    agent = find(agent_id)
    found = node_overview(
        actor=actor_of(request), agent_id=agent.id, timeout=patience()
    )
    load = services.loads().get(agent.id, services.Load())
    search = request.GET.get("search", "").strip()
    targets = [
        target
        for target in sorted(found.targets or [], key=lambda each: each["iqn"])
        if search.lower() in target["iqn"].lower()
    ]
    shown = Paginator(targets, PAGE).get_page(request.GET.get("p"))
    owners = services.owners_on(
        agent.id, [target["iqn"] for target in shown.object_list]
    )
    jobs = [_job(each) for each in found.jobs or []]
    return page(
        request,
        "agents/node.html",
        {
            "agent": agent,
            "card": card(agent, known([agent]).get(agent.id), load),
            "errors": found.errors,
            "listed": found.targets is not None,
            "targets": [
                _row(agent, target, owners.get(target["iqn"], [])) for target in shown
            ],
            "page": shown,
            "count": len(targets),
            "all": len(found.targets or []),
            "search": search,
            "jobs": [job for job in jobs if job["open"]] or jobs[:3],
            "open": any(job["open"] for job in jobs),
            "no_disk": _no_disk(agent, found),
            "no_cd": _no_cd(agent, found),
            "may_work": may(request, OPERATOR),
            "may_register": may(request, ADMINISTRATOR),
        },
        title=agent.id,
        trail=trail(),
    )


def _no_disk(agent: Agent, found: Overview) -> str:
    """Why no disk can be made here, empty when one can."""
    if not agent.enabled:
        return _("The node is disabled.")
    if not agent.role_disk:
        return _("The node takes no disks: its role is set so.")
    if found.capabilities is None:
        return _("The node does not answer.")
    return ""


def _no_cd(agent: Agent, found: Overview) -> str:
    """The same for CDs."""
    if not agent.enabled:
        return _("The node is disabled.")
    if found.capabilities is None:
        return _("The node does not answer.")
    if not found.capabilities["cd"]:
        return _("Its target system %(name)s has no CD drives.") % {
            "name": found.capabilities["backend"][:40]
        }
    if not agent.role_cd:
        return _("The node takes no install CDs: its role is set so.")
    return ""


def _row(agent: Agent, target: Target, owners: list[str]) -> dict[str, Any]:
    """One target for the template; a node may say anything in it."""
    luns = [lun for lun in target["luns"] if isinstance(lun, dict)]
    sessions = [each for each in target["sessions"] if isinstance(each, dict)]
    initiators = target.get("initiators")
    return {
        "iqn": target["iqn"],
        "luns": [
            {
                "number": lun.get("lun"),
                "cd": lun.get("type") == CD,
                "size": lun.get("size"),
                "backing": lun.get("backing") or "",
            }
            for lun in luns
        ],
        "access": target.get("access") or "",
        "initiators": initiators if isinstance(initiators, list) else [],
        "sessions": [
            {
                "initiator": each.get("initiator") or "",
                "address": each.get("address") or "",
                "since": moment(each.get("since")),
            }
            for each in sessions[:_SESSIONS]
        ],
        "more": max(len(sessions) - _SESSIONS, 0),
        "owners": [(name, worker_address(name)) for name in owners],
        "set_access": address(
            "admin:agents_agent_lun_access", agent, iqn=target["iqn"]
        ),
        "delete": address("admin:agents_agent_lun_delete", agent, iqn=target["iqn"]),
    }


def _job(job: dict[str, Any]) -> dict[str, Any]:
    """One job of the node for the template."""
    about = job.get("about")
    about = about if isinstance(about, dict) else {}
    done, total = job["done"], job["total"]
    far = ""
    if job["unit"] == BYTES and total:
        far = _("%(done)s of %(total)s") % {
            "done": format_size(max(done, 0)),
            "total": format_size(max(total, 0)),
        }
    return {
        "id": job["id"],
        "name": name_of(str(job.get("kind", ""))),
        "about": about.get("iqn") or about.get("name") or about.get("source") or "",
        "state": job["state"],
        "open": job["state"] not in ENDED,
        "cancelling": job.get("cancelling") is True,
        "done": done,
        "total": total,
        "far": far,
        "error": node_words(job.get("error")),
    }


def job_cancel(request: HttpRequest, agent_id: str, job_id: str) -> HttpResponse:
    """Ask first; the answer is a POST. The node stops the copy at its next step."""
    agent = find(agent_id)
    actor = actor_of(request)
    if request.method == "POST":
        try:
            node_jobs.node_job_cancel(actor=actor, agent_id=agent.id, job_id=job_id)
        except ApplicationError as error:
            messages.error(request, in_words(error))
        else:
            text = _("It ends at its next step, and leaves nothing behind.")
            messages.success(request, text)
        return back_to(agent)
    return question(
        request,
        agent,
        title=_("Cancel this job of %(node)s?") % {"node": agent.id},
        form=ConfirmForm(),
        submit=_("Cancel the job"),
        danger=True,
        facts=[(_("Number"), job_id)],
        facts_title=_("Job"),
        notes=[_("A copy is stopped and what was made of it is removed.")],
    )
