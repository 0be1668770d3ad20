"""Callers that want the same thing at the same moment."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection
from rest_framework.test import APIClient

from ipxeready.storage.paths import Layout
from tests.workers.helpers import ledger, live_hosts

Call = Callable[[], Any]


def at_once(*calls: Call) -> list[Any]:
    """All results, in order."""
    ready = threading.Barrier(len(calls))

    def run(call: Call) -> Any:
        ready.wait(20)
        try:
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def consistent(layout: Layout) -> None:
    """One line a MAC, one line a name, a worker for each."""
    lines = [line.split(",") for line in live_hosts(layout)]
    for column in (0, 1):
        assert max(Counter(line[column] for line in lines).values(), default=1) == 1
    assert {line[1] for line in lines} <= {
        record["hostname"] for record in ledger(layout).values()
    }


def test_a_mac_that_is_moved_while_it_registers(
    api: APIClient, layout: Layout, worker: Callable[..., Any]
) -> None:
    for number in range(8):
        worker(f"pc{number}")
        mac = f"52:54:00:00:09:{number:02x}"
        moved, booted = at_once(
            lambda n=number, m=mac: api.put(f"/workers/pc{n}/mac", {"mac": m}),
            lambda m=mac: api.get(f"/boot-vars?mac={m}"),
        )
        script = booted.content.decode()
        assert moved.status_code in (200, 409)
        name = next(
            line.split()[2]
            for line in script.splitlines()
            if line.startswith("set hostname")
        )
        if moved.status_code == 200:
            assert name == f"pc{number}"
        else:
            assert name.startswith("worker-")
        assert f"{mac},{name}" in live_hosts(layout)
        consistent(layout)


def test_two_that_want_one_mac(
    api: APIClient, layout: Layout, worker: Callable[..., Any]
) -> None:
    worker("a")
    worker("b")
    statuses = sorted(
        answer.status_code
        for answer in at_once(
            *(
                lambda n=name: api.put(
                    f"/workers/{n}/mac", {"mac": "52:54:00:00:09:ff"}
                )
                for name in ("a", "b")
            )
        )
    )
    assert statuses == [200, 409]
    consistent(layout)


@pytest.mark.case(85)
def test_the_same_worker_ten_times(api: APIClient, layout: Layout) -> None:
    answers = at_once(
        *(
            lambda n=number: api.post(
                "/workers", {"worker_id": "pc", "mac": f"52:54:00:00:08:{n:02x}"}
            )
            for number in range(10)
        )
    )
    assert Counter(answer.status_code for answer in answers) == {201: 1, 409: 9}
    consistent(layout)


def test_a_worker_that_is_deleted_while_it_is_changed(
    api: APIClient, layout: Layout, worker: Callable[..., Any]
) -> None:
    for number in range(6):
        worker("pc", mac=f"52:54:00:00:07:{number:02x}")
        deleted, changed, booted = at_once(
            lambda: api.delete("/workers/pc"),
            lambda: api.put("/workers/pc/default-os", {"menu_timeout": 5}),
            lambda n=number: api.get(f"/boot-vars?mac=52:54:00:00:07:{n:02x}"),
        )
        assert deleted.status_code == 200
        assert changed.status_code in (200, 404)
        assert booted.content.startswith(b"#!ipxe\n")
        assert "pc" not in ledger(layout)
        consistent(layout)
