"""PUT /workers/{id}/mac: one token of one line, and the history in the audit."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from ipxeready.storage.paths import Layout
from tests.workers.helpers import M1, M2, M3, live_hosts, refusal, snapshot, trail

Make = Callable[..., dict[str, Any]]


@pytest.fixture
def reloads(layout: Layout, settings: Any, tmp_path: Path) -> Callable[[], int]:
    """A reload command that counts its runs."""
    log = tmp_path / "reloads"
    script = tmp_path / "reload.sh"
    script.write_text(f"#!/bin/sh\necho run >> {log}\n")
    script.chmod(0o755)
    settings.IPXE = dataclasses.replace(
        settings.IPXE, dnsmasq_reload_set=("command", str(script))
    )
    return lambda: len(log.read_text().splitlines()) if log.exists() else 0


def test_another_address_takes_the_place_of_the_old_one(
    api: APIClient, layout: Layout, reloads: Callable[[], int]
) -> None:
    layout.dhcp_hosts.write_text(
        f"# head\n{M1},set:lab,id:*,10.0.0.51,pc1,45m # mine\n{M3},other\n"
    )
    api.post("/workers", {"worker_id": "pc1", "mac": M1})
    inode = layout.dhcp_hosts.stat().st_ino
    before = reloads()
    record = api.put("/workers/pc1/mac", {"mac": "5254.0000.0002"}).json()
    assert record["changed"] is True
    assert (record["worker_id"], record["mac"]) == ("pc1", M2)
    assert layout.dhcp_hosts.read_text() == (
        f"# head\n{M2},set:lab,id:*,10.0.0.51,pc1,45m # mine\n{M3},other\n"
    )
    assert layout.dhcp_hosts.stat().st_ino == inode
    assert reloads() == before + 1
    (line,) = trail(layout, "worker.mac.update")
    assert line["status"] == "ok"
    assert (line["old_mac"], line["new_mac"], line["changed"]) == (M1, M2, True)
    assert (line["worker_id"], line["client"]) == ("pc1", "127.0.0.1")


def test_the_same_address_changes_nothing(
    api: APIClient, layout: Layout, worker: Make, reloads: Callable[[], int]
) -> None:
    worker("pc1", mac=M1)
    before, runs = snapshot(layout), reloads()
    answer = api.put("/workers/pc1/mac", {"mac": M1.upper().replace(":", "-")})
    assert answer.status_code == 200
    assert answer.json()["changed"] is False
    assert snapshot(layout) == before
    assert reloads() == runs
    (line,) = trail(layout, "worker.mac.update")
    assert (line["old_mac"], line["new_mac"], line["changed"]) == (M1, M1, False)


def test_a_worker_without_a_binding_gets_one(api: APIClient, layout: Layout) -> None:
    layout.workers_yml.write_text("workers:\n  pc1: {hostname: seat}\n")
    record = api.put("/workers/pc1/mac", {"mac": M1}).json()
    assert (record["changed"], record["mac"]) == (True, M1)
    assert live_hosts(layout) == [f"{M1},seat"]
    (line,) = trail(layout, "worker.mac.update")
    assert "old_mac" not in line


@pytest.mark.case(8)
def test_of_two_cards_on_a_line_the_first_is_replaced_and_both_count(
    api: APIClient, layout: Layout
) -> None:
    layout.workers_yml.write_text("workers:\n  pc1: {hostname: pc1}\n")
    layout.dhcp_hosts.write_text(f"{M1},{M2},pc1\n")
    assert api.put("/workers/pc1/mac", {"mac": M2}).json()["changed"] is False
    record = api.put("/workers/pc1/mac", {"mac": M3}).json()
    assert record["macs"] == [M3, M2]
    assert layout.dhcp_hosts.read_text() == f"{M3},{M2},pc1\n"


def test_an_address_of_another_worker_is_a_conflict(
    api: APIClient, layout: Layout, worker: Make
) -> None:
    worker("pc1", mac=M1)
    worker("pc2", mac=M2)
    before = snapshot(layout)
    status, words = refusal(api, "put", "/workers/pc1/mac", {"mac": M2})
    assert status == 409
    assert M2 in words and "pc2" in words
    assert snapshot(layout) == before


@pytest.mark.case(4)
def test_an_address_that_is_refused_dhcp_is_a_conflict(
    api: APIClient, layout: Layout, worker: Make
) -> None:
    worker("pc1", mac=M1)
    with layout.dhcp_hosts.open("a") as file:
        file.write(f"{M2},ignore\n{M3},12h\n")
    for mac in (M2, M3):
        status, words = refusal(api, "put", "/workers/pc1/mac", {"mac": mac})
        assert (status, mac in words) == (409, True)
    assert live_hosts(layout) == [f"{M1},pc1", f"{M2},ignore", f"{M3},12h"]


@pytest.mark.case(1)
def test_a_name_on_two_lines_must_be_mended_first(
    api: APIClient, layout: Layout
) -> None:
    layout.workers_yml.write_text("workers:\n  pc1: {hostname: pc1}\n")
    layout.dhcp_hosts.write_text(f"{M1},pc1\n{M2},PC1.lab\n")
    before = snapshot(layout)
    status, words = refusal(api, "put", "/workers/pc1/mac", {"mac": M3})
    assert status == 409
    assert M1 in words and M2 in words
    assert snapshot(layout) == before


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ({}, "mac: is needed"),
        ({"mac": None}, "mac: must be text"),
        ({"mac": 5}, "mac: 5 must be text"),
        ({"mac": ["x"]}, "must be text"),
        ({"mac": ""}, "mac: must not be empty"),
        ({"mac": "zz"}, "'zz' is not a MAC address"),
        ({"mac": "00:00:00:00:00:00"}, "all zero"),
        ({"mac": "52:54:00:00:00:01:02:03"}, "only 6-byte"),
        ({"mac": M2, "hostname": "x"}, "hostname: unknown field"),
    ],
)
def test_malformed_bodies(
    api: APIClient, layout: Layout, worker: Make, body: dict[str, Any], rule: str
) -> None:
    worker("pc1", mac=M1)
    before = snapshot(layout)
    status, words = refusal(api, "put", "/workers/pc1/mac", body)
    assert (status, rule in words) == (400, True), words
    assert snapshot(layout) == before


def test_an_unknown_worker(api: APIClient) -> None:
    status, words = refusal(api, "put", "/workers/nobody/mac", {"mac": M1})
    assert (status, "nobody" in words) == (404, True)


def test_forms_prefix_slash_and_roles(
    api: APIClient, as_viewer: APIClient, stranger: APIClient, worker: Make
) -> None:
    worker("pc1", mac=M1)
    path = "/api/cp/workers/PC1/mac/"
    answer = api.put(
        path, f"mac={M2}", content_type="application/x-www-form-urlencoded"
    )
    assert answer.json()["mac"] == M2
    assert as_viewer.put(path, {"mac": M3}).status_code == 403
    assert stranger.put(path, {"mac": M3}).status_code == 401
    assert api.get(path).status_code == 405


@pytest.mark.case(102)
def test_a_failed_reload_does_not_fail_the_write(
    api: APIClient, layout: Layout, worker: Make, settings: Any, tmp_path: Path
) -> None:
    settings.IPXE = dataclasses.replace(
        settings.IPXE, dnsmasq_reload_set=("pidfile", str(tmp_path / "none.pid"))
    )
    record = worker("pc1", mac=M1)
    assert record["dnsmasq"]["active"] is False
    assert "written, not active" in record["dnsmasq"]["error"]
    assert live_hosts(layout) == [f"{M1},pc1"]
    answer = api.put("/workers/pc1/mac", {"mac": M2})
    assert answer.status_code == 200
    assert answer.json()["dnsmasq"]["active"] is False
    lines = trail(layout, "dnsmasq.reload")
    assert [line["status"] for line in lines] == ["failed", "failed"]
    assert lines[0]["error"]
    assert api.delete("/workers/pc1").json()["dnsmasq"]["active"] is False
