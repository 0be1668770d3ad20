"""What a page costs does not grow with the room: questions to the index, rows it gives, files that are opened.

Times would depend on the machine; these are the same everywhere. `make bench` has the times.
"""

from __future__ import annotations

import json
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.db.backends.sqlite3.base import SQLiteCursorWrapper
from django.test import Client

from ipxeready.actors import SYSTEM
from ipxeready.index import freshness
from ipxeready.storage.paths import Layout
from ipxeready.users import services
from tests.bench import data
from tests.site_map import There, places

PASSWORD = "correct horse battery"
#: Both more than a list shows at once.
SMALL, LARGE = 250, 1000
THERE = There(
    values={
        "agent_id": ("node-1",),
        "worker_id": ("worker-02",),
        "os": ("ubuntu",),
        "job_id": ("20261130-100000-0123abcd",),
        "app_label": ("workers",),
        "token_id": ("a00000000001",),
        "username": ("alice",),
        "what": ("disks",),
        "content_type_id": ("1",),
        "upload_id": ("0123456789abcdef0123456789abcdef",),
        "url": ("nothing",),
        "below": ("boot",),
        "number": ("1",),
    },
    objects={
        "agents/agent": ("node-1",),
        "workers/worker": ("worker-02",),
        "users/operator": ("alice",),
        "bootvars/setting": ("auto_register",),
        "audit/operation": ("1",),
        "r": ("1",),
    },
)
#: They lead elsewhere, end the session, or take no GET.
NOT_PAGES = frozenset({"login", "logout", "view_on_site", "jsi18n", "autocomplete"})
#: No pages: the board asks for the names of all workers that its filters find.
ALL_OF_THEM = frozenset({"board_ids"})
#: What asks for more than a plain visit does.
QUERIES = (
    "/admin/workers/worker/?q=worker-0",
    "/admin/workers/worker/?state=ready",
    "/admin/workers/worker/?has_disk=false",
    "/admin/workers/worker/?o=-1",
    "/admin/workers/worker/?p=2",
    "/admin/audit/operation/?q=worker-02",
)

_opened: Counter[str] | None = None
_here = threading.local()


def _hear(event: str, args: tuple[Any, ...]) -> None:
    if event == "open" and _opened is not None and getattr(_here, "counts", False):
        path = args[0]
        if isinstance(path, str | Path):
            _opened[str(path)] += 1


@pytest.fixture(scope="module", autouse=True)
def ears() -> None:
    """An audit hook stays for the life of the process; it hears only while something is measured."""
    sys.addaudithook(_hear)


@contextmanager
def measured(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Counts `statements`, `rows` and `files` (those of the root) of the block."""
    global _opened
    found: Counter[str] = Counter()
    connection.ensure_connection()
    connection.connection.set_trace_callback(
        lambda text: found.update(statements=not text.startswith("--"))
    )

    def counted(name: str) -> Callable[..., Any]:
        plain = getattr(SQLiteCursorWrapper, name)

        def fetch(self: Any, *args: Any) -> Any:
            rows = plain(self, *args)
            found["rows"] += len(rows) if isinstance(rows, list) else rows is not None
            return rows

        return fetch

    with monkeypatch.context() as patch:
        for name in ("fetchmany", "fetchall", "fetchone"):
            patch.setattr(SQLiteCursorWrapper, name, counted(name), raising=False)
        _opened = Counter()
        _here.counts = True
        try:
            yield found
        finally:
            _here.counts = False
            connection.connection.set_trace_callback(None)
            below = [path for path in _opened.elements() if path.startswith(str(root))]
            found["files"] = len(below)
            _opened = None


def _fill(layout: Layout, workers: int) -> None:
    data.make_root(layout.root, workers, node_port=9)
    freshness.ensure_fresh(wait=True)


def _costs(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> dict[str, Counter[str]]:
    client = Client()
    form = {"username": "alice", "password": PASSWORD}
    assert client.post("/admin/login/", form).status_code == 302
    found = {}
    pages = [
        place.path
        for place in places(THERE, below="admin/")
        if place.name not in NOT_PAGES | ALL_OF_THEM
    ]
    for address in (*pages, *QUERIES):
        client.get(address)  # what is computed once for all is there now
        with measured(layout.root, monkeypatch) as cost:
            answer = client.get(address)
        if answer.status_code == 200:
            found[address] = cost
    return found


def test_no_page_costs_more_in_a_larger_room(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    services.user_create(
        actor=SYSTEM, username="alice", password=PASSWORD, role="administrator"
    )
    lines = [
        {"id": number, "ts": "2026-11-30T10:00:00+00:00", "op": "create_worker"}
        for number in range(2, 300)
    ]
    with layout.operations.open("a") as file:
        file.writelines(json.dumps({**line, "status": "ok"}) + "\n" for line in lines)
    _fill(layout, SMALL)
    small = _costs(layout, monkeypatch)
    _fill(layout, LARGE)
    large = _costs(layout, monkeypatch)
    assert len(small) > 20
    assert small.keys() == large.keys()
    grown = {
        address: (dict(small[address]), dict(cost))
        for address, cost in large.items()
        # One row or file more is a note of the moment, not of the room.
        if any(cost[name] > small[address][name] + 1 for name in cost)
    }
    assert not grown, json.dumps(grown, indent=1)
