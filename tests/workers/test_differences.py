"""What does not belong together in the files is listed, and nothing of it is mended by itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from agents.services import IN_USE
from ipxeready.storage.paths import Layout
from tests.workers.helpers import M1, M2, M3, snapshot
from workers.selectors import workers_on


def health(client: APIClient) -> dict[str, Any]:
    return dict(client.get("/healthz?verbose=1").json())


def problems(client: APIClient, name: str) -> list[str]:
    return list(
        next(f for f in health(client)["files"] if f["name"] == name)["problems"]
    )


def test_files_that_agree_have_nothing_to_say(
    api: APIClient, worker: Callable[..., Any]
) -> None:
    worker("pc1")
    assert health(api)["differences"] == []


@pytest.mark.case(93)
def test_ledger_and_hosts_file_are_compared(api: APIClient, layout: Layout) -> None:
    layout.workers_yml.write_text(
        "workers:\n  a: {hostname: seat-1}\n  b: {hostname: seat-2}\n"
    )
    layout.dhcp_hosts.write_text(f"{M1},seat-2\n{M2},stranger\n{M3},ignore\n")
    before = snapshot(layout)
    first, second = health(api)["differences"]
    assert "worker a (seat-1) has no MAC" in first and "/workers/a/mac" in first
    assert f"binds {M2} to stranger" in second
    assert snapshot(layout) == before


@pytest.mark.case(1)
def test_a_name_on_two_lines_is_shown(api: APIClient, layout: Layout) -> None:
    layout.dhcp_hosts.write_text(f"{M1},seat\n{M2},SEAT.lab\n")
    (text,) = problems(api, "hosts")
    assert "seat is on lines 1, 2" in text


@pytest.mark.case(2)
@pytest.mark.case(6)
@pytest.mark.case(13)
@pytest.mark.case(53)
@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"{M1},101", "lease time"),
        (f"{M1},worker-02#rack3", ""),
        (f"{M1},{'a' * 64}", ""),
        (f"{M1}，seat", ""),
        ("52:54:00:00:00:01:02:03,seat", ""),
    ],
)
def test_a_line_that_does_not_do_what_it_looks_like_is_shown_and_kept(
    api: APIClient, layout: Layout, line: str, words: str
) -> None:
    layout.dhcp_hosts.write_text(f"{line}\n{M3},other\n")
    (text,) = problems(api, "hosts")
    assert text.startswith("line 1: ")
    assert words in text
    assert api.post("/workers", {"worker_id": "x", "mac": M2}).status_code == 201
    assert layout.dhcp_hosts.read_text() == f"{line}\n{M3},other\n{M2},x\n"


@pytest.mark.case(13)
def test_a_bom_is_reported(api: APIClient, layout: Layout) -> None:
    layout.dhcp_hosts.write_bytes(b"\xef\xbb\xbf" + f"{M1},a\n{M2},b\n".encode())
    assert any("BOM" in text or "byte" in text for text in problems(api, "hosts"))
    assert api.get("/boot-vars?mac=" + M2).content.startswith(b"#!ipxe\n")


@pytest.mark.case(33)
def test_a_bad_record_is_shown_and_costs_the_others_nothing(
    api: APIClient, layout: Layout, worker: Callable[..., Any]
) -> None:
    worker("pc1")
    text = layout.workers_yml.read_text()
    bad = "  bad: {hostname: a_b}\n  none: {note: x}\n  word: x\n"
    layout.workers_yml.write_text(text + bad)
    shown = problems(api, "workers")
    assert len(shown) == 3
    assert any("bad (hostname)" in each for each in shown)
    assert any("none (hostname): is missing" in each for each in shown)
    assert [w["worker_id"] for w in api.get("/workers").json()] == ["pc1"]
    assert api.post("/workers", {"worker_id": "pc2", "mac": M3}).status_code == 201
    assert bad in layout.workers_yml.read_text()


def test_two_workers_of_one_hostname_are_shown(api: APIClient, layout: Layout) -> None:
    layout.workers_yml.write_text("workers:\n  a: {hostname: x}\n  b: {hostname: x}\n")
    (text,) = problems(api, "workers")
    assert "a, b" in text


def test_the_registry_of_nodes_knows_who_uses_one() -> None:
    assert workers_on in IN_USE
