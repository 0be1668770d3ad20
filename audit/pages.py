"""The pages of the audit trail: the list that goes back as far as one scrolls, one entry, the export; nothing can be changed."""

from __future__ import annotations

import json
import re
from typing import Any

from django.contrib.admin.utils import quote
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase, StreamingHttpResponse
from django.urls import NoReverseMatch, URLPattern, path, reverse
from django.utils import timezone
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from audit import selectors
from audit.choices import STATUSES
from audit.export import CSV, TYPES, export
from audit.filters import NAMES, OperationFilter
from audit.models import Operation
from audit.wanted import Wanted
from ipxeready.errors import Invalid
from ipxeready.web.pages import page, page_view
from ipxeready.web.text import visible

#: Entries of one page, and how long one page looks through the file for them.
PAGE = 100
PATIENCE = 0.5
#: Seconds for finding the neighbours of an entry.
_GLANCE = 0.2
#: New entries are counted up to here.
MOST_NEWER = 1000
_SUMMARY = 160
#: Lines of one value on the page of an entry.
_MOST_LINES = 1000
_NUMBER = re.compile(r"[0-9]{1,18}")
_JOB = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{8}")
#: Fields of a line that have a column of their own.
_COLUMNS = frozenset(
    {"id", "ts", "op", "status", "worker_id", "agent", "client", "user"}
)
_STATUSES: dict[str, Any] = {
    "started": _("started"),
    "ok": _("ok"),
    "failed": _("failed"),
    "rollback": _("taken back"),
}
_BAD = frozenset({"failed", "rollback"})
_NAMES: dict[str, Any] = {
    "id": _("number"),
    "ts": _("time"),
    "op": _("operation"),
    "status": _("status"),
    "worker_id": _("worker"),
    "agent": _("node"),
    "user": _("user"),
    "client": _("from address"),
    "job": _("job"),
    "error": _("error"),
    "reason": _("reason"),
}


def urls() -> list[URLPattern]:
    """The addresses of these pages below those of the model."""
    return [
        path("", page_view(trail), name="audit_operation_changelist"),
        path("newer/", page_view(newer), name="audit_operation_newer"),
        path("export/", page_view(download), name="audit_operation_export"),
        *(
            path(
                f"<str:number>/{end}/", page_view(entry), name=f"audit_operation_{name}"
            )
            for end, name in (("change", "change"), ("history", "history"))
        ),
    ]


def trail(request: HttpRequest) -> HttpResponse:
    """The newest entries, or those before or after one."""
    form = _form(request)
    wanted = form.wanted()
    before, after = (_number(request.GET.get(name, "")) for name in ("before", "after"))
    top = selectors.newest()
    if after is not None:
        found = selectors.forwards(wanted, since=after, limit=PAGE, patience=PATIENCE)
        rows = found.rows[::-1]
        newer, older = found.more, bool(rows) and rows[-1].pk > 1
        cursor = rows[-1].pk if rows else after + 1
    else:
        found = selectors.backwards(
            wanted, before=before, limit=PAGE, patience=PATIENCE
        )
        rows = found.rows
        newer, older, cursor = before is not None, found.more, found.cursor
    filters = _filters(request)
    return page(
        request,
        "audit/trail.html",
        {
            "form": form,
            "rows": _shown_rows(rows),
            "filtered": bool(filters),
            "export_query": filters.urlencode(),
            "statuses": _choices(
                STATUSES, selectors.occurring("status"), wanted.status
            ),
            "operations": _choices((), selectors.occurring("op"), wanted.op),
            "agents": selectors.occurring("agent"),
            "users": selectors.occurring("user"),
            "newer": rows[0].pk if newer and rows else None,
            "at_top": not newer,
            "older": cursor if older else None,
            "looked_back": cursor if older and len(rows) < PAGE else None,
            "top": top,
        },
        title=_t("Operations"),
    )


def newer(request: HttpRequest) -> HttpResponse:
    """How many entries came after `since`, in words for the page that is open."""
    since = _number(request.GET.get("since", "")) or 0
    count = selectors.newer(_form(request).wanted(), since=since, most=MOST_NEWER)
    words = ngettext(
        "%(count)s newer entry, show", "%(count)s newer entries, show", count
    )
    return JsonResponse({"count": count, "words": words % {"count": count}})


def entry(request: HttpRequest, number: str) -> HttpResponse:
    """All that one line says, and the lines of the same worker around it."""
    pk = _number(number)
    row = selectors.operation(pk) if pk is not None else None
    if row is None:
        raise Http404
    previous = following = None
    further = False
    if row.worker_id:
        same = Wanted(worker_id=row.worker_id)
        earlier = selectors.backwards(same, before=row.pk, limit=1, patience=_GLANCE)
        later = selectors.forwards(same, since=row.pk, limit=1, patience=_GLANCE)
        previous, following = (next(iter(each.rows), None) for each in (earlier, later))
        further = previous is None and earlier.more
    return page(
        request,
        "audit/entry.html",
        {
            "entry": _shown_rows([row])[0],
            "fields": _fields(row),
            "previous": previous,
            "following": following,
            "further": further,
        },
        title=_t("Operation %(number)s") % {"number": row.pk},
        trail=[(_t("Operations"), reverse("admin:audit_operation_changelist"))],
    )


def download(request: HttpRequest) -> HttpResponseBase:
    """All entries that the filters match, as a file."""
    form = request.GET.get("format", CSV)
    if form not in TYPES:
        raise Http404
    filters = _form(request)
    for field, errors in filters.errors.items():
        # All of it instead would be taken for what was asked for.
        raise Invalid(" ".join(map(str, errors)), field=field)
    answer = StreamingHttpResponse(
        export(form, filters.wanted()), content_type=TYPES[form]
    )
    name = f"operations-{timezone.localdate().isoformat()}.{form}"
    answer["Content-Disposition"] = f'attachment; filename="{name}"'
    return answer


def _form(request: HttpRequest) -> OperationFilter:
    data = request.GET.copy()
    if "q" in data:
        # What the lists of Django's admin call a search, and links of ours did.
        data.setdefault("search", request.GET.get("q"))
    return OperationFilter(data)


def _filters(request: HttpRequest) -> Any:
    """The parameters that filter, as they are in the address."""
    data = request.GET.copy()
    for name in list(data):
        if name not in (*NAMES, "q") or not data[name]:
            del data[name]
    return data


def _number(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) else None


def _choices(
    known: tuple[str, ...], occurring: list[str], chosen: str
) -> list[dict[str, Any]]:
    """What a list offers: known values in their order, others that occur, and what is chosen in any case."""
    values = [*known, *(value for value in occurring if value not in known)]
    if chosen and chosen not in values:
        values.append(chosen)
    return [
        {
            "value": value,
            "words": _STATUSES.get(value, value) if known else value,
            "chosen": value == chosen,
        }
        for value in values
    ]


def _shown_rows(rows: list[Operation]) -> list[dict[str, Any]]:
    """Rows for a template: with addresses where worker and node are still there."""
    workers = selectors.existing("workers", {row.worker_id for row in rows})
    agents = selectors.existing("agents", {row.agent for row in rows})
    return [
        {
            "id": row.pk,
            "url": reverse("admin:audit_operation_change", args=[row.pk]),
            "time": row.ts,
            "ts": row.data.get("ts", ""),
            "op": row.op,
            "status": _STATUSES.get(row.status, row.status),
            "bad": row.status in _BAD,
            "worker": row.worker_id,
            "worker_url": _address("workers_worker", row.worker_id, workers),
            "agent": row.agent,
            "agent_url": _address("agents_agent", row.agent, agents),
            "user": row.user,
            "client": row.client,
            "summary": _summary(row.data),
        }
        for row in rows
    ]


def _address(model: str, key: str, there: set[str]) -> str:
    if key not in there:
        return ""
    try:
        return reverse(f"admin:{model}_change", args=[quote(key)])
    except NoReverseMatch:
        return ""


def _summary(data: dict[str, Any]) -> str:
    """What else the line says, in short."""
    return ", ".join(
        f"{key}: {_text(value)[:_SUMMARY]}"
        for key, value in data.items()
        if key not in _COLUMNS
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _fields(row: Operation) -> list[dict[str, Any]]:
    """Name and value of everything in the line: first what every line has."""
    names = [name for name in _NAMES if name in row.data]
    names += [name for name in row.data if name not in _NAMES]
    return [_field(name, row.data[name]) for name in names]


def _field(name: str, value: object) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": _NAMES.get(name),
        "key": name,
        "value": value if isinstance(value, str) else _text(value),
    }
    if isinstance(value, dict | list) and value:
        lines = json.dumps(value, ensure_ascii=False, indent=2).splitlines()
        found["lines"] = "\n".join(visible(line) for line in lines[:_MOST_LINES])
        if len(lines) > _MOST_LINES:
            found["lines"] += "\n…"
    if name == "job" and isinstance(value, str) and _JOB.fullmatch(value):
        found["url"] = reverse("admin:job", args=[value])
    return found
