"""What became of each worker of a batch: while it goes on, and after it, with the way to try again what failed."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.admin.utils import quote
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext as _t
from django.utils.translation import ngettext as _n

from ipxeready.actors import OPERATOR
from ipxeready.jobs import kinds
from ipxeready.jobs import selectors as job_selectors
from ipxeready.jobs.pages import seen
from ipxeready.storage.jobs import ENDED, Job
from ipxeready.web.actors import actor_of
from ipxeready.web.pages import may, page
from workers import batch_jobs, jobs, planning
from workers.choices import DiskType
from workers.pages.board_forms import KEEP
from workers.pages.chosen import written

#: Rows of the page; the others are counted.
LISTED = 500
#: Which question of the board leads to which kind of job.
_STEPS = {
    jobs.DISKS: "disks",
    jobs.DELETION: "delete",
    batch_jobs.BOOTS: "boot",
    batch_jobs.RESETS: "reset",
    batch_jobs.ACCESSES: "access",
}
_OUTCOMES = ("failed", "skipped", "succeeded")


@dataclass(frozen=True)
class Row:
    """One worker."""

    worker_id: str
    node: str
    outcome: str
    words: str
    url: str = ""


def show(request: HttpRequest, job_id: str) -> HttpResponse:
    """The rows of one batch; other jobs have their own page only."""
    job = job_selectors.job_get(actor=actor_of(request), job_id=job_id)
    plain = reverse("admin:job", args=[job.id])
    if job.kind not in _STEPS:
        return HttpResponseRedirect(plain)
    rows = _rows(job)
    wanted = request.GET.get("outcome", "")
    listed = [row for row in rows if wanted in ("", row.outcome)]
    may_change = may(request, OPERATOR)
    return page(
        request,
        "workers/board_job.html",
        {
            "job": seen(job),
            "open": job.state not in ENDED,
            "begun": "begun" in request.GET,
            "facts": _facts(rows),
            "rows": listed[:LISTED],
            "more": max(len(listed) - LISTED, 0),
            "outcomes": [(name, _name(name)) for name in _OUTCOMES],
            "wanted": wanted,
            "plain_url": plain,
            "may_change": may_change,
            "again": _again(job, rows) if job.state in ENDED and may_change else None,
            "again_url": reverse("admin:board_ask", args=[_STEPS[job.kind]]),
        },
        title=capfirst(kinds.name_of(job.kind)),
        trail=[(_t("Jobs"), reverse("admin:jobs"))],
    )


def _rows(job: Job) -> list[Row]:
    """Failed ones first; while the batch goes on, those of whom nothing is known yet have an empty outcome."""
    nodes = dict(_targets(job))
    result = job.result if isinstance(job.result, dict) else {}
    found: list[Row] = []
    for outcome in _OUTCOMES:
        entries = result.get(outcome)
        for entry in entries if isinstance(entries, list) else ():
            name = str(entry.get("worker_id", ""))
            words = entry.get("error") or entry.get("reason") or entry.get("iqn") or ""
            node = str(entry.get("agent") or nodes.get(name, ""))
            found.append(_row(name, node, outcome, str(words)))
    if found:
        return found
    if job.state in ENDED:  # it failed as a whole
        return [_row(name, node, "failed", "") for name, node in nodes.items()]
    return _under_way(job, nodes)


def _under_way(job: Job, nodes: dict[str, str]) -> list[Row]:
    """What the ledger says meanwhile: only new disks can be told one by one."""
    disks = {}
    if job.kind == jobs.DISKS:
        disks = planning.disks_present(list(nodes), str(job.about.get("os", "")))
    begun = set(job.about.get("begun", []))
    found = []
    for name, node in nodes.items():
        disk = disks.get(name)
        if disk is None:
            found.append(_row(name, node, "", _t("waits")))
        elif disk.status:
            found.append(_row(name, node, "", _t("is being made")))
        elif name in begun:
            found.append(_row(name, node, "succeeded", disk.iqn))
        else:
            found.append(_row(name, node, "skipped", _t("has such a disk already")))
    return found


def _row(name: str, node: str, outcome: str, words: str) -> Row:
    address = reverse("admin:workers_worker_change", args=[quote(name)]) if name else ""
    return Row(name, node, outcome, words, address)


def _targets(job: Job) -> list[tuple[str, str]]:
    """Worker and node of each; only new disks are about nodes."""
    if job.kind == jobs.DISKS:
        return [(str(name), str(node)) for name, node in job.about.get("targets", [])]
    return [(str(name), "") for name in job.about.get("worker_ids", [])]


def _facts(rows: list[Row]) -> list[str]:
    """How many of each outcome."""
    number = {name: sum(row.outcome == name for row in rows) for name in _OUTCOMES}
    n = number["succeeded"]
    found = [_n("%(n)s succeeded", "%(n)s succeeded", n) % {"n": n}]
    if n := number["skipped"]:
        found.append(_n("%(n)s skipped", "%(n)s skipped", n) % {"n": n})
    if n := number["failed"]:
        found.append(_n("%(n)s failed", "%(n)s failed", n) % {"n": n})
    return found


def _name(outcome: str) -> str:
    return {
        "failed": _t("Failed"),
        "skipped": _t("Skipped"),
        "succeeded": _t("Succeeded"),
    }[outcome]


def _again(job: Job, rows: list[Row]) -> dict[str, str] | None:
    """The fields of the question that leads to the same work for those that failed; None when none did."""
    failed = {row.worker_id: row.node for row in rows if row.outcome == "failed"}
    if not failed:
        return None
    return {"chosen": written(failed), **_said(job)}


def _said(job: Job) -> dict[str, str]:
    """What the form said."""
    about = job.about
    if job.kind == jobs.DISKS:
        source = about.get("source") or {}
        told = {"os": about.get("os"), "type": source.get("type")}
        if source.get("type") == DiskType.EMPTY:
            told["size"] = source.get("size")
        elif source.get("type") == DiskType.MASTER:
            told["name"] = source.get("name")
    elif job.kind == batch_jobs.BOOTS:
        told = {"default_os": KEEP, "menu_default": KEEP}
        for name, field in (("os", "default_os"), ("menu_default", "menu_default")):
            if name in about:
                told[field] = about[name] or ""
        if "menu_timeout" in about:
            timeout = about["menu_timeout"]
            told["clear_timeout" if timeout is None else "menu_timeout"] = (
                "on" if timeout is None else timeout
            )
    else:
        told = {key: value for key, value in about.items() if key != "worker_ids"}
    return {
        key: "on" if value is True else str(value)
        for key, value in told.items()
        if value not in (None, False) and isinstance(value, str | int | bool)
    }
