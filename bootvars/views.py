"""GET /boot-vars: what firmware asks, always 200 and never an error page."""

from __future__ import annotations

import json
import logging
import threading
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed

from bootvars.render import as_json, script
from bootvars.services import Answer, boot_vars
from ipxeready.actors import firmware
from ipxeready.index.freshness import settled
from ipxeready.web.actors import client_address

log = logging.getLogger(__name__)

_guard = threading.Lock()
#: Finished answers while the files stand: token, and body by the request's words.
_kept: dict[str, Any] = {"token": None, "bodies": {}}
_MOST = 50_000


def view(request: HttpRequest) -> HttpResponse:
    """The script, or JSON when `format=json` says so; `Accept` is ignored."""
    if request.method not in ("GET", "HEAD"):
        return HttpResponseNotAllowed(["GET", "HEAD"])
    macs = request.GET.getlist("mac")
    hostnames = request.GET.getlist("hostname")
    wants_json = request.GET.get("format") == "json"
    key = (tuple(macs), tuple(hostnames), wants_json)
    token = settled()
    if token is not None:
        with _guard:
            body = _kept["bodies"].get(key) if _kept["token"] == token else None
        if body is not None:
            return _response(body, wants_json)
    answer = _answer(request, macs, hostnames)
    body = (json.dumps(as_json(answer)) if wants_json else script(answer)).encode(
        "ascii", "replace"
    )
    if answer.plain and token is not None:
        _keep(token, key, body)
    return _response(body, wants_json)


def _answer(request: HttpRequest, macs: list[str], hostnames: list[str]) -> Answer:
    try:
        return boot_vars(
            actor=firmware(client_address(request)),
            macs=macs,
            hostnames=hostnames,
            changes=request.method == "GET",
        )
    except Exception:
        # Firmware must never see an error page: the machine says what to do and tries again.
        log.exception("boot-vars failed")
        return Answer(refused="internal error of the control plane: see its log")


def _keep(token: Any, key: Any, body: bytes) -> None:
    if sum(len(word) for part in key[:2] for word in part) > 200:
        return
    with _guard:
        if _kept["token"] != token or len(_kept["bodies"]) >= _MOST:
            _kept["token"], _kept["bodies"] = token, {}
        _kept["bodies"][key] = body


def _response(body: bytes, wants_json: bool) -> HttpResponse:
    kind = "application/json" if wants_json else "text/plain"
    return HttpResponse(
        body,
        content_type=kind,
        headers={"Content-Length": str(len(body)), "Cache-Control": "no-store"},
    )
