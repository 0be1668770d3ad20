"""DELETE /workers/{id} of workers without disks; with disks see test_removal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from ipxeready.storage.paths import Layout
from tests.workers.helpers import M1, M2, ledger, live_hosts, refusal, snapshot, trail

Make = Callable[..., dict[str, Any]]


def test_ledger_and_binding_go(api: APIClient, layout: Layout, worker: Make) -> None:
    worker("pc1", mac=M1, hostname="seat-1")
    worker("pc2", mac=M2)
    inode = layout.dhcp_hosts.stat().st_ino
    answer = api.delete("/workers/PC1")
    assert answer.status_code == 200
    assert answer.json() == {
        "deleted": "pc1",
        "delete_disk": False,
        "dnsmasq_removed": True,
    }
    assert list(ledger(layout)) == ["pc2"]
    assert live_hosts(layout) == [f"{M2},pc2"]
    assert layout.dhcp_hosts.stat().st_ino == inode
    (line,) = trail(layout, "delete_worker")
    assert (line["worker_id"], line["hostname"]) == ("pc1", "seat-1")
    assert (line["status"], line["client"]) == ("ok", "127.0.0.1")
    assert line["removed_lines"] == [f"{M1},seat-1"]
    assert refusal(api, "delete", "/workers/pc1")[0] == 404


@pytest.mark.case(7)
def test_what_else_stood_on_the_line_is_told(api: APIClient, layout: Layout) -> None:
    line = f"{M1},set:lab,id:*,10.0.0.51,worker-01,45m"
    layout.workers_yml.write_text("workers:\n  worker-01: {hostname: worker-01}\n")
    layout.dhcp_hosts.write_text(f"# rack\n{line}\n{M2},other\n")
    answer = api.delete("/workers/worker-01").json()
    assert answer["removed_lines"] == [line]
    assert layout.dhcp_hosts.read_text() == f"# rack\n{M2},other\n"
    assert trail(layout, "delete_worker")[0]["removed_lines"] == [line]


def test_a_worker_without_a_binding(api: APIClient, layout: Layout) -> None:
    layout.workers_yml.write_text("workers:\n  pc1: {hostname: seat}\n")
    before = snapshot(layout)["dhcp-hosts.conf"]
    answer = api.delete("/workers/pc1?delete_disk=true&ignore_missing_target=1")
    assert answer.json() == {
        "deleted": "pc1",
        "delete_disk": True,
        "dnsmasq_removed": False,
    }
    assert snapshot(layout)["dhcp-hosts.conf"] == before
    assert ledger(layout) == {}


def test_a_name_that_two_records_share_keeps_its_binding(
    api: APIClient, layout: Layout
) -> None:
    layout.workers_yml.write_text(
        "workers:\n  a: {hostname: seat}\n  b: {hostname: seat}\n"
    )
    layout.dhcp_hosts.write_text(f"{M1},seat\n")
    assert api.delete("/workers/a").json()["dnsmasq_removed"] is False
    assert live_hosts(layout) == [f"{M1},seat"]
    assert api.delete("/workers/b").json()["dnsmasq_removed"] is True


@pytest.mark.parametrize(
    ("query", "rule"),
    [
        ("delete_disk=maybe", "delete_disk: must be true, false, 1 or 0"),
        ("delete_disk=", "delete_disk: must be true, false, 1 or 0"),
        ("delete_file=true", "delete_file: unknown parameter; known are"),
        ("ignore_missing=true", "ignore_missing: unknown parameter"),
        ("force=2", "force: must be true, false, 1 or 0"),
        ("forget=true&forget=false", "forget: is given more than once"),
    ],
)
def test_a_typo_deletes_nothing(
    api: APIClient, layout: Layout, worker: Make, query: str, rule: str
) -> None:
    worker("pc1", mac=M1)
    before = snapshot(layout)
    status, words = refusal(api, "delete", f"/workers/pc1?{query}")
    assert (status, rule in words) == (400, True), words
    assert snapshot(layout) == before


@pytest.mark.parametrize("body", [{"delete_disk": True}, ["x"], "x"])
def test_a_body_is_refused(
    api: APIClient, layout: Layout, worker: Make, body: Any
) -> None:
    worker("pc1", mac=M1)
    before = snapshot(layout)
    assert refusal(api, "delete", "/workers/pc1", body)[0] == 400
    assert snapshot(layout) == before


def test_prefix_slash_and_roles(
    api: APIClient, as_viewer: APIClient, stranger: APIClient, worker: Make
) -> None:
    worker("pc1", mac=M1)
    path = "/api/cp/workers/pc1/"
    assert stranger.delete(path).status_code == 401
    assert as_viewer.delete(path).status_code == 403
    assert api.post(path, {}).status_code == 405
    assert api.delete(path).status_code == 200


def test_a_broken_hosts_file_side_stops_the_whole_deletion(
    api: APIClient, layout: Layout, worker: Make
) -> None:
    worker("pc1", mac=M1)
    layout.dhcp_hosts.unlink()
    text = layout.workers_yml.read_bytes()
    status, words = refusal(api, "delete", "/workers/pc1")
    assert status == 503
    assert "dhcp-hosts.conf" in words
    assert layout.workers_yml.read_bytes() == text
    assert not layout.dhcp_hosts.exists()
