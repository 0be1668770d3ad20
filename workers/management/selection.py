"""Which workers a command is about: ids and ranges, filters, or all."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from ipxeready.errors import Invalid, NotFound
from ipxeready.shell import Usage, words
from workers import selectors
from workers.filters import filtered
from workers.models import Worker
from workers.ranges import expand_all

#: Filters of the API's list that choose; `ordering` does not.
WHERE = ("state", "os", "agent", "has_disk", "search")
#: Names in one message; more are counted only.
_NAMED = 20


def add_selection(parser: ArgumentParser) -> None:
    """The arguments that `selected` reads."""
    parser.add_argument(
        "workers",
        nargs="*",
        metavar="WORKER",
        help="ids, also as ranges such as 'lab-[01-30]'",
    )
    parser.add_argument(
        "--where",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help=f"only workers that this filter of the API finds: {', '.join(WHERE)}; "
        "several narrow down",
    )
    parser.add_argument(
        "--all",
        action="store_true",
        help="all workers, where no id and no filter is given",
    )


def selected(options: dict[str, Any]) -> list[Worker]:
    """The workers in the order given, else by id; NotFound names every id that is not there."""
    where = _where(options["where"])
    if options["all"] == bool(options["workers"] or where):
        raise Usage("give worker ids, --where or --all (alone)")
    try:
        names = expand_all(name.lower() for name in options["workers"])
        rows = filtered(where)
    except Invalid as error:
        raise Usage(words(error)) from None
    if not names:
        return list(rows)
    known = {worker.worker_id: worker for worker in selectors.workers()}
    missing = [name for name in names if name not in known]
    if missing:
        more = len(missing) - _NAMED
        raise NotFound(
            f"there is no worker {', '.join(repr(name[:80]) for name in missing[:_NAMED])}"
            + (f" and {more} more" if more > 0 else "")
            + "; nothing was changed"
        )
    if where:
        kept = set(rows.values_list("worker_id", flat=True))
        names = [name for name in names if name in kept]
    return [known[name] for name in names]


def _where(pairs: list[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        name = name.replace("-", "_")
        if not equals or name not in WHERE:
            raise Usage(f"--where {pair!r}: must be NAME=VALUE of {', '.join(WHERE)}")
        if name in found:
            raise Usage(f"--where {name}: is given more than once")
        found[name] = value
    return found
