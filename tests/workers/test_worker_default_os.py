"""PUT /workers/{id}/default-os: what boots next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from ipxeready.storage.paths import Layout
from tests.workers.helpers import M1, ledger, refusal, snapshot, trail

Make = Callable[..., dict[str, Any]]
PATH = "/workers/pc1/default-os"
LEDGER = """\
workers:
  # the teacher's
  pc1:
    hostname: pc1
    asset: X7
    disks:
      - agent: node-1
        iqn: iqn.2026-07.com.controller:pc1.ubuntu
        os: ubuntu
      - {agent: node-1, iqn: "iqn.2026-07.com.controller:pc1.windows", os: windows}
      - agent: node-1
        iqn: iqn.2026-07.com.controller:pc1.debian
        os: debian
        status: creating
  other: {hostname: other}
"""


@pytest.fixture
def pc1(layout: Layout) -> None:
    """A worker with two disks and one under way."""
    layout.workers_yml.write_text(LEDGER)


@pytest.mark.usefixtures("pc1")
def test_each_choice_is_kept_and_null_clears_it(api: APIClient, layout: Layout) -> None:
    body = {"os": "Ubuntu", "menu_default": "SHELL", "menu_timeout": 0}
    record = api.put(PATH, body).json()
    assert record["default_os"] == "ubuntu"
    assert record["boot"] == {"menu_default": "shell", "menu_timeout": 0}
    assert api.put(PATH, {"menu_timeout": None}).json()["boot"] == {
        "menu_default": "shell"
    }
    record = api.put(PATH, {"os": None, "menu_default": None}).json()
    assert "default_os" not in record and "boot" not in record
    assert "default_os" not in ledger(layout)["pc1"]
    lines = trail(layout, "worker.boot.set")
    assert len(lines) == 3
    assert lines[0]["default_os"] == "ubuntu"
    assert (lines[0]["menu_default"], lines[0]["menu_timeout"]) == ("shell", 0)
    assert lines[0]["client"] == "127.0.0.1"


@pytest.mark.usefixtures("pc1")
@pytest.mark.case(32)
def test_comments_keys_and_neighbours_stay(api: APIClient, layout: Layout) -> None:
    api.put(PATH, {"os": "ubuntu"})
    text = layout.workers_yml.read_text()
    assert "# the teacher's" in text
    assert "asset: X7" in text
    assert "  other: {hostname: other}\n" in text
    assert ledger(layout)["pc1"]["disks"][2]["status"] == "creating"


@pytest.mark.usefixtures("pc1")
@pytest.mark.parametrize(
    ("body", "status", "rule"),
    [
        ({}, 400, "give at least one of os, menu_default, menu_timeout"),
        ({"os": "dos"}, 400, "os: 'dos' must be one of windows, ubuntu"),
        ({"os": ""}, 400, "os: must not be empty"),
        ({"os": 7}, 400, "os: 7 must be text"),
        ({"os": ["ubuntu"]}, 400, "must be text"),
        ({"os": "centos"}, 400, "no centos disk; its disks are: ubuntu, windows"),
        ({"os": "debian"}, 400, "no debian disk; its disks are: ubuntu, windows"),
        ({"menu_default": "x"}, 400, "menu_default: 'x' must be one of windows"),
        ({"menu_default": 1}, 400, "menu_default: 1 must be text"),
        ({"menu_timeout": -1}, 400, "menu_timeout: -1 must be whole milliseconds"),
        ({"menu_timeout": "soon"}, 400, "menu_timeout: 'soon' must be whole"),
        ({"menu_timeout": 1.0}, 400, "menu_timeout: 1.0 must be whole"),
        ({"menu_timeout": {}}, 400, "menu_timeout: {} must be whole"),
        ({"menu_timeout": 2**31}, 400, "whole milliseconds"),
        ({"menu_timeout": "9" * 100_000}, 400, "whole milliseconds"),
        ({"default_os": "ubuntu"}, 400, "default_os: unknown field"),
    ],
)
def test_what_is_refused(
    api: APIClient, layout: Layout, body: dict[str, Any], status: int, rule: str
) -> None:
    before = snapshot(layout)
    got, words = refusal(api, "put", PATH, body)
    assert (got, rule in words) == (status, True), words
    assert len(words) < 400
    assert snapshot(layout) == before


def test_a_worker_without_disks_is_a_conflict(api: APIClient, worker: Make) -> None:
    worker("pc1", mac=M1)
    status, words = refusal(api, "put", PATH, {"os": "ubuntu"})
    assert status == 409
    assert "has no disk" in words and "/workers/pc1/luns/disk" in words


def test_an_unknown_worker(api: APIClient) -> None:
    assert refusal(api, "put", PATH, {"menu_timeout": 1})[0] == 404


@pytest.mark.usefixtures("pc1")
def test_forms_prefix_slash_and_roles(
    api: APIClient, as_viewer: APIClient, stranger: APIClient
) -> None:
    path = f"/api/cp{PATH}/"
    form = "application/x-www-form-urlencoded"
    answer = api.put(path, "os=ubuntu&menu_timeout=4000", content_type=form)
    assert answer.json()["boot"] == {"menu_timeout": 4000}
    answer = api.put(path, "menu_timeout=soon", content_type=form)
    assert answer.status_code == 400
    # In a form an empty field clears.
    assert "default_os" not in api.put(path, "os=", content_type=form).json()
    assert as_viewer.put(path, {"os": None}).status_code == 403
    assert stranger.put(path, {"os": None}).status_code == 401
    assert api.post(path, {"os": None}).status_code == 405


@pytest.mark.parametrize("boot", ["shell", "[1]", "{menu_timeout: -5}"])
def test_a_record_that_does_not_validate_is_mended_by_hand_first(
    api: APIClient, layout: Layout, boot: str
) -> None:
    layout.workers_yml.write_text("workers:\n  pc1:\n    hostname: pc1\n")
    assert api.get("/workers/pc1").status_code == 200
    layout.workers_yml.write_text(
        f"workers:\n  pc1:\n    hostname: pc1\n    boot: {boot}\n"
    )
    before = snapshot(layout)
    assert api.get("/workers/pc1").status_code == 200  # the last good rows
    status, words = refusal(api, "put", PATH, {"menu_timeout": 1})
    assert (status, "mend this record" in words) == (503, True)
    assert snapshot(layout) == before


def test_an_old_single_disk_becomes_a_list_at_the_next_change(
    api: APIClient, layout: Layout
) -> None:
    layout.workers_yml.write_text(
        "workers:\n  pc1:\n    hostname: pc1\n    asset: X7\n    disk:\n      agent: n\n"
        "      iqn: iqn.2026-07.com.controller:pc1.ubuntu\n      os: ubuntu\n"
    )
    assert api.get("/workers/pc1").json()["disks"][0]["os"] == "ubuntu"
    assert "disk:" in layout.workers_yml.read_text()
    api.put(PATH, {"os": "ubuntu"})
    record = ledger(layout)["pc1"]
    assert "disk" not in record
    assert record["disks"] == [
        {
            "agent": "n",
            "iqn": "iqn.2026-07.com.controller:pc1.ubuntu",
            "os": "ubuntu",
        }
    ]
    assert record["asset"] == "X7"


def test_a_record_with_both_ways_of_disks_is_not_guessed_at(
    api: APIClient, layout: Layout
) -> None:
    disk = '{agent: n, iqn: "iqn.2026-07.com.controller:pc1.%s", os: %s}'
    layout.workers_yml.write_text(
        "workers:\n  pc1:\n    hostname: pc1\n"
        f"    disk: {disk % ('ubuntu', 'ubuntu')}\n"
        f"    disks: [{disk % ('windows', 'windows')}]\n"
    )
    assert api.get("/workers/pc1").status_code == 404
    page = api.get("/healthz?verbose=1").json()
    problems = next(f for f in page["files"] if f["name"] == "workers")["problems"]
    assert any("pc1" in text and "both disk and disks" in text for text in problems)
