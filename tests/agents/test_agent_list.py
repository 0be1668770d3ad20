"""GET /agents and GET /agents/{id}: the registry, never its tokens; with live=true what the nodes say."""

from __future__ import annotations

import time

import pytest
from rest_framework.test import APIClient

from agents.services import agent_register
from ipxeready.actors import SYSTEM
from ipxeready.storage.paths import Layout
from tests.agents.fakes import silent
from tests.nodes import RealNode

FILE = """\
agents:
  b: {base_url: "http://192.0.2.2:4840", token: secret-word, tags: [lio], role: {cd: true}}
  a:
    base_url: http://192.0.2.1:4840
    token: 12345678
    enabled: false
"""


def test_it_lists_by_id_without_tokens(api: APIClient, layout: Layout) -> None:
    layout.agents_yml.write_text(FILE)
    answer = api.get("/agents")
    assert [entry["id"] for entry in answer.json()] == ["a", "b"]
    assert answer.json()[1] == {
        "id": "b",
        "base_url": "http://192.0.2.2:4840",
        "iscsi_server": "",
        "role": {"disk": True, "cd": True},
        "tags": ["lio"],
        "enabled": True,
        "access": "off",  # the file says nothing: as it was
    }
    assert b"secret-word" not in answer.content
    assert b"12345678" not in answer.content
    assert api.get("/api/cp/agents/").json() == answer.json()
    assert api.get("/agents/b").json() == answer.json()[1]


def test_an_empty_registry_is_an_empty_list(api: APIClient) -> None:
    assert api.get("/agents").json() == []


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("enabled=true", ["b"]),
        ("enabled=0", ["a"]),
        ("role=cd", ["b"]),
        ("tag=lio", ["b"]),
        ("access=off", ["a", "b"]),
        ("access=acl", []),
        ("search=192.0.2.1", ["a"]),
    ],
)
def test_filters(api: APIClient, layout: Layout, query: str, ids: list[str]) -> None:
    layout.agents_yml.write_text(FILE)
    assert [entry["id"] for entry in api.get(f"/agents?{query}").json()] == ids


def test_it_is_paged_only_when_asked(api: APIClient, layout: Layout) -> None:
    layout.agents_yml.write_text(FILE)
    answer = api.get("/agents?limit=1&offset=1").json()
    assert answer["count"] == 2
    assert [entry["id"] for entry in answer["results"]] == ["b"]


@pytest.mark.parametrize(
    "query", ["live=yes", "enabled=perhaps", "role=tape", "liv=true", "limit=x"]
)
def test_a_wrong_parameter_is_refused(api: APIClient, query: str) -> None:
    assert api.get(f"/agents?{query}").status_code == 400


def test_strangers_may_not_and_viewers_may(
    stranger: APIClient, as_viewer: APIClient
) -> None:
    assert stranger.get("/agents").status_code == 401
    assert stranger.get("/agents/a").status_code == 401
    assert as_viewer.get("/agents").status_code == 200
    assert as_viewer.get("/agents/a").status_code == 404


def test_live_asks_all_side_by_side_and_one_that_hangs_costs_only_its_own_answer(
    api: APIClient, node: RealNode, nobody: str, impatient: None
) -> None:
    node.register("good")
    node.register("off", enabled=False)
    node.register("wrong-token", token="not-the-token")
    agent_register(actor=SYSTEM, agent_id="dead", base_url=nobody)
    with silent() as url, silent() as other:
        agent_register(actor=SYSTEM, agent_id="hung-1", base_url=url)
        agent_register(actor=SYSTEM, agent_id="hung-2", base_url=other)
        before = time.monotonic()
        answer = api.get("/agents?live=1")
        took = time.monotonic() - before
    assert answer.status_code == 200
    found = {entry["id"]: entry for entry in answer.json()}
    assert found["good"]["health"] == "ok"
    assert found["good"]["capabilities"]["backend"] == "files"
    assert found["off"]["health"] == "disabled"
    assert found["off"]["capabilities"] is None
    assert "token" in found["wrong-token"]["health"]
    assert "refused" in found["dead"]["health"]
    assert "no answer within 1 s" in found["hung-1"]["health"]
    assert "no answer within 1 s" in found["hung-2"]["health"]
    assert took < 2.5
    assert node.token.encode() not in answer.content


def test_one_node_can_be_asked(api: APIClient, node: RealNode) -> None:
    node.register("good")
    answer = api.get("/agents/good?live=true").json()
    assert answer["health"] == "ok"
    assert set(answer["capabilities"]) >= {
        "backend",
        "base_iqn",
        "reflink",
        "free_bytes",
    }
