"""The end of a worker: what goes and what stays, said before; and afterwards, from the audit, what became of each."""

from __future__ import annotations

from typing import Any, cast

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext as _t

from agents.protocol.answers import Session
from audit.models import Operation
from audit.selectors import operations
from ipxeready.errors import ApplicationError, NotFound
from ipxeready.said import said
from ipxeready.web.actors import actor_of
from ipxeready.web.pages import page
from ipxeready.web.words import in_words
from workers import chap, selectors
from workers.forms import RemovalForm
from workers.goes import what_goes
from workers.inuse import session_words
from workers.models import Worker
from workers.pages.common import (
    ask,
    list_url,
    refuse,
    refuse_stale,
    trail_of,
    worker_url,
)
from workers.removal import Removal, worker_delete

#: Operations in which a deletion tells what it did, and how many of them one page looks at.
_ABOUT = ("delete_worker", "worker.disk.delete", "lun.delete")
_MOST = 50


def delete(request: HttpRequest, worker_id: str) -> HttpResponse:
    """First what goes and what stays, then it is done."""
    worker = selectors.worker_get(worker_id)
    form = RemovalForm()
    if request.method == "POST":
        form = RemovalForm(request.POST)
        if form.is_valid():
            removal = Removal(**form.cleaned_data)
            try:
                refuse_stale(request, worker)
                worker_delete(
                    actor=actor_of(request), worker_id=worker.pk, removal=removal
                )
            except ApplicationError as error:
                refuse(form, error)
                # Part of it may be gone by now: the lists below say what is left.
                worker = selectors.worker_get(worker.pk)
            else:
                return HttpResponseRedirect(worker_url(worker.pk, "deleted"))
    goes, stays, users = _fates(worker)
    return ask(
        request,
        worker,
        _t("Delete worker %(worker)s") % {"worker": worker.pk},
        form,
        submit=_t("Delete the worker"),
        danger=True,
        goes=goes,
        stays=stays,
        users=users,
        users_title=_t("Connected; refused, or cut off at once if you tick it below:"),
    )


def _fates(worker: Worker) -> tuple[list[str], list[str], list[str]]:
    """What a deletion takes with it, what it leaves, and whom it would cut off."""
    (entry,) = what_goes([worker], delete_file=False)
    goes = [_t("the record of %(worker)s in state/workers.yml") % {"worker": worker.pk}]
    stays, users = [], []
    for line in entry["bindings"]:
        parts = [line["mac"], worker.hostname, line.get("ip", "")]
        words = " ".join(word for word in [*parts, *line.get("tags", [])] if word)
        goes.append(_t("the binding %(words)s in dhcp-hosts.conf") % {"words": words})
    if chap.has_secret(worker.pk):
        goes.append(_t("its login secret in config/chap-secrets.yml"))
    for disk in entry["disks"]:
        goes.append(
            _t("target %(iqn)s on node %(agent)s")
            % {"iqn": disk["iqn"], "agent": disk["agent"]}
        )
        goes.append(
            _t("image %(file)s, only if you tick it below") % {"file": disk["image"]}
        )
        users += _users(disk)
    if cd := entry["cd"]:
        goes.append(
            _t("install CD %(iqn)s on node %(agent)s")
            % {"iqn": cd["iqn"], "agent": cd["agent"]}
        )
        stays.append(_t("the ISO %(iso)s") % {"iso": cd["iso"]})
        users += _users(cd)
    if entry["disks"]:
        stays.append(_t("images that you do not tick: a worker of this name can take them again"))  # fmt: skip
    stays.append(_t("what the operations tell of it"))
    return goes, stays, users


def _users(thing: dict[str, Any]) -> list[str]:
    return [
        f"{thing['iqn']}: {session_words(session)}"
        for session in thing.get("sessions", [])
    ]


def deleted(request: HttpRequest, worker_id: str) -> HttpResponse:
    """What the last deletion of this worker did, item by item."""
    lines = list(
        operations(worker_id=worker_id)
        .filter(op__in=_ABOUT)
        .exclude(status="started")
        .order_by("-id")[:_MOST]
    )
    if not lines or lines[0].op != "delete_worker" or lines[0].status != "ok":
        raise NotFound(
            said(
                "no deletion of a worker {worker_id} is on file",
                worker_id=repr(worker_id[:80]),
            )
        )
    items = []
    for line in lines[1:]:
        if line.op == "delete_worker" and line.status == "ok":
            break  # an earlier worker of this id
        items.append(line)
    last = lines[0]
    return page(
        request,
        "workers/deleted.html",
        {
            "when": last.ts,
            "who": last.data.get("user", ""),  # `user` is who looks at it
            "items": [_record(last), *_bindings(last), *map(_item, reversed(items))],
            "list_url": list_url(),
            "again": selectors.workers().filter(pk=worker_id).exists(),
        },
        title=_t("Worker %(worker)s was deleted") % {"worker": worker_id},
        trail=trail_of(),
    )


def _record(line: Operation) -> dict[str, Any]:
    words = _t("the record of %(worker)s in state/workers.yml")
    return {"what": words % {"worker": line.worker_id}, "fate": _t("gone"), "bad": ""}


def _bindings(line: Operation) -> list[dict[str, Any]]:
    gone = line.data.get("removed_lines")
    if not isinstance(gone, list):
        return [{"what": _t("the binding in dhcp-hosts.conf"), "fate": _t("there was none"), "bad": ""}]  # fmt: skip
    return [
        {
            "what": _t("the line %(line)s of dhcp-hosts.conf") % {"line": text},
            "fate": _t("gone"),
            "bad": "",
        }
        for text in gone
    ]


def _item(line: Operation) -> dict[str, Any]:
    """One target: with its image or without, forced, forgotten, or not deleted at that time."""
    data = line.data
    words = _t("target %(iqn)s on node %(agent)s")
    told = {"iqn": data.get("iqn", "-"), "agent": data.get("agent", "-")}
    found = {"what": words % told, "ts": line.ts, "bad": ""}
    if line.status != "ok":
        failed = _t("not deleted at this try")
        return {**found, "fate": failed, "bad": in_words(data.get("error", ""))}
    fates = []
    if data.get("forgotten"):
        fates.append(_t("taken off the ledger; if its node did not answer, it is there still"))  # fmt: skip
    else:
        fates.append(_t("gone"))
    if "os" in data:
        fates.append(
            _t("its image too") if data.get("delete_file") else _t("its image stays")
        )
    else:
        fates.append(_t("the ISO stays"))
    closed = data.get("closed")
    if isinstance(closed, list):
        fates += [
            _t("%(who)s was cut off") % {"who": session_words(cast(Session, session))}
            for session in closed
            if isinstance(session, dict) and {"initiator", "address"} <= set(session)
        ]
    return {**found, "fate": "; ".join(fates)}
