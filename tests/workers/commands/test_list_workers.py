"""`list_workers`: the API's list with the API's filters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from ipxeready.storage.paths import Layout
from tests.shell import run
from tests.workers.helpers import M1, M2
from workers.filters import WorkerFilterSet

Make = Callable[..., dict[str, Any]]


def test_json_is_what_the_api_says(api: APIClient, worker: Make) -> None:
    worker("pc2", mac=M2)
    worker("pc1", mac=M1, hostname="seat-1")
    ended = run("list_workers", "--json")
    assert (ended.code, ended.err) == (0, "")
    assert ended.json == api.get("/workers").json()


def test_a_table_for_people(layout: Layout, worker: Make) -> None:
    worker("pc1", mac=M1, hostname="seat-1", boot={"menu_default": "shell"})
    heads, row = run("list_workers").out.splitlines()
    assert heads.split() == ["WORKER", "HOSTNAME", "MAC", "STATE", "DISKS", "DEFAULT"]
    assert row.split() == ["pc1", "seat-1", M1, "registered", "-", "shell"]


def test_filters_are_those_of_the_api(api: APIClient, layout: Layout) -> None:
    disk = '{agent: n, os: %s, iqn: "iqn.2026-07.com.controller:%s.%s"}'
    layout.workers_yml.write_text(
        "workers:\n"
        f"  a: {{hostname: a, disks: [{disk % ('ubuntu', 'a', 'ubuntu')}]}}\n"
        f"  b: {{hostname: b, disks: [{disk % ('windows', 'b', 'windows')}]}}\n"
        "  c: {hostname: c, access: off}\n"
    )
    asked = {
        "state": "ready",
        "os": "ubuntu",
        "agent": "N",
        "access": "off",
        "default_os": "none",
        "has_disk": "false",
        "search": "c",
        "ordering": "-worker_id",
    }
    assert set(asked) == set(WorkerFilterSet.base_filters)
    for name, value in asked.items():
        found = run("list_workers", f"--{name.replace('_', '-')}={value}", "--json")
        assert found.json == api.get("/workers", {name: value}).json(), name
        assert found.json
    both = run("list_workers", "--state", "ready", "--os", "windows", "--json")
    assert [record["worker_id"] for record in both.json] == ["b"]


@pytest.mark.parametrize(
    ("option", "rule"),
    [
        ("--state=x", "state: x must be one of registered, ready, installing"),
        ("--has-disk=perhaps", "has_disk: must be true, false, 1 or 0"),
        ("--ordering=mac", "ordering: 'mac' must be of worker_id"),
    ],
)
def test_a_wrong_filter_is_one_line(layout: Layout, option: str, rule: str) -> None:
    ended = run("list_workers", option, "--json")
    assert (ended.code, ended.out) == (2, "")
    assert rule in ended.err
    assert len(ended.err.splitlines()) == 1


def test_an_edit_by_hand_is_seen(layout: Layout) -> None:
    assert run("list_workers", "--json").json == []
    layout.workers_yml.write_text("workers:\n  x: {hostname: x}\n")
    assert [record["worker_id"] for record in run("list_workers", "--json").json] == [
        "x"
    ]
