"""What other apps put on the pages of workers: this app may not know those that come after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.http import HttpRequest

from workers.models import Worker


@dataclass(frozen=True)
class Part:
    """A template and what it shows, as `part`."""

    template: str
    context: dict[str, Any] = field(default_factory=dict)


#: Above the list of workers.
LIST_PARTS: list[Callable[[HttpRequest], Part]] = []
#: On the page of a worker.
WORKER_PARTS: list[Callable[[HttpRequest, Worker], Part]] = []
