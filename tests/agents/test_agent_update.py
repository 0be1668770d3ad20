"""PUT /agents/{id}: what is given changes, the rest and an unsaid token stay."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from ipxeready.storage.paths import Layout
from tests.agents.helpers import registry, trail

URL = "http://192.0.2.10:4840"
OTHER = "http://192.0.2.66:4840"
FILE = f"""\
agents:
  # the big one
  node-1:
    base_url: {URL}
    token: ${{NODE_1_TOKEN}}   # from the unit file
    rack: 7
    role: {{disk: true, cd: true}}
    tags: [stgt]
"""


@pytest.fixture(autouse=True)
def _registry(layout: Layout) -> None:
    layout.agents_yml.write_text(FILE)


@pytest.mark.parametrize("token", [{}, {"token": ""}, {"token": None}])
def test_an_empty_token_keeps_the_old_one_and_every_comment(
    api: APIClient, layout: Layout, token: dict[str, Any]
) -> None:
    answer = api.put("/agents/node-1", {"enabled": False, **token})
    assert answer.status_code == 200, answer.content
    assert answer.json()["enabled"] is False
    assert answer.json()["role"] == {"disk": True, "cd": True}
    assert layout.agents_yml.read_text() == FILE + "    enabled: false\n"


def test_the_whole_body_of_a_registration_is_taken(
    api: APIClient, layout: Layout
) -> None:
    body = {
        "base_url": OTHER,
        "token": "another",
        "iscsi_server": "192.0.2.67",
        "role": {"disk": True, "cd": False},
        "tags": ["lio"],
        "enabled": True,
        "access": "off",
    }
    answer = api.put("/agents/Node-1/", body)
    assert answer.status_code == 200, answer.content
    assert answer.json() == {
        "id": "node-1",
        **{k: v for k, v in body.items() if k != "token"},
    }
    assert registry(layout)["node-1"] == {**body, "rack": 7}


def test_half_a_role_leaves_the_other_half(api: APIClient) -> None:
    answer = api.put("/agents/node-1", {"role": {"cd": False}})
    assert answer.json()["role"] == {"disk": True, "cd": False}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("base_url", "gopher://x"),
        ("token", "${SECRET_KEY}"),
        ("iscsi_server", "a b"),
        ("tags", ["-"]),
        ("id", "node-2"),
        ("roles", {}),
    ],
)
def test_a_wrong_value_changes_nothing(
    api: APIClient, layout: Layout, field: str, value: Any
) -> None:
    answer = api.put("/agents/node-1", {field: value})
    assert answer.status_code == 400
    assert field in answer.json()["detail"]
    assert layout.agents_yml.read_text() == FILE


def test_nothing_given_is_refused(api: APIClient) -> None:
    assert api.put("/agents/node-1", {}).status_code == 400


def test_there_must_be_such_a_node(api: APIClient) -> None:
    assert api.put("/agents/node-9", {"enabled": True}).status_code == 404


def test_nobody_but_an_administrator_may(
    stranger: APIClient, as_viewer: APIClient, as_operator: APIClient, layout: Layout
) -> None:
    for change in ({"enabled": False}, {"base_url": OTHER, "token": "t"}):
        assert stranger.put("/agents/node-1", change).status_code == 401
        assert as_viewer.put("/agents/node-1", change).status_code == 403
        assert as_operator.put("/agents/node-1", change).status_code == 403
    assert layout.agents_yml.read_text() == FILE


def test_the_audit_names_the_changed_fields_and_no_token(
    api: APIClient, layout: Layout
) -> None:
    api.put("/agents/node-1", {"token": "brand-new-word", "enabled": False})
    (line,) = trail("agent.update")
    assert line["changed"] == ["enabled", "token"]
    assert "brand-new-word" not in layout.operations.read_text()


def test_a_record_that_does_not_validate_must_be_mended_first(
    api: APIClient, layout: Layout
) -> None:
    layout.agents_yml.write_text("agents:\n  node-1: {base_url: nonsense}\n")
    answer = api.put("/agents/node-1", {"base_url": URL, "token": "x"})
    assert answer.status_code == 503
    assert layout.agents_yml.read_text() == "agents:\n  node-1: {base_url: nonsense}\n"
