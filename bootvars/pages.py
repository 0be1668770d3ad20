"""What boots put on the pages of workers: the switch for unknown machines, and what a machine will be told."""

from __future__ import annotations

from django.http import HttpRequest
from django.urls import reverse

from bootvars.preview import previews
from bootvars.runtime import auto_register_enabled
from ipxeready.actors import OPERATOR
from ipxeready.web.actors import actor_of
from ipxeready.web.pages import may
from workers.models import Worker
from workers.pages.parts import Part


def switch_part(request: HttpRequest) -> Part:
    """Whether unknown machines are registered, above the list of workers."""
    return Part(
        "bootvars/switch.html",
        {
            "enabled": auto_register_enabled(),
            "may_change": may(request, OPERATOR),
            "action": reverse("admin:bootvars_setting_changelist"),
            "next": reverse("admin:workers_worker_changelist"),
        },
    )


def boot_part(request: HttpRequest, worker: Worker) -> Part:
    """The boot variables of a worker as its firmware will see them."""
    found = previews(actor=actor_of(request), worker=worker)
    return Part("bootvars/boot.html", {"previews": found})
