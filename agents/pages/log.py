"""A node's own log, the newest first."""

from __future__ import annotations

import json
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext as _

from agents import node_log, nodes
from agents.pages.common import find, moment, trail
from agents.together import patience
from ipxeready.errors import ApplicationError
from ipxeready.web.actors import actor_of
from ipxeready.web.pages import page
from ipxeready.web.words import in_words

#: Lines of one page.
PAGE = 100
_PLAIN = ("id", "ts", "op", "status")
_BAD = ("failed", "rollback")


def log(request: HttpRequest, agent_id: str) -> HttpResponse:
    """`before` is the number of a line: what is older than it."""
    agent = find(agent_id)
    actor = actor_of(request)
    text = request.GET.get("before", "")
    before = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0
    found: dict[str, Any] = {}
    error = ""
    try:
        found = node_log.node_log(
            actor=actor,
            agent_id=agent.id,
            before=before,
            limit=PAGE,
            timeout=patience(),
        )
    except ApplicationError as caught:
        error = in_words(nodes.words_of(caught))
    return page(
        request,
        "agents/log.html",
        {
            "agent": agent,
            "entries": [_entry(each) for each in found.get("entries", [])],
            "older": found.get("next_cursor", 0),
            "newest": not before,
            "error": error,
        },
        title=_("Log of %(node)s") % {"node": agent.id},
        trail=trail(agent),
    )


def _entry(line: dict[str, Any]) -> dict[str, Any]:
    status = str(line.get("status", ""))
    return {
        "id": line.get("id"),
        "at": moment(line.get("ts")),
        "ts": line.get("ts", ""),
        "op": line.get("op", ""),
        "status": status,
        "bad": status in _BAD,
        "fields": [
            (
                name,
                value
                if isinstance(value, str)
                else json.dumps(value, ensure_ascii=False),
            )
            for name, value in line.items()
            if name not in _PLAIN
        ],
    }
