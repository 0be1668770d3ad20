"""What the apps say of their kinds of jobs: a name for people, and how one that lost its process is ended."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.urls import reverse

from ipxeready.storage.jobs import Job, Running

#: Ends an abandoned job (`finish`, `fail`, `cancel`), or leaves it open when that cannot be told yet: it is asked again.
Recovery = Callable[[Running], None]

#: Why an abandoned job failed whose kind knows nothing better.
RESTARTED = (
    "the service was restarted while this was under way; look at what is there, "
    "then send it again"
)

_recoveries: dict[str, Recovery] = {}
_names: dict[str, Any] = {}
_pages: dict[str, str] = {}


def recover(
    kind: str, function: Recovery, *, name: Any = None, page: str | None = None
) -> None:
    """Have abandoned jobs of a kind ended by a function; `name` (translatable) is what pages call the kind.

    `page` is the name of an address that shows more of such a job, by its id.
    """
    _recoveries[kind] = function
    if page is not None:
        _pages[kind] = page
    if name is not None:
        _names[kind] = name


def recovery_of(kind: str) -> Recovery:
    """How an abandoned job of that kind is ended: without a better way it has failed."""
    return _recoveries.get(kind, lost)


def lost(running: Running) -> None:
    """End a job of which nobody knows how far it came."""
    running.fail(status=503, detail=RESTARTED)


def name_of(kind: str) -> str:
    """What people call the kind."""
    return str(_names.get(kind, kind))


def page_of(job: Job) -> str | None:
    """The address of the page that its app has for such a job."""
    name = _pages.get(job.kind)
    return reverse(name, args=[job.id]) if name else None
