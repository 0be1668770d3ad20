"""Asking many nodes: side by side, within a time limit, without threads piling up."""

from __future__ import annotations

import threading
import time

import pytest

from agents import together
from agents.models import Agent
from agents.together import ask_all
from ipxeready.errors import NodeRefused, Unavailable


def _nodes(*names: str) -> list[Agent]:
    return [Agent(id=name, base_url=f"http://{name}.invalid") for name in names]


def test_results_and_errors_come_by_id_in_order() -> None:
    def ask(agent: Agent) -> str:
        if agent.id == "b":
            raise NodeRefused(agent="b", status=409, error="no")
        return agent.id.upper()

    found = ask_all(_nodes("c", "b", "a"), ask, 5)
    assert list(found) == ["c", "b", "a"]
    assert (found["c"], found["a"]) == ("C", "A")
    assert isinstance(found["b"], NodeRefused)


def test_nobody_is_waited_for_beyond_the_limit_and_all_wait_at_once() -> None:
    release = threading.Event()
    before = time.monotonic()
    found = ask_all(
        _nodes(*(f"slow-{n}" for n in range(12)), "quick"),
        lambda agent: release.wait(10) if agent.id != "quick" else True,
        0.4,
    )
    took = time.monotonic() - before
    release.set()
    assert took < 1.5
    assert found["quick"] is True
    assert all(
        isinstance(answer, Unavailable)
        for name, answer in found.items()
        if name != "quick"
    )


@pytest.mark.case(83)
def test_a_hung_node_takes_a_few_threads_and_the_others_go_on() -> None:
    release = threading.Event()
    running = 0
    guard = threading.Lock()
    most = 0

    def ask(agent: Agent) -> str:
        nonlocal running, most
        if agent.id == "fine":
            return "ok"
        with guard:
            running += 1
            most = max(most, running)
        release.wait(20)
        with guard:
            running -= 1
        return "late"

    nodes = _nodes("hung-for-good", "fine")
    before = threading.active_count()
    for _ in range(together.PER_NODE + 3):
        found = ask_all(nodes, ask, 0.1)
        assert found["fine"] == "ok"
        assert isinstance(found["hung-for-good"], Unavailable)
    assert most <= together.PER_NODE
    assert threading.active_count() - before <= together.PER_NODE + 2
    release.set()
    until = time.monotonic() + 5
    while running and time.monotonic() < until:
        time.sleep(0.01)
    assert ask_all(nodes, lambda agent: "back", 2)["hung-for-good"] == "back"


def test_a_bug_is_not_taken_for_an_answer() -> None:
    def ask(agent: Agent) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        ask_all(_nodes("x"), ask, 5)


def test_nobody_asked_is_nothing() -> None:
    assert ask_all([], lambda agent: 1, 1) == {}
