"""Long work that failed lately."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from django.urls import reverse
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext_lazy

from ipxeready.jobs import kinds
from ipxeready.jobs.selectors import store
from ipxeready.jobs.services import refusal_of
from ipxeready.storage.jobs import FAILED, Job
from ipxeready.web.troubles import Item, Trouble, kind, many

#: What is older has been seen.
LATELY: Final = timedelta(hours=24)
#: Below, the request was refused.
_FAULT: Final = 500

FAILED_LATELY = kind(
    "job.failed",
    title=ngettext_lazy(
        "%(count)s job failed in the last day",
        "%(count)s jobs failed in the last day",
        "count",
    ),
    mend=_("Its page says why. When that is mended, start it again."),
    grave=False,
)


def sources() -> Iterator[Trouble]:
    """Jobs begun within the last day that failed, newest first. One that was refused is no trouble of the site: whoever asked was told."""
    recent = store().since(datetime.now() - LATELY)
    failed = [job for job in recent if job.state == FAILED and not _refused(job)]
    url = f"{reverse('admin:jobs')}?state={FAILED}"
    yield from many(FAILED_LATELY, failed, _item, url=url)


def _refused(job: Job) -> bool:
    status = (job.error or {}).get("status")
    return isinstance(status, int) and status < _FAULT


def _item(job: Job) -> Item:
    words = f"{kinds.name_of(job.kind)}: {refusal_of(job)[1]}"
    return Item(words, reverse("admin:job", args=[job.id]))
