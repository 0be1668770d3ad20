"""GET /workers and /workers/{id}."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from ipxeready.storage.paths import Layout
from tests.workers.helpers import M1, M2, refusal, snapshot

LEDGER = """\
workers:
  pc-b:
    hostname: seat-2
    note: 机房 A
    mac: 12345
    default_os: ubuntu
    disks:
      - {agent: node-1, iqn: "iqn.2026-07.com.controller:seat-2.ubuntu", os: Ubuntu}
  pc-a:
    hostname: seat-1
  pc-c:
    hostname: seat-3
    disk: {agent: node-2, iqn: "iqn.2026-07.com.controller:seat-3.windows", os: windows}
"""
HOSTS = "52:54:00:00:00:01,52:54:00:00:00:02,seat-1\n52:54:00:00:00:03,seat-3\n"


@pytest.fixture
def room(layout: Layout) -> None:
    """Three workers as people write them."""
    layout.workers_yml.write_text(LEDGER)
    layout.dhcp_hosts.write_text(HOSTS)


def ids(client: APIClient, query: str) -> list[str]:
    answer = client.get(f"/workers?{query}")
    assert answer.status_code == 200, answer.json()
    return [record["worker_id"] for record in answer.json()]


@pytest.mark.usefixtures("room")
def test_records_are_whole_and_sorted_by_id(api: APIClient) -> None:
    first, second, third = api.get("/workers").json()
    assert first == {
        "worker_id": "pc-a",
        "mac": M1,
        "macs": [M1, M2],
        "hostname": "seat-1",
        "arch": "x86_64",
        "state": "registered",
        "disks": [],
        "cd": None,
    }
    assert second["worker_id"] == "pc-b"
    # A hand-written `mac` in the ledger is a note, not the binding.
    assert second["mac"] is None
    assert second["note"] == "机房 A"
    assert second["state"] == "ready"
    assert third["disks"][0]["agent"] == "node-2"
    assert "disk" not in third
    assert api.get("/workers/PC-A").json() == first
    assert api.get("/api/cp/workers/pc-a/").json() == first


@pytest.mark.usefixtures("room")
@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("state=registered", ["pc-a"]),
        ("state=ready", ["pc-b", "pc-c"]),
        ("state=installing", []),
        ("os=ubuntu", ["pc-b"]),
        ("agent=NODE-2", ["pc-c"]),
        ("agent=none", []),
        ("has_disk=true", ["pc-b", "pc-c"]),
        ("has_disk=0", ["pc-a"]),
        ("default_os=ubuntu", ["pc-b"]),
        ("default_os=none", ["pc-a", "pc-c"]),
        ("search=seat-3", ["pc-c"]),
        ("search=00:00:02", ["pc-a"]),
        ("search=00-00-03", ["pc-c"]),
        ("search=PC+seat-2", ["pc-b"]),
        ("search=%25", []),
        ("search=%FF", []),
        ("search=" + "a" * 6000, []),
        ("ordering=-worker_id", ["pc-c", "pc-b", "pc-a"]),
        ("ordering=state,-hostname", ["pc-c", "pc-b", "pc-a"]),
        ("state=ready&os=windows&ordering=worker_id", ["pc-c"]),
        ("format=json", ["pc-a", "pc-b", "pc-c"]),
    ],
)
def test_filters_and_order(api: APIClient, query: str, expected: list[str]) -> None:
    assert ids(api, query) == expected


@pytest.mark.usefixtures("room")
@pytest.mark.parametrize(
    ("query", "field", "rule"),
    [
        ("state=bad", "state", "bad must be one of registered, ready, installing"),
        ("os=dos", "os", "dos must be one of windows, ubuntu"),
        ("has_disk=maybe", "has_disk", "true, false, 1 or 0"),
        ("has_disk=", "has_disk", "true, false, 1 or 0"),
        ("ordering=colour", "ordering", "'colour' must be of worker_id, hostname"),
        ("ordering=--worker_id", "ordering", "must be of"),
        ("ordering=-", "ordering", "must be of"),
        ("ordering=state,state", "ordering", "each once"),
        ("search=" + "a+" * 3000, "search", "3000 words; at most"),
        ("search=%00", "search", "ull"),
        ("limit=0", "limit", "whole number from 1"),
        ("limit=-1", "limit", "whole number from 1"),
        ("limit=1e3", "limit", "whole number"),
        ("limit=" + "9" * 400, "limit", "whole number"),
        ("offset=x", "offset", "whole number"),
        ("colour=red", "colour", "unknown parameter; known are"),
        ("state=ready&state=ready", "state", "more than once"),
    ],
)
def test_a_query_that_makes_no_sense_is_refused(
    api: APIClient, query: str, field: str, rule: str
) -> None:
    status, words = refusal(api, "get", f"/workers?{query}")
    assert status == 400
    assert words.startswith(f"{field}: ")
    assert rule in words
    assert len(words) < 400


@pytest.mark.usefixtures("room")
def test_pages_come_only_when_asked_for(api: APIClient) -> None:
    page = api.get("/workers?limit=2").json()
    assert page["count"] == 3
    assert [record["worker_id"] for record in page["results"]] == ["pc-a", "pc-b"]
    assert "offset=2" in page["next"]
    page = api.get("/workers?offset=2").json()
    assert [record["worker_id"] for record in page["results"]] == ["pc-c"]
    assert api.get("/workers?limit=5&offset=99").json()["results"] == []


@pytest.mark.parametrize("name", ["nobody", "%00", "a" * 5000, "%FF", "..", "a%2Fb"])
def test_an_unknown_worker_is_not_found(api: APIClient, name: str) -> None:
    answer = api.get(f"/workers/{name}")
    assert answer.status_code == 404
    assert len(answer.json()["detail"]) < 200


def test_a_record_takes_no_parameters(api: APIClient, worker: Any) -> None:
    worker("pc1")
    status, words = refusal(api, "get", "/workers/pc1?live=true")
    assert (status, "live" in words) == (400, True)


def test_who_may_look(
    stranger: APIClient, as_viewer: APIClient, worker: Callable[..., Any]
) -> None:
    worker("pc1")
    for path in ("/workers", "/workers/pc1", "/api/cp/workers"):
        answer = stranger.get(path)
        assert answer.status_code == 401
        assert answer["WWW-Authenticate"].startswith("Bearer")
        assert as_viewer.get(path).status_code == 200


@pytest.mark.usefixtures("room")
def test_looking_changes_no_file(api: APIClient, layout: Layout) -> None:
    before = snapshot(layout)
    api.get("/workers")
    api.head("/workers")
    api.options("/workers")
    assert snapshot(layout) == before


def test_a_browser_gets_a_page_and_others_json(
    api: APIClient, worker: Callable[..., Any]
) -> None:
    worker("pc1")
    page = api.get("/workers", HTTP_ACCEPT="text/html")
    assert page["Content-Type"].startswith("text/html")
    assert b"pc1" in page.content
    assert api.get("/workers", HTTP_ACCEPT="*/*")["Content-Type"] == "application/json"
