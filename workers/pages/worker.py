"""The page of one worker: who it is, its disks and CD, what it boots, what was done to it.

Nodes are asked only with `?live=1`: a small module fetches that and fills the page in, and without it a link leads there.
"""

from __future__ import annotations

from typing import Any

from django.forms import Form
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _t

from audit.selectors import operations
from ipxeready import index
from ipxeready.actors import OPERATOR
from ipxeready.errors import ApplicationError
from ipxeready.jobs.pages import seen
from ipxeready.jobs.selectors import unfinished_about
from ipxeready.web.actors import actor_of
from ipxeready.web.pages import may, page
from workers import selectors, services
from workers.choices import DiskType
from workers.forms import BootForm, MacForm
from workers.inuse import session_words
from workers.leases import lease_words, leases_of
from workers.live import LiveTarget, live_targets
from workers.models import Cd, Disk, Worker
from workers.pages.common import (
    back,
    digest_of,
    done,
    list_url,
    node_url,
    refuse,
    refuse_stale,
    trail_of,
    worker_url,
)
from workers.pages.parts import WORKER_PARTS
from workers.pages.words import access_words, source_words, status_words
from workers.told import dnsmasq_told

#: Operations, and changes of the MAC, that the page shows.
LAST = 10
#: What the service calls the fields of the form; one that is not sent stays as it is.
_BOOT = {
    "os": "default_os",
    "menu_default": "menu_default",
    "menu_timeout": "menu_timeout",
}
_MAC_OP = "worker.mac.update"


def show(request: HttpRequest, worker_id: str) -> HttpResponse:
    """The page; with `live=1` the nodes are asked for it."""
    worker = selectors.worker_get(worker_id)
    return _page(request, worker)


def mac(request: HttpRequest, worker_id: str) -> HttpResponse:
    """Another MAC."""
    worker = selectors.worker_get(worker_id)
    form = MacForm(request.POST)
    if not form.is_valid():
        return _page(request, worker, mac_form=form)
    actor = actor_of(request)
    try:
        record = services.worker_mac_update(
            actor=actor, worker_id=worker.pk, mac=form.cleaned_data["mac"]
        )
    except ApplicationError as error:
        refuse(form, error)
        return _page(request, worker, mac_form=form)
    text = (
        _t("%(worker)s has the MAC %(mac)s from its next boot on.")
        if record["changed"]
        else _t("%(worker)s has the MAC %(mac)s already.")
    )
    done(request, text % {"worker": worker.pk, "mac": record["mac"]})
    return back(worker.pk)


def boot(request: HttpRequest, worker_id: str) -> HttpResponse:
    """What it boots."""
    worker = selectors.worker_get(worker_id)
    form = _boot_form(worker, request.POST)
    if not form.is_valid():
        return _page(request, worker, boot_form=form)
    data = form.cleaned_data
    actor = actor_of(request)
    try:
        # The record must not change between the question whether it has and the write.
        with index.writing(actor=actor, op="worker.boot.set"):
            refuse_stale(request, selectors.worker_get(worker.pk))
            services.worker_boot_set(
                actor=actor,
                worker_id=worker.pk,
                **{
                    name: None if data[field] == "" else data[field]
                    for name, field in _BOOT.items()
                    if field in request.POST
                },
            )
    except ApplicationError as error:
        if error.field == "os":
            error.field = "default_os"
        refuse(form, error)
        return _page(request, worker, boot_form=form)
    done(request, _t("It counts from the next boot on."))
    return back(worker.pk)


def _boot_form(worker: Worker, data: Any = None) -> BootForm:
    there = [disk.os for disk in selectors.disks_of(worker.pk) if not disk.status]
    known = [worker.default_os] if worker.default_os else []
    return BootForm(
        data,
        systems=[*there, *known],
        initial={
            "default_os": worker.default_os,
            "menu_default": worker.menu_default,
            "menu_timeout": worker.menu_timeout,
        },
    )


def _page(
    request: HttpRequest,
    worker: Worker,
    *,
    mac_form: Form | None = None,
    boot_form: Form | None = None,
) -> HttpResponse:
    """The page, with a form that was refused in the place of its own."""
    actor = actor_of(request)
    macs = selectors.macs_of(worker.hostname)
    disks = selectors.disks_of(worker.pk)
    cd = selectors.cd_of(worker.pk)
    live = None
    if request.GET.get("live") == "1":
        live = live_targets(actor=actor, worker_id=worker.pk)
    bindings = selectors.bindings_named(worker.hostname)
    return page(
        request,
        "workers/worker.html",
        {
            "worker": worker,
            "may_change": may(request, OPERATOR),
            "list_url": list_url(),
            "live_url": f"{worker_url(worker.pk)}?live=1",
            "is_live": live is not None,
            "macs": macs,
            "mac_form": mac_form or MacForm(initial={"mac": macs[0] if macs else ""}),
            "mac_changes": _mac_changes(worker),
            "leases": [lease_words(lease) for lease in leases_of(macs)],
            "bindings": bindings,
            "conflict": any(binding.conflict for binding in bindings),
            "told": dnsmasq_told(),
            "disks": [_card(worker, disk, live) for disk in disks],
            "cd": _cd(worker, cd, live) if cd else None,
            "boot_form": boot_form or _boot_form(worker),
            "record_digest": digest_of(worker),
            "access_mode": worker.get_access_display(),
            "parts": [part(request, worker) for part in WORKER_PARTS],
            "jobs": [seen(job) for job in unfinished_about(actor=actor, worker_id=worker.pk)],
            "operations": _operations(worker),
            "history_url": worker_url(worker.pk, "history"),
        },
        title=worker.pk,
        trail=trail_of(),
    )  # fmt: skip


def _target(
    worker: Worker, thing: Disk | Cd, live: dict[str, LiveTarget] | None
) -> dict[str, Any]:
    """What disks and CD have in common on the page."""
    found = live.get(thing.iqn) if live is not None else None
    return {
        "row": thing,
        "node_url": node_url(thing.agent),
        "access": access_words(worker, thing),
        "live": found,
        "sessions": [session_words(each) for each in found.sessions] if found else [],
    }


def _card(
    worker: Worker, disk: Disk, live: dict[str, LiveTarget] | None
) -> dict[str, Any]:
    return {
        **_target(worker, disk, live),
        "part": f"disk-{disk.os}",
        "source": source_words(disk.source),
        "is_master": disk.source.get("type") == DiskType.MASTER,
        "status": status_words(disk),
        "is_default": disk.os == worker.default_os,
        "shared": selectors.sharers(disk),
    }


def _cd(worker: Worker, cd: Cd, live: dict[str, LiveTarget] | None) -> dict[str, Any]:
    return {**_target(worker, cd, live), "part": "cd"}


def _mac_changes(worker: Worker) -> list[dict[str, Any]]:
    """When it had which MAC, newest first."""
    rows = operations(op=_MAC_OP, worker_id=worker.pk, status="ok").order_by("-id")
    return [
        {
            "ts": row.ts,
            "old": row.data.get("old_mac") or "-",
            "new": row.data.get("new_mac") or "-",
            "user": row.data.get("user", ""),
        }
        for row in rows[: 2 * LAST]
        if row.data.get("changed")
    ][:LAST]


def _operations(worker: Worker) -> list[dict[str, Any]]:
    return [
        {
            "id": row.id,
            "ts": row.ts,
            "op": row.op,
            "status": row.status,
            "user": row.data.get("user", ""),
            "error": row.data.get("error", ""),
        }
        for row in operations(worker_id=worker.pk).order_by("-id")[:LAST]
    ]
