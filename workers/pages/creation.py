"""A new worker in two steps: who it is, then its disk. The second step is also the page of any further disk."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _t

from agents.offers import Offer, best_for_empty, offers
from ipxeready.errors import ApplicationError, Invalid
from ipxeready.storage.iqn import image_name
from ipxeready.web.actors import actor_of
from ipxeready.web.pages import page
from ipxeready.web.words import in_words
from workers import disks, jobs, selectors, services
from workers.choices import DiskType
from workers.forms import EMPTY, IMAGE, MASTER, NONE, DiskForm, IdentityForm, place_of
from workers.models import Worker
from workers.pages.common import (
    ask,
    back,
    done,
    followed,
    list_url,
    refuse,
    trail_of,
    worker_url,
)


def identity(request: HttpRequest) -> HttpResponse:
    """Step one: id, MAC, hostname."""
    form = IdentityForm(
        request.POST or None, initial={"worker_id": selectors.next_worker_id()}
    )
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        try:
            record = services.worker_create(
                actor=actor_of(request),
                worker_id=data["worker_id"],
                mac=data["mac"],
                hostname=data["hostname"] or None,
            )
        except ApplicationError as error:
            refuse(form, error)
        else:
            _say_made(request, record)
            address = worker_url(record["worker_id"], "disk_add")
            return HttpResponseRedirect(f"{address}?new=1")
    return page(
        request,
        "workers/identity.html",
        {"form": form, "step": 1, "back_url": list_url()},
        title=_t("New worker"),
        trail=trail_of(),
    )


def _say_made(request: HttpRequest, record: dict[str, Any]) -> None:
    text = _t("Worker %(worker)s was registered.") % {"worker": record["worker_id"]}
    done(request, text)
    for line in record.get("removed_lines", []):
        messages.warning(request, _t("A line of the hosts file went: %s") % line)
    if error := record.get("dnsmasq", {}).get("error"):
        messages.warning(request, f"dnsmasq: {in_words(error)}")


def disk_add(request: HttpRequest, worker_id: str) -> HttpResponse:
    """A system disk: empty, a clone, or an image that lies on a node; what takes long is followed on its job's page."""
    worker = selectors.worker_get(worker_id)
    actor = actor_of(request)
    new = request.GET.get("new") == "1"
    found = offers(actor=actor)
    own = {disk.agent for disk in selectors.disks_of(worker.pk)}
    best = best_for_empty(found, own, selectors.disk_counts())
    form = DiskForm(request.POST or None, offers=found, best=best, may_be_none=new)
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        if data["type"] == NONE:
            return back(worker.pk)
        try:
            spec, agent = _wanted(worker, data)
            work = jobs.disk_work(
                actor=actor,
                worker_id=worker.pk,
                spec=spec,
                disk_agent=agent or None,
                set_default=data["set_default"],
            )
            job = followed(request, work)
        except ApplicationError as error:
            if error.field == "name":
                error.field = data["type"]
            refuse(form, error)
        else:
            if isinstance(job, HttpResponseRedirect):
                return job
            for warning in job.result.get("warnings", []):
                messages.warning(request, in_words(warning))
            done(request, _t("The disk was made."))
            return back(worker.pk)
    title = _t("Disk of %(worker)s") if new else _t("New disk for %(worker)s")
    return ask(
        request,
        worker,
        title % {"worker": worker.pk},
        form,
        submit=_t("Go on") if new else _t("Make the disk"),
        template="workers/disk_add.html",
        step=2 if new else None,
        nodes=[_standing(offer, best) for offer in found],
        silent=[offer.agent for offer in found if offer.silent],
    )


def _wanted(worker: Worker, data: dict[str, Any]) -> tuple[disks.DiskSpec, str]:
    """The disk that the form asks for, and the node that it names (empty: any)."""
    chosen, agent = data["type"], data["disk_agent"]
    if chosen == EMPTY:
        spec = disks.disk_spec(
            type=DiskType.EMPTY.value, os=data["os"], size=data["size"]
        )
        return spec, agent
    place, name = place_of(data[chosen])
    if not name:
        raise Invalid(_t("choose one"), field=chosen)
    if chosen == IMAGE and not place:
        raise Invalid(_t("choose one together with its node"), field=chosen)
    if place and chosen == MASTER and agent not in ("", place):
        raise Invalid(
            _t("the master was chosen on %(place)s: leave this open, or choose that node")
            % {"place": place},
            field="disk_agent",
        )  # fmt: skip
    if chosen == MASTER:
        kind = DiskType.MASTER
    elif name == image_name(worker.hostname, data["os"]):
        kind = DiskType.EXISTING
    else:
        kind = DiskType.IMPORT
    return disks.disk_spec(type=kind.value, os=data["os"], name=name), place or agent


def _standing(offer: Offer, best: str | None) -> dict[str, Any]:
    """How a node stands as the place of an empty disk."""
    return {
        "agent": offer.agent,
        "free": offer.free,
        "reflink": offer.reflink,
        "masters": len(offer.masters),
        "reason": offer.no_disk,
        "best": offer.agent == best,
    }
