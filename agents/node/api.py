"""The node's HTTP API (contract.md section 6): bodies in, services, bodies out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse

from agents.node import (
    creating,
    deleting,
    growing,
    health,
    http,
    jobs,
    rebuild,
    resetting,
    services,
)
from agents.node.folder import Entry
from agents.node.runtime import Node, current
from agents.protocol.access import Chap, check_access, check_chap
from agents.protocol.answers import Master, MasterList
from agents.protocol.requests import AccessRequest, CdRequest, DiskRequest
from ipxeready.errors import Invalid
from ipxeready.said import said
from ipxeready.storage.jobs import STATES

_LOG_LIMIT = 10_000
_JOB_LIMIT = 1000


def healthz(request: HttpRequest) -> HttpResponse:
    """Serving."""
    return JsonResponse({"status": "ok"})


def capabilities(request: HttpRequest) -> HttpResponse:
    """What this node can do."""
    http.query(request, ())
    return JsonResponse(services.capabilities(current()))


def node_health(request: HttpRequest) -> HttpResponse:
    """How this node is."""
    http.query(request, ())
    return JsonResponse(health.node_health(current()))


def masters(request: HttpRequest) -> HttpResponse:
    """The masters."""
    http.query(request, ())
    node = current()
    found: MasterList = {
        "masters": [_master(node, e) for e in node.masters.all().values()]
    }
    return JsonResponse(found)


def lun_list(request: HttpRequest) -> HttpResponse:
    """The targets."""
    http.query(request, ())
    return JsonResponse(services.target_list(current()), safe=False)


def disk_create(request: HttpRequest) -> HttpResponse:
    """A disk: clone, empty or existing."""
    data = http.body(
        request,
        (
            "iqn",
            "master",
            "size",
            "filename",
            "existing",
            "import",
            "access",
            "chap",
        ),
    )
    size = data.get("size")
    if size is not None and not isinstance(size, str | int):
        raise Invalid(
            said("size {size} is not a size: write 40G or bytes.", size=repr(size)),
            field="size",
        )
    wanted = DiskRequest(
        iqn=http.text(data, "iqn", required=True) or "",
        master=http.text(data, "master"),
        size=size,
        existing=http.boolean(data, "existing"),
        import_=http.text(data, "import"),
        filename=http.text(data, "filename"),
        access=_access(data),
        chap=_chap(data),
    )
    node = current()
    wanted = creating.disk_request(node, wanted)
    return jobs.respond(
        request,
        node,
        lambda step: creating.disk_create(node, wanted, step),
        kind=creating.CREATE_DISK,
        key=wanted.iqn,
        same=wanted,
        about=wanted.told(),
    )


def cd_create(request: HttpRequest) -> HttpResponse:
    """An install CD."""
    data = http.body(request, ("iso", "iqn", "access", "chap"))
    wanted = CdRequest(
        iso=http.text(data, "iso", required=True) or "",
        iqn=http.text(data, "iqn"),
        access=_access(data),
        chap=_chap(data),
    )
    return JsonResponse(creating.cd_create(current(), wanted), status=201)


def disk_grow(request: HttpRequest) -> HttpResponse:
    """A larger disk."""
    data = http.body(request, ("iqn", "size"))
    size = data.get("size")
    if not isinstance(size, str | int):
        raise Invalid(
            said("size {size} is not a size: write 40G or bytes.", size=repr(size)),
            field="size",
        )
    iqn = http.text(data, "iqn", required=True) or ""
    return JsonResponse(growing.disk_grow(current(), iqn, size))


def disk_reset(request: HttpRequest) -> HttpResponse:
    """A disk back to its master."""
    data = http.body(request, ("iqn", "master"))
    iqn = http.text(data, "iqn", required=True) or ""
    master = http.text(data, "master", required=True) or ""
    node = current()
    return jobs.respond(
        request,
        node,
        lambda step: resetting.disk_reset(node, iqn, master, step),
        kind=resetting.RESET_DISK,
        key=iqn.lower(),
        same=(iqn.lower(), master),
        about={"iqn": iqn, "master": master},
        status=200,
    )


def scan(request: HttpRequest) -> HttpResponse:
    """Export what has no target."""
    http.query(request, ())
    data = http.body(request, ("access",))
    return JsonResponse(rebuild.scan(current(), access=_access(data)))


def access_set(request: HttpRequest) -> HttpResponse:
    """Who may log in to a target that is there."""
    http.query(request, ())
    data = http.body(request, ("iqn", "access", "chap", "force"))
    wanted = AccessRequest(
        iqn=http.text(data, "iqn", required=True) or "",
        access=check_access(http.text(data, "access", required=True) or ""),
        chap=_chap(data),
        force=http.boolean(data, "force"),
    )
    return JsonResponse(services.access_set(current(), wanted))


def target_delete(request: HttpRequest) -> HttpResponse:
    """Take a target off, with its image if asked."""
    given = http.query(request, ("iqn", "delete_file", "force"))
    http.body(request, ())
    done = deleting.target_delete(
        current(),
        http.text(given, "iqn", required=True) or "",
        delete_file=http.boolean(given, "delete_file"),
        force=http.boolean(given, "force"),
    )
    return JsonResponse(done)


def job_list(request: HttpRequest) -> HttpResponse:
    """Jobs, newest first."""
    given = http.query(request, ("state", "limit"))
    state = http.text(given, "state")
    if state is not None and state not in STATES:
        raise Invalid(
            said(
                "state {state} must be one of {choices}.",
                state=repr(state),
                choices=", ".join(STATES),
            ),
            field="state",
        )
    limit = http.whole(given, "limit", 100, low=1, high=_JOB_LIMIT)
    known = current().jobs
    found = known.all(state=state, limit=limit)
    return JsonResponse({"jobs": [known.told(job) for job in found]})


def job_get(request: HttpRequest, job_id: str) -> HttpResponse:
    """One job."""
    http.query(request, ())
    known = current().jobs
    return JsonResponse(known.told(known.get(job_id)))


def job_cancel(request: HttpRequest, job_id: str) -> HttpResponse:
    """Ask for the end of a job; it ends at its next step."""
    http.query(request, ())
    http.body(request, ())
    known = current().jobs
    return JsonResponse(known.told(known.cancel(job_id)), status=202)


def logs(request: HttpRequest) -> HttpResponse:
    """The node's log above `since`, oldest first; with `before` what lies below that id, newest first (0: the end)."""
    given = http.query(request, ("since", "before", "limit"))
    since = http.whole(given, "since", 0, low=0, high=1 << 62)
    limit = http.whole(given, "limit", 1000, low=1, high=_LOG_LIMIT)
    if "before" in given:
        before = http.whole(given, "before", 0, low=0, high=1 << 62)
        if since:
            raise Invalid(
                said("give either since or before, not both."), field="before"
            )
        return JsonResponse(current().log.read_back(before=before, limit=limit))
    return JsonResponse(current().log.read(since=since, limit=limit))


def _access(data: Mapping[str, Any]) -> str | None:
    mode = http.text(data, "access")
    return None if mode is None else check_access(mode)


def _chap(data: Mapping[str, Any]) -> Chap | None:
    """The name and secret of a body; what is wrong with them is said without the secret."""
    given = data.get("chap")
    if given is None:
        return None
    if (
        not isinstance(given, dict)
        or set(given) != {"username", "secret"}
        or not all(isinstance(value, str) for value in given.values())
    ):
        raise Invalid(
            said(
                "chap must be an object with the texts username and secret, and nothing else."
            ),
            field="chap",
        )
    return check_chap(given["username"], given["secret"])


def _master(node: Node, entry: Entry) -> Master:
    stamp = datetime.fromtimestamp(entry.mtime).astimezone()
    shown: Master = {
        "name": entry.name,
        "size": entry.size,
        "mtime": stamp.isoformat(timespec="seconds"),
    }
    if problem := node.masters.problem(entry):
        shown["problem"] = problem
    return shown
