"""How a node is, as the API and its page tell it: well, with problems, hung, gone, older."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from agents import together
from ipxeready.actors import SYSTEM, Actor
from ipxeready.storage.paths import Layout
from ipxeready.users import services as users
from tests.agents import fakes
from tests.nodes import RealNode

PAGE = "/admin/agents/agent/n/change/"


def _get(api: Any, agent: str = "n") -> Any:
    answer = api.get(f"/agents/{agent}/health")
    assert answer.status_code == 200, answer.content
    return answer.json()


def _register(base_url: str, agent_id: str = "n") -> None:
    from agents.services import agent_register

    agent_register(actor=SYSTEM, agent_id=agent_id, base_url=base_url, token="t")


@pytest.fixture
def page(layout: Layout, administrator: Actor) -> Callable[[], str]:
    """The node's page, as an operator sees it."""
    users.user_create(
        actor=administrator, username="op", password="correct horse battery", role="operator"
    )  # fmt: skip
    client = Client()
    client.post(
        "/admin/login/", {"username": "op", "password": "correct horse battery"}
    )

    def get() -> str:
        answer = client.get(PAGE)
        assert answer.status_code == 200
        return answer.content.decode()

    return get


def test_a_nodes_own_words_come_through(api: Any, node: RealNode) -> None:
    node.register("n")
    found = _get(api)
    assert (found["agent"], found["reachable"]) == ("n", True)
    assert found["seconds"] >= 0
    assert found["health"]["backend"] == {"name": "files", "alive": True, "ours": True}
    assert found["health"]["problems"] == []
    assert "error" not in found


def test_health_is_for_those_who_may_read_and_of_nodes_that_are_there(
    api: Any, client: Client
) -> None:
    assert api.get("/agents/n/health").status_code == 404
    assert client.get("/agents/n/health").status_code == 401


@pytest.mark.tgtd
def test_the_page_tells_the_node_and_others_targets(
    stgt_node: RealNode, page: Callable[[], str]
) -> None:
    stgt_node.register("n", role={"disk": True, "cd": True})
    assert stgt_node.tgtd
    foreign = ("--mode", "target", "--tid", "999")
    stgt_node.tgtd.adm("--op", "new", *foreign, "-T", "iqn.2001-01.org.else:page")
    try:
        text = page()
    finally:
        stgt_node.tgtd.adm("--op", "delete", *foreign)
    assert "healthy" in text
    assert "1 target of somebody else in the same target system" in text
    assert "promised to disks that may grow" in text
    assert "without a target" in text
    assert stgt_node.token not in text


def test_problems_stand_first_and_are_escaped(page: Callable[[], str]) -> None:
    with fakes.health_like(problems=["<b>the mount</b> is gone"]) as fake:
        _register(fake.base_url)
        text = page()
    assert "&lt;b&gt;the mount&lt;/b&gt; is gone" in text
    assert text.index("is gone") < text.index("Target system")


@pytest.mark.case(83)
def test_a_hung_node_costs_its_own_page_a_few_seconds_and_others_nothing(
    api: Any, node: RealNode, page: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.together.PATIENCE", 0.5)
    waits: list[float] = []
    real = together.wait

    def wait(futures: Any, timeout: float) -> Any:
        waits.append(timeout)
        return real(futures, timeout=timeout)

    monkeypatch.setattr(together, "wait", wait)
    node.register("well")
    with fakes.silent() as base_url:
        _register(base_url)
        text = page()
        assert 0 < sum(waits) <= 0.5
        assert "does not answer" in text
        assert base_url in text
        assert _get(api, "well")["reachable"] is True


@pytest.mark.case(83)
@pytest.mark.usefixtures("impatient")
def test_many_questions_to_a_hung_node_gather_no_threads(api: Any) -> None:
    from agents.health import agent_health

    with fakes.silent() as base_url:
        _register(base_url)
        found: list[dict[str, Any]] = []
        _get(api)  # the pool's threads are there
        before = threading.active_count()
        threads = [
            threading.Thread(
                target=lambda: found.append(agent_health(actor=SYSTEM, agent_id="n"))
            )
            for _ in range(20)
        ]
        for thread in threads:
            thread.start()
        assert threading.active_count() <= before + len(threads) + 4
        for thread in threads:
            thread.join(20)
    assert [entry["reachable"] for entry in found] == [False] * 20
    assert all(entry["error"] for entry in found)


def test_a_node_that_is_gone_or_older_is_told(
    api: Any, nobody: str, page: Callable[[], str]
) -> None:
    _register(nobody)
    found = _get(api)
    assert (found["reachable"], found["health"]) == (False, None)
    assert "unreachable" in found["error"]
    assert "does not answer" in page()
    with fakes.http_server(lambda *_: (404, {}, b'{"detail": "no"}')) as fake:
        _register(fake.base_url, "old")
        found = _get(api, "old")
    assert found["reachable"] is True
    assert "older" in found["error"]


def test_nonsense_is_told_and_missing_numbers_are_none(
    api: Any, page: Callable[[], str]
) -> None:
    with fakes.health_like(room={"free": "much"}, targets={}) as fake:
        _register(fake.base_url)
        assert "not known yet" in page()
    with fakes.http_server(lambda *_: (200, {}, b'{"backend": 1}')) as fake:
        _register(fake.base_url, "odd")
        assert "/health" in _get(api, "odd")["error"]
