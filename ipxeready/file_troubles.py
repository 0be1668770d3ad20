"""What is wrong with the files themselves: broken ones, problems in records, secrets that others can read."""

from __future__ import annotations

from collections.abc import Iterator

from django.conf import settings
from django.contrib.admin.utils import quote
from django.db.models import Count
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from ipxeready import index
from ipxeready.index.kept import Kept
from ipxeready.index.models import Problem
from ipxeready.said import joined
from ipxeready.storage.exposed import exposed
from ipxeready.web.troubles import (
    NAMED,
    Item,
    Kind,
    Trouble,
    kind,
    kind_of_code,
    many,
    trouble_source,
)
from workers.models import Worker

BROKEN = kind(
    "file.broken",
    title=ngettext_lazy(
        "%(count)s file cannot be read: its last good content counts, and nothing is written to it",
        "%(count)s files cannot be read: their last good content counts, and nothing is written to them",
        "count",
    ),
    mend=_(
        "Mend the line that is named, or put the file back from state/backup. It counts from the next request on."
    ),
    codes=("file.broken",),
)
UNFINISHED = kind(
    "file.unfinished",
    title=ngettext_lazy(
        "%(count)s file was edited by hand while a write of ours was cut short",
        "%(count)s files were edited by hand while a write of ours was cut short",
        "count",
    ),
    mend=_(
        "Take over what is missing from the .unfinished file beside it, then remove that one."
    ),
    codes=("file.unfinished",),
)
RECORD = kind(
    "record.broken",
    title=ngettext_lazy(
        "%(count)s record is not valid: its last good content counts",
        "%(count)s records are not valid: their last good content counts",
        "count",
    ),
    mend=_("Mend the record in the file. It counts from the next request on."),
    codes=("record.broken",),
)
OTHER = kind(
    "file.problem",
    title=ngettext_lazy(
        "%(count)s problem in the files", "%(count)s problems in the files", "count"
    ),
    mend=_("Mend the line that is named in the file."),
)
SECRET = kind(
    "secret.exposed",
    title=ngettext_lazy(
        "%(count)s file with secrets can be read by others",
        "%(count)s files with secrets can be read by others",
        "count",
    ),
    mend=_(
        "Run chmod 600 on it as its owner. If somebody may have read it, change what it holds."
    ),
    codes=("chap.mode",),
)


def sources() -> Iterator[Trouble]:
    """All of it."""
    yield from _problems()
    yield from many(SECRET, open_secrets(), Item)


def open_secrets() -> list[str]:
    """Files with secrets that others can read, with their modes."""
    layout = settings.IPXE_LAYOUT
    paths = (
        layout.agents_yml,
        layout.users_yml,
        layout.chap_secrets_yml,
        layout.cp_token,
        layout.agent_token,
        layout.secret_key,
        layout.first_login,
    )
    return [
        f"{path}: {mode:04o}" for path in paths if (mode := exposed(path)) is not None
    ]


def _find_problems() -> tuple[Trouble, ...]:
    counts: dict[Kind, int] = {}
    items: dict[Kind, list[Item]] = {}
    by_code = Problem.objects.order_by("code").values_list("code")
    for code, count in by_code.annotate(number=Count("pk")):
        what = kind_of_code(code) or OTHER
        if what is SECRET:
            continue  # all such files are looked at
        counts[what] = counts.get(what, 0) + count
        rows = index.problems().filter(code=code)[:NAMED]
        items.setdefault(what, []).extend(_item(row) for row in rows)
    return tuple(
        Trouble(what, count, tuple(items[what][:NAMED]))
        for what, count in counts.items()
    )


_problems = Kept(_find_problems)


def _item(problem: Problem) -> Item:
    if problem.code.startswith("file."):
        return Item(problem.message)  # names the file itself
    place = problem.source + (f":{problem.line}" if problem.line else "")
    return Item(joined(" ", place, problem.message), _page_of(problem))


def _page_of(problem: Problem) -> str:
    """The page of the worker that it is about, where there is one."""
    if not Worker.objects.filter(pk=problem.record).exists():
        return ""
    try:
        return reverse("admin:workers_worker_change", args=[quote(problem.record)])
    except NoReverseMatch:
        return ""


def register() -> None:
    """Add them to what is wrong."""
    trouble_source(sources)
