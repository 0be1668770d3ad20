"""GET and PUT /settings/auto-register."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from ipxeready.storage.paths import Layout
from tests.workers.helpers import M1, refusal, snapshot, trail

PATH = "/settings/auto-register"


def test_the_environment_is_only_the_start_value(
    api: APIClient, layout: Layout, configured: Callable[..., None]
) -> None:
    assert api.get(PATH).json() == {"enabled": True}
    configured(auto_register=False)
    assert api.get(PATH).json() == {"enabled": False}
    assert json.loads(layout.settings_json.read_text()) == {}
    assert api.put(PATH, {"enabled": True}).json() == {"enabled": True}
    assert json.loads(layout.settings_json.read_text()) == {"auto_register": True}
    assert api.get(PATH).json() == {"enabled": True}
    (line,) = trail(layout, "settings.auto_register")
    assert (line["enabled"], line["client"]) == (True, "127.0.0.1")


def test_it_counts_from_the_next_boot_on(
    api: APIClient, layout: Layout, boot: Callable[[str], str]
) -> None:
    api.put(PATH, {"enabled": False})
    before = snapshot(layout)
    assert boot(f"mac={M1}") == "#!ipxe\n# no per-worker boot vars found\n"
    assert snapshot(layout) == before
    api.put(PATH, {"enabled": True})
    assert "set hostname worker-01\n" in boot(f"mac={M1}")
    layout.settings_json.write_text('{"auto_register": false}')
    assert "no per-worker" in boot("mac=52:54:00:00:00:09")


def test_other_keys_stay(api: APIClient, layout: Layout) -> None:
    layout.settings_json.write_text('{"theirs": [1, "é"]}')
    api.put(PATH, {"enabled": False})
    assert json.loads(layout.settings_json.read_text()) == {
        "theirs": [1, "é"],
        "auto_register": False,
    }


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ({}, "enabled: is needed"),
        ({"enabled": None}, "enabled: "),
        ({"enabled": "maybe"}, "'maybe' must be true or false"),
        ({"enabled": "true"}, "'true' must be true or false"),
        ({"enabled": 1}, "1 must be true or false"),
        ({"enabled": []}, "must be true or false"),
        ({"enabled": "x" * 10_000}, "must be true or false"),
        ({"enabled": True, "enbaled": True}, "enbaled: unknown field"),
    ],
)
def test_what_is_no_boolean_is_refused(
    api: APIClient, layout: Layout, body: dict[str, Any], rule: str
) -> None:
    before = snapshot(layout)
    status, words = refusal(api, "put", PATH, body)
    assert (status, rule in words) == (400, True), words
    assert len(words) < 300
    assert snapshot(layout) == before


def test_a_form_that_says_nothing_has_not_said_false(
    api: APIClient, layout: Layout
) -> None:
    form = "application/x-www-form-urlencoded"
    assert api.put(PATH, "", content_type=form).status_code == 400
    assert api.put(PATH, "enabled=", content_type=form).status_code == 400
    assert api.put(PATH, "enabled=perhaps", content_type=form).status_code == 400
    assert api.put(PATH, "enabled=0", content_type=form).json() == {"enabled": False}
    assert api.put(PATH, "enabled=true", content_type=form).json() == {"enabled": True}


@pytest.mark.parametrize(
    "content",
    [
        "{",
        '{"auto_register": "no"}',
        "[]",
        '{"a":1,"a":2}',
        r'{"\ud800":1}',
        r'{"a":["\ud800"]}',
    ],
)
def test_a_broken_file_keeps_its_last_good_value_and_takes_no_write(
    api: APIClient, layout: Layout, content: str
) -> None:
    api.put(PATH, {"enabled": False})
    layout.settings_json.write_text(content)
    assert api.get(PATH).json() == {"enabled": False}
    status, words = refusal(api, "put", PATH, {"enabled": True})
    assert status == 503
    assert "settings" in words
    assert layout.settings_json.read_text() == content


def test_prefix_slash_parameters_and_roles(
    api: APIClient,
    as_viewer: APIClient,
    as_operator: APIClient,
    stranger: APIClient,
) -> None:
    path = f"/api/cp{PATH}/"
    assert stranger.get(path).status_code == 401
    assert stranger.put(path, {"enabled": True}).status_code == 401
    assert as_viewer.get(path).json() == {"enabled": True}
    assert as_viewer.put(path, {"enabled": True}).status_code == 403
    assert as_operator.put(path, {"enabled": False}).status_code == 200
    assert refusal(api, "get", f"{path}?x=1")[0] == 400
    assert api.delete(path).status_code == 405
