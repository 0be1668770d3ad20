"""What is done to a system disk: made the default, grown, reset to a master, deleted."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _t

from agents.offers import offers
from ipxeready.errors import ApplicationError
from ipxeready.storage.sizes import format_size
from ipxeready.web.actors import actor_of
from workers import changing, jobs, selectors, services
from workers.choices import DiskType
from workers.forms import GrowForm, RemovalForm, ResetForm
from workers.inuse import session_words
from workers.live import LiveTarget, targets_of
from workers.models import Disk, Worker
from workers.pages.common import ask, back, done, followed, refuse, refuse_stale
from workers.removal import Removal, disk_delete


def _disk(worker_id: str, os: str) -> tuple[Worker, Disk]:
    worker = selectors.worker_get(worker_id)
    disk = selectors.disk_get(worker.pk, os)
    return worker, disk


def _now(disk: Disk) -> tuple[list[str], list[str]]:
    """How the disk is now, in lines: what is known of it, and who is connected to it."""
    live = targets_of([disk]).get(disk.iqn, LiveTarget())
    if live.error:
        words = _t("node %(node)s does not answer: %(error)s")
        return [words % {"node": disk.agent, "error": live.error}], []
    if not live.exists:
        words = _t("node %(node)s has no target %(iqn)s")
        return [words % {"node": disk.agent, "iqn": disk.iqn}], []
    size = format_size(live.size) if live.size else "?"
    if live.allocated is not None:
        told = {"size": size, "taken": format_size(live.allocated)}
        known = _t("It is %(size)s now, of which %(taken)s are on the disk.") % told
    else:
        known = _t("It is %(size)s now.") % {"size": size}
    return [known], [session_words(session) for session in live.sessions]


def make_default(request: HttpRequest, worker_id: str, os: str) -> HttpResponse:
    """What the worker boots from now on."""
    worker, disk = _disk(worker_id, os)
    services.worker_boot_set(actor=actor_of(request), worker_id=worker.pk, os=disk.os)
    text = _t("%(worker)s boots %(os)s from now on.")
    done(request, text % {"worker": worker.pk, "os": disk.os})
    return back(worker.pk)


def grow(request: HttpRequest, worker_id: str, os: str) -> HttpResponse:
    """Make it larger."""
    worker, disk = _disk(worker_id, os)
    form = GrowForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        try:
            changing.disk_grow(
                actor=actor_of(request),
                worker_id=worker.pk,
                os=disk.os,
                size=form.cleaned_data["size"],
            )
        except ApplicationError as error:
            refuse(form, error)
        else:
            done(
                request,
                _t("The disk was grown. The system uses the new room once its partition is made larger too."),
            )  # fmt: skip
            return back(worker.pk)
    known, users = _now(disk)
    title = _t("Grow the %(os)s disk of %(worker)s")
    return ask(
        request,
        worker,
        title % {"os": disk.os, "worker": worker.pk},
        form,
        submit=_t("Grow the disk"),
        notes=known,
        users=users,
        users_title=_t("Connected to it; shut the machine down first:"),
    )


def reset(request: HttpRequest, worker_id: str, os: str) -> HttpResponse:
    """Give it the content of a master again."""
    worker, disk = _disk(worker_id, os)
    actor = actor_of(request)
    found = [offer for offer in offers(actor=actor) if offer.agent == disk.agent]
    form = ResetForm(request.POST or None, offers=found)
    if request.method == "POST" and form.is_valid():
        try:
            refuse_stale(request, worker)
            work = jobs.reset_work(
                actor=actor,
                worker_id=worker.pk,
                os=disk.os,
                master=form.cleaned_data["master"] or None,
            )
            job = followed(request, work)
        except ApplicationError as error:
            refuse(form, error)
        else:
            if isinstance(job, HttpResponseRedirect):
                return job
            done(request, _t("The disk was reset."))
            return back(worker.pk)
    known, users = _now(disk)
    title = _t("Reset the %(os)s disk of %(worker)s")
    master = disk.source.get("name") if disk.source.get("type") == DiskType.MASTER else ""  # fmt: skip
    return ask(
        request,
        worker,
        title % {"os": disk.os, "worker": worker.pk},
        form,
        submit=_t("Reset the disk"),
        danger=True,
        notes=[
            *known,
            _t("It was made from %(master)s.") % {"master": master}
            if master
            else _t("It was not made from a master: choose one."),
        ],
        goes=[
            _t("everything that was written to image %(file)s since it was made") % {"file": disk.filename},
            _t("what the disk was grown by: it has its master's size afterwards"),
        ],
        stays=[_t("target, name and access of the disk")],
        users=users,
        users_title=_t("Connected to it; shut the machine down first:"),
    )  # fmt: skip


def delete(request: HttpRequest, worker_id: str, os: str) -> HttpResponse:
    """Take it off the worker, with its image or without."""
    worker, disk = _disk(worker_id, os)
    form = RemovalForm(request.POST or None)
    # A form of boxes only, none of them ticked, is sent all the same.
    if request.method == "POST":
        form = RemovalForm(request.POST)
        if form.is_valid():
            try:
                refuse_stale(request, worker)
                disk_delete(
                    actor=actor_of(request),
                    worker_id=worker.pk,
                    os=disk.os,
                    removal=Removal(**form.cleaned_data),
                )
            except ApplicationError as error:
                refuse(form, error)
            else:
                done(request, _t("The disk was deleted."))
                return back(worker.pk)
    known, users = _now(disk)
    title = _t("Delete the %(os)s disk of %(worker)s")
    return ask(
        request,
        worker,
        title % {"os": disk.os, "worker": worker.pk},
        form,
        submit=_t("Delete the disk"),
        danger=True,
        notes=known,
        goes=[
            _t("target %(iqn)s on node %(agent)s")
            % {"iqn": disk.iqn, "agent": disk.agent},
            _t("image %(file)s, only if you tick it below") % {"file": disk.filename},
        ],
        users=users,
        users_title=_cuts(disk.iqn),
    )


def _cuts(iqn: str) -> str:
    """What becomes of those who are connected."""
    words = _t(
        "connected to %(iqn)s; refused, or cut off at once if you tick it below:"
    )
    return words % {"iqn": iqn}
