"""POST /agents: a node gets into the registry."""

from __future__ import annotations

import stat
from typing import Any

import pytest
from rest_framework.test import APIClient

from ipxeready.storage.paths import Layout
from tests.agents.helpers import registry, trail

BODY = {"id": "node-1", "base_url": "http://192.0.2.10:4840", "token": "secret-word"}


def test_it_is_written_with_sensible_defaults_and_shown_without_its_token(
    api: APIClient, layout: Layout
) -> None:
    answer = api.post("/agents", BODY)
    assert answer.status_code == 201, answer.content
    assert answer.json() == {
        "id": "node-1",
        "base_url": "http://192.0.2.10:4840",
        "iscsi_server": "",
        "role": {"disk": True, "cd": False},
        "tags": [],
        "enabled": True,
        "access": "acl",
    }
    assert registry(layout)["node-1"] == {
        "base_url": "http://192.0.2.10:4840",
        "token": "secret-word",
        "iscsi_server": "",
        "role": {"disk": True, "cd": False},
        "tags": [],
        "enabled": True,
        "access": "acl",
    }
    assert stat.S_IMODE(layout.agents_yml.stat().st_mode) == 0o600


def test_everything_can_be_given_and_comments_of_the_file_stay(
    api: APIClient, layout: Layout
) -> None:
    layout.agents_yml.write_text(
        "# ours\nagents:\n  old: {base_url: 'http://192.0.2.9:4840'}\n"
    )
    body = {
        **BODY,
        "iscsi_server": "192.0.2.99",
        "role": {"disk": False, "cd": True},
        "tags": ["storage", "stgt"],
        "enabled": False,
        "access": "chap",
    }
    assert api.post("/agents/", body).status_code == 201
    assert registry(layout)["node-1"] == {k: v for k, v in body.items() if k != "id"}
    assert layout.agents_yml.read_text().startswith(
        "# ours\nagents:\n  old: {base_url: 'http://192.0.2.9:4840'}\n"
    )


def test_the_id_is_lower_cased(api: APIClient) -> None:
    assert api.post("/agents", {**BODY, "id": "Node-1"}).json()["id"] == "node-1"


def test_an_id_that_is_taken_is_a_conflict(api: APIClient, layout: Layout) -> None:
    api.post("/agents", BODY)
    before = layout.agents_yml.read_bytes()
    answer = api.post(
        "/agents", {**BODY, "id": "NODE-1", "base_url": "http://192.0.2.11:1"}
    )
    assert answer.status_code == 409
    assert "node-1" in str(answer.json()["detail"])
    assert layout.agents_yml.read_bytes() == before


@pytest.mark.parametrize(
    "url",
    [
        "ftp://192.0.2.1",
        "192.0.2.1:4840",
        "http://",
        "http://:4840",
        "http://user:word@192.0.2.1:4840",
        "http://192.0.2.1:4840?x=1",
        "http://192.0.2.1:4840#x",
        "http://192.0.2.1:70000",
        "http://192.0.2.1:0",
        "http://192.0.2.999",
        "http://a b:4840",
        "http://a\nb:4840",
        "http://evil;echo:4840",
        "http://[fe80::1%25eth0]:4840",
        "http://192.0.2.1/../x",
        "file:///etc/passwd",
    ],
)
def test_a_base_url_that_is_no_address_of_an_agent_is_refused(
    api: APIClient, layout: Layout, url: str
) -> None:
    answer = api.post("/agents", {**BODY, "base_url": url})
    assert answer.status_code == 400
    assert "base_url" in answer.json()["detail"]
    assert registry(layout) == {}


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", "../etc"),
        ("id", "-a"),
        ("id", "a" * 64),
        ("id", "probe"),
        ("token", "${IPXE_CP_TOKEN}"),
        ("token", "x${HOME}"),
        ("token", "two words"),
        ("token", "ümlaut"),
        ("token", "a\r\nX-Evil: 1"),
        ("iscsi_server", "http://192.0.2.1"),
        ("iscsi_server", "192.0.2.1 && shell"),
        ("iscsi_server", "192.0.2.1:3260"),
        ("role", {"disk": "perhaps"}),
        ("role", {"disc": True}),
        ("tags", ["two words"]),
        ("tags", "lio"),
        ("enabled", "perhaps"),
        ("access", "everybody"),
        ("colour", "red"),
    ],
)
def test_a_wrong_value_is_refused_by_its_field(
    api: APIClient, layout: Layout, field: str, value: Any
) -> None:
    answer = api.post("/agents", {**BODY, field: value})
    assert answer.status_code == 400, answer.content
    assert field in answer.json()["detail"]
    assert registry(layout) == {}


@pytest.mark.parametrize("field", ["id", "base_url"])
def test_id_and_base_url_are_needed(api: APIClient, field: str) -> None:
    answer = api.post("/agents", {k: v for k, v in BODY.items() if k != field})
    assert answer.status_code == 400
    assert field in answer.json()["detail"]


def test_a_form_that_leaves_switches_out_does_not_turn_them_off(api: APIClient) -> None:
    answer = api.post("/agents", BODY, format="multipart")
    assert answer.status_code == 201, answer.content
    assert answer.json()["enabled"] is True
    assert answer.json()["role"] == {"disk": True, "cd": False}


def test_strangers_viewers_and_operators_may_not(
    stranger: APIClient, as_viewer: APIClient, as_operator: APIClient, layout: Layout
) -> None:
    assert stranger.post("/agents", BODY).status_code == 401
    assert as_viewer.post("/agents", BODY).status_code == 403
    assert as_operator.post("/agents", BODY).status_code == 403
    stranger.credentials(HTTP_AUTHORIZATION="Bearer wrong")
    assert stranger.post("/agents", BODY).status_code == 401
    assert registry(layout) == {}


def test_the_audit_says_who_and_what_but_not_the_token(
    api: APIClient, layout: Layout
) -> None:
    api.post("/agents", BODY)
    (line,) = trail("agent.register")
    assert line["agent"] == "node-1"
    assert line["status"] == "ok"
    assert line["base_url"] == BODY["base_url"]
    assert line["client"] == "127.0.0.1"
    assert "secret-word" not in layout.operations.read_text()


def test_a_broken_registry_takes_no_writes_and_says_where(
    api: APIClient, layout: Layout
) -> None:
    layout.agents_yml.write_text("agents:\n\tnode-2: {}\n")
    answer = api.post("/agents", BODY)
    assert answer.status_code == 503
    assert "agents.yml" in str(answer.json()["detail"])
    assert "line 2" in str(answer.json()["detail"])
    assert layout.agents_yml.read_text() == "agents:\n\tnode-2: {}\n"
