"""DELETE /agents/{id}: gone from the registry, unless workers have something on it."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from agents import services
from ipxeready.storage.paths import Layout
from tests.agents.helpers import registry, trail


@pytest.fixture(autouse=True)
def _registry(layout: Layout) -> None:
    layout.agents_yml.write_text(
        "agents:\n  a: {base_url: 'http://192.0.2.1:1'}\n  b: {base_url: 'http://192.0.2.2:1'}\n"
    )


def test_it_goes_and_the_others_stay(api: APIClient, layout: Layout) -> None:
    answer = api.delete("/agents/A")
    assert answer.status_code == 200
    assert answer.json() == {"deleted": "a"}
    assert list(registry(layout)) == ["b"]
    assert [line["agent"] for line in trail("agent.delete")] == ["a"]


def test_it_stays_while_workers_have_disks_on_it_and_they_are_named(
    api: APIClient, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = {"a": ["worker-02", "worker-01"]}
    monkeypatch.setattr(services, "IN_USE", [lambda agent, most: held.get(agent, [])])
    answer = api.delete("/agents/a")
    assert answer.status_code == 409
    assert "worker-01, worker-02" in answer.json()["detail"]
    assert list(registry(layout)) == ["a", "b"]
    assert api.delete("/agents/b").status_code == 200


def test_a_record_that_does_not_validate_can_be_removed(
    api: APIClient, layout: Layout
) -> None:
    layout.agents_yml.write_text("agents:\n  a: {base_url: nonsense}\n")
    assert api.delete("/agents/a").status_code == 200
    assert registry(layout) == {}


def test_there_must_be_such_a_node(api: APIClient) -> None:
    assert api.delete("/agents/nope").status_code == 404


def test_unknown_parameters_and_bodies_are_refused(
    api: APIClient, layout: Layout
) -> None:
    assert api.delete("/agents/a?forced=true").status_code == 400
    assert api.delete("/agents/a", {"x": 1}).status_code == 400
    assert list(registry(layout)) == ["a", "b"]


def test_only_administrators_may(
    stranger: APIClient, as_viewer: APIClient, as_operator: APIClient, layout: Layout
) -> None:
    assert stranger.delete("/agents/a").status_code == 401
    assert as_viewer.delete("/agents/a").status_code == 403
    assert as_operator.delete("/agents/a").status_code == 403
    assert list(registry(layout)) == ["a", "b"]


@pytest.mark.parametrize(
    "what",
    [
        "disks: [{agent: a, os: debian, iqn: 'iqn.2026-07.com.controller:w7.debian'}]",
        "cd: {agent: a, iso: x.iso, iqn: 'iqn.2026-07.com.controller:w7.windows.iso'}",
    ],
)
def test_a_worker_of_the_ledger_holds_its_node(
    api: APIClient, layout: Layout, what: str
) -> None:
    layout.workers_yml.write_text(f"workers:\n  w7:\n    hostname: w7\n    {what}\n")
    answer = api.delete("/agents/a")
    assert answer.status_code == 409, answer.content
    assert "w7" in answer.json()["detail"]
    assert api.delete("/agents/b").status_code == 200
