"""GET /operations: the audit trail by id, forwards and backwards."""

from __future__ import annotations

import json

import pytest
from rest_framework.test import APIClient

from audit.services import record
from ipxeready.actors import Actor
from ipxeready.storage.paths import Layout


@pytest.fixture(autouse=True)
def _trail(layout: Layout, administrator: Actor) -> None:
    """Ten lines: odd ones of w1 on a, even ones of w2 on b; every third failed."""
    for number in range(1, 11):
        record(
            actor=administrator,
            op="worker.boot.set" if number % 2 else "lun.list",
            status="failed" if number % 3 == 0 else "ok",
            worker_id="w1" if number % 2 else "w2",
            agent="a" if number % 2 else "b",
            number=number,
        )


def _numbers(api: APIClient, query: str = "") -> list[int]:
    answer = api.get(f"/operations{query}")
    assert answer.status_code == 200, answer.content
    return [entry["number"] for entry in answer.json()["entries"]]


def test_lines_come_as_they_stand_in_the_file_oldest_first(
    api: APIClient, layout: Layout
) -> None:
    answer = api.get("/operations").json()
    lines = [json.loads(line) for line in layout.operations.read_text().splitlines()]
    assert answer == {"next_cursor": 10, "entries": lines}
    first = answer["entries"][0]
    assert (first["id"], first["op"], first["user"], first["client"]) == (
        1,
        "worker.boot.set",
        "alice",
        "192.0.2.1",
    )
    assert api.get("/api/cp/operations/").json() == answer


def test_forwards_page_by_page_and_then_only_what_is_new(
    api: APIClient, administrator: Actor
) -> None:
    first = api.get("/operations?limit=4").json()
    assert first["next_cursor"] == 4
    second = api.get(f"/operations?limit=40&since={first['next_cursor']}").json()
    assert [entry["number"] for entry in second["entries"]] == [5, 6, 7, 8, 9, 10]
    nothing = api.get(f"/operations?since={second['next_cursor']}").json()
    assert nothing == {"next_cursor": 10, "entries": []}
    record(actor=administrator, op="lun.scan", number=11)
    assert _numbers(api, "?since=10") == [11]


def test_backwards_newest_first(api: APIClient) -> None:
    page = api.get("/operations?before=8&limit=3").json()
    assert [entry["number"] for entry in page["entries"]] == [7, 6, 5]
    assert page["next_cursor"] == 5
    assert _numbers(api, "?before=5&limit=3") == [4, 3, 2]
    assert _numbers(api, "?before=1") == []
    assert _numbers(api, "?before=8&since=5") == [7, 6]


@pytest.mark.parametrize(
    ("query", "numbers"),
    [
        ("?op=lun.list", [2, 4, 6, 8, 10]),
        ("?status=failed", [3, 6, 9]),
        ("?worker_id=w1&status=failed", [3, 9]),
        ("?agent=b&since=6", [8, 10]),
        ("?agent=b&before=6", [4, 2]),
        ("?op=no.such", []),
        ("?worker_id=w", []),
        ("?worker_id=", [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]),
    ],
)
def test_filters_compare_whole_values(
    api: APIClient, query: str, numbers: list[int]
) -> None:
    assert _numbers(api, query) == numbers


@pytest.mark.parametrize(
    "query",
    [
        "since=-1",
        "since=x",
        "since=1e3",
        "since=99999999999999999999",
        "before=",
        "limit=0",
        "limit=10001",
        "limit=1&limit=2",
        "worker=w1",
        "offset=2",
        "op=a%00b",
    ],
)
def test_a_wrong_parameter_is_refused(api: APIClient, query: str) -> None:
    answer = api.get(f"/operations?{query}")
    assert answer.status_code == 400, answer.content
    assert "detail" in answer.json()


@pytest.mark.parametrize("method", ["post", "put", "patch", "delete"])
def test_nothing_can_be_changed(api: APIClient, layout: Layout, method: str) -> None:
    before = layout.operations.read_bytes()
    assert getattr(api, method)("/operations").status_code == 405
    assert layout.operations.read_bytes() == before


def test_strangers_may_not(stranger: APIClient) -> None:
    assert stranger.get("/operations").status_code == 401
    stranger.credentials(HTTP_AUTHORIZATION="Bearer wrong")
    assert stranger.get("/operations").status_code == 401
