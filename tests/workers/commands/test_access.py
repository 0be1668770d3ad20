"""`access`: who may log in, from the shell; one command goes back for the whole room."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from ipxeready.storage.paths import Layout
from tests.nodes import BASE, RealNode
from tests.shell import run
from tests.workers.helpers import ledger
from tests.workers.test_access import give, secrets

Make = Callable[..., dict[str, Any]]


def test_one_command_goes_back_for_the_whole_room(
    api: APIClient, node: RealNode, other_node: RealNode, worker: Make, layout: Layout
) -> None:
    node.register("n", access="chap")
    other_node.register("m", access="acl")
    names = [node.name(), node.name(), node.name()]
    for name, agent in zip(names, ("n", "m", "m"), strict=True):
        worker(name)
        give(api, name, disk_agent=agent)
    assert run("access", "chap", "--worker", names[2], "--json").code == 0
    ended = run("access", "off", "--all", "--json")
    assert ended.code == 0, ended
    iqns = [f"{BASE}:{name}.debian" for name in names]
    targets = {**node.targets(), **other_node.targets()}
    assert {targets[iqn]["access"] for iqn in iqns} == {"off"}
    assert all("access" not in ledger(layout)[name] for name in names)
    assert {entry["access"] for entry in api.get("/agents").json()} == {"off"}
    told = {
        entry.get("node") or entry["worker"]: entry for entry in ended.json["results"]
    }
    assert told["n"]["changed"] == [iqns[0]]
    assert told[names[2]]["changed"] == [iqns[2]]
    for secret in secrets(layout).values():
        assert secret["secret"] not in ended.out + ended.err


def test_a_node_that_is_gone_stops_no_other(
    api: APIClient, node: RealNode, worker: Make
) -> None:
    node.register("n", access="acl")
    body = {"id": "dead", "base_url": "http://127.0.0.1:9", "token": "t"}
    api.post("/agents", body)
    name = node.name()
    worker(name)
    give(api, name, disk_agent="n")
    ended = run("access", "off", "--all")
    assert ended.code == 3
    assert "node dead at http://127.0.0.1:9 is unreachable" in ended.err
    assert node.targets()[f"{BASE}:{name}.debian"]["access"] == "off"
    assert api.get("/agents/dead").json()["access"] == "acl"
    alone = run("access", "off", "--node", "dead")
    assert alone.code == 1


def test_a_worker_gets_a_word_a_secret_and_loses_the_word(
    api: APIClient, node: RealNode, worker: Make, layout: Layout
) -> None:
    node.register("n", access="acl")
    name = node.name()
    worker(name)
    give(api, name)
    assert run("access", "chap", "--worker", name).code == 0
    before = secrets(layout)[name]["secret"]
    ended = run("access", "--worker", name, "--rotate")
    assert (ended.code, ended.out.strip()) == (0, "1 targets set")
    after = secrets(layout)[name]["secret"]
    assert after != before
    assert after not in ended.out + ended.err
    assert run("access", "node", "--worker", name).code == 0
    assert "access" not in ledger(layout)[name]
    assert node.targets()[f"{BASE}:{name}.debian"]["access"] == "acl"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("off",), "say whose"),
        (("off", "--all", "--node", "n"), "give --all, or"),
        (("--node", "n"), "give one of"),
        (("node", "--node", "n"), "worker's own word"),
        (("node", "--all"), "worker's own word"),
        (("off", "--node", "n", "--rotate"), "for workers"),
    ],
)
def test_it_says_how_to_call_it(
    layout: Layout, words: tuple[str, ...], says: str
) -> None:
    ended = run("access", *words)
    assert ended.code == 2
    assert says in ended.err
