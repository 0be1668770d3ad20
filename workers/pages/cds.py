"""The install CD of a worker: an ISO of a node attached, and detached again."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _t

from agents.offers import offers
from ipxeready.errors import ApplicationError, NotFound
from ipxeready.said import said
from ipxeready.web.actors import actor_of
from workers import selectors
from workers.cds import cd_attach
from workers.forms import CdForm, CdRemovalForm, place_of
from workers.inuse import session_words, sessions_of
from workers.pages.common import ask, back, done, refuse, refuse_stale
from workers.removal import Removal, cd_delete


def attach(request: HttpRequest, worker_id: str) -> HttpResponse:
    """Choose an ISO of a node."""
    worker = selectors.worker_get(worker_id)
    actor = actor_of(request)
    found = offers(actor=actor)
    form = CdForm(request.POST or None, offers=found)
    if request.method == "POST" and form.is_valid():
        agent, iso = place_of(form.cleaned_data["iso"])
        try:
            cd_attach(actor=actor, worker_id=worker.pk, iso=iso, agent=agent or None)
        except ApplicationError as error:
            refuse(form, error)
        else:
            text = _t("The CD is attached: the menu's installation entries offer it.")
            done(request, text)
            return back(worker.pk)
    return ask(
        request,
        worker,
        _t("Install CD for %(worker)s") % {"worker": worker.pk},
        form,
        submit=_t("Attach the CD"),
        silent=[
            f"{offer.agent}: {offer.no_cd}" for offer in found if offer.no_cd
        ],
        silent_title=_t("These nodes offer none:"),
    )  # fmt: skip


def detach(request: HttpRequest, worker_id: str) -> HttpResponse:
    """Take the CD off the worker; the ISO stays."""
    worker = selectors.worker_get(worker_id)
    cd = selectors.cd_of(worker.pk)
    if cd is None:
        raise NotFound(
            said("worker {worker_id} has no install CD", worker_id=worker.pk)
        )
    form = CdRemovalForm()
    if request.method == "POST":
        form = CdRemovalForm(request.POST)
        if form.is_valid():
            removal = Removal(**form.cleaned_data)
            try:
                refuse_stale(request, worker)
                cd_delete(actor=actor_of(request), worker_id=worker.pk, removal=removal)
            except ApplicationError as error:
                refuse(form, error)
            else:
                done(request, _t("The CD was detached."))
                return back(worker.pk)
    sessions = sessions_of([cd]).get(cd.iqn, [])
    return ask(
        request,
        worker,
        _t("Detach the install CD of %(worker)s") % {"worker": worker.pk},
        form,
        submit=_t("Detach the CD"),
        danger=True,
        goes=[
            _t("target %(iqn)s on node %(agent)s") % {"iqn": cd.iqn, "agent": cd.agent}
        ],
        stays=[_t("the ISO %(iso)s") % {"iso": cd.iso}],
        users=[session_words(session) for session in sessions],
        users_title=_t(
            "connected to %(iqn)s; refused, or cut off at once if you tick it below:"
        )
        % {"iqn": cd.iqn},
    )
