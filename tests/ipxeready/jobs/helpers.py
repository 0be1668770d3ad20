"""Jobs of tests: work that waits for the test, and looking at a job until it has ended."""

from __future__ import annotations

import threading
import time
from typing import Any

from rest_framework.test import APIClient

from ipxeready.jobs.services import Work
from ipxeready.jobs.watch import Watch

ASYNC = {"headers": {"Prefer": "respond-async"}}


class Told(Watch):
    """Writes down how far work is."""

    def __init__(self, told: list[int]) -> None:
        self.told = told

    def at(self, done: int, total: int | None = None) -> None:
        self.told.append(done)


class Slow:
    """Work that begins, and goes on when the test says so."""

    def __init__(
        self, kind: str = "test.slow", *, stubborn: bool = False, **about: Any
    ) -> None:
        self.stubborn = stubborn
        self.begun = threading.Event()
        self.go = threading.Event()
        self.watch: Watch | None = None
        self.work = Work(kind=kind, do=self._do, about=about, total=2)

    def _do(self, watch: Watch) -> dict[str, Any]:
        self.watch = watch
        self.begun.set()
        while not self.go.wait(0.02):
            if watch.cancelled() and not self.stubborn:
                watch.at(1)
                return {"stopped": True}
        watch.at(2)
        return {"made": True}


def ended(client: APIClient, location: str, seconds: float = 20) -> dict[str, Any]:
    """The job at an address once it has ended."""
    until = time.monotonic() + seconds
    while True:
        answer = client.get(location)
        assert answer.status_code == 200, answer.content
        job: dict[str, Any] = answer.json()
        if job["ended"]:
            return job
        assert time.monotonic() < until, job
        time.sleep(0.02)
