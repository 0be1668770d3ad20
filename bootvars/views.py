"""GET /boot-vars: what firmware asks, always 200 and never an error page."""

from __future__ import annotations

import json
import logging
import threading
from typing import Any

from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed

from agents import seen
from bootvars.credentials import Caller
from bootvars.render import as_json, script
from bootvars.services import Answer, boot_vars
from ipxeready import index
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
        return HttpResponseNotAllowed(["GET", "HEAD"], content_type="text/plain")
    try:
        query = request.GET
    except Exception:  # noqa: BLE001 - whatever Django makes of a query, firmware gets a script
        reason = "the parameters of the request cannot be read"
        return _response(_body(Answer(refused=reason), False), False)
    macs = query.getlist("mac")
    hostnames = query.getlist("hostname")
    wants_json = query.get("format") == "json"
    key = (tuple(macs), tuple(hostnames), wants_json)
    # First of all, before the index is touched: a room that is switched on asks again and again.
    body = _known(_token(), key)
    if body is not None:
        return _response(body, wants_json)
    _refresh()
    token = _token()
    answer = _answer(request, macs, hostnames, wants_json)
    body = _body(answer, wants_json)
    if answer.plain and token is not None:
        _keep(token, key, body)
    return _response(body, wants_json)


def _refresh() -> None:
    """Bring the index up to date; a boot goes on with the last good one."""
    try:
        index.ensure_fresh()
    except Exception:
        log.exception(
            "the index could not be refreshed; boots go on with the last good one"
        )


def _known(token: Any, key: Any) -> bytes | None:
    """The answer that was made from just these files."""
    if token is None:
        return None
    with _guard:
        known: bytes | None = (
            _kept["bodies"].get(key) if _kept["token"] == token else None
        )
    return known


def _token() -> Any:
    """Identifies all that a plain answer is made from; None while that is not certain."""
    files = settled()
    return None if files is None else (files, seen.stamp())


def _body(answer: Answer, wants_json: bool) -> bytes:
    text = json.dumps(as_json(answer)) if wants_json else script(answer)
    return text.encode("ascii", "replace")


def _answer(
    request: HttpRequest, macs: list[str], hostnames: list[str], wants_json: bool
) -> Answer:
    try:
        return boot_vars(
            actor=firmware(client_address(request)),
            macs=macs,
            hostnames=hostnames,
            changes=request.method == "GET",
            caller=Caller.of(request.META, script=not wants_json),
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
