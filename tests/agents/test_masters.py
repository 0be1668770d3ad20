"""GET /masters: the masters of all enabled disk nodes."""

from __future__ import annotations

import time

import pytest
from rest_framework.test import APIClient

from agents.services import agent_register
from ipxeready.actors import SYSTEM
from tests.agents.fakes import http_server, silent
from tests.agents.helpers import trail
from tests.nodes import BASE, MIB, RealNode


def test_it_lists_each_nodes_masters(
    api: APIClient, node: RealNode, other_node: RealNode
) -> None:
    name = f"{node.name('ubuntu')}_tpl_v1.img"
    node.image(name, 2 * MIB)
    node.image(f"{node.name()}.debian.img")
    node.register("a", iscsi_server="192.0.2.7")
    other_node.register("b")
    answer = api.get("/masters")
    assert answer.status_code == 200
    first, second = answer.json()["agents"]
    assert (first["agent"], first["iscsi_server"]) == ("a", "192.0.2.7")
    (found,) = [master for master in first["masters"] if master["name"] == name]
    assert set(found) == {"name", "size", "mtime"}
    assert found["size"] == 2 * MIB
    assert all("_tpl_" in master["name"] for master in first["masters"])
    assert (second["agent"], second["iscsi_server"]) == ("b", "127.0.0.1")
    assert "error" not in first
    assert [line["status"] for line in trail("master.list")] == ["ok"]


def test_a_master_from_which_nothing_is_cloned_says_why(
    api: APIClient, node: RealNode
) -> None:
    name = f"{node.name('cloud')}_tpl_v1.img"
    node.image(name, content=b"QFI\xfb\0\0\0\3")
    node.register("a")
    (listed,) = api.get("/masters").json()["agents"]
    (found,) = [master for master in listed["masters"] if master["name"] == name]
    assert "qcow2 inside" in found["problem"]
    page = api.get("/agents/a/images").json()["images"]
    (found,) = [image for image in page if image["name"] == name]
    assert "qcow2 inside" in found["problem"]
    answer = api.post("/agents/a/luns/disk", {"iqn": f"{BASE}:x", "master": name})
    assert answer.status_code == 409
    assert "image convert" in answer.json()["detail"]["error"]


def test_a_dead_and_a_hung_node_do_not_block_the_rest(
    api: APIClient, node: RealNode, nobody: str, impatient: None
) -> None:
    node.register("a")
    agent_register(actor=SYSTEM, agent_id="b", base_url=nobody)
    with silent() as url:
        agent_register(actor=SYSTEM, agent_id="c", base_url=url)
        before = time.monotonic()
        answer = api.get("/masters")
        assert time.monotonic() - before < 2.5
    assert answer.status_code == 200
    found = {entry["agent"]: entry for entry in answer.json()["agents"]}
    assert "error" not in found["a"]
    assert found["b"]["masters"] == []
    assert "unreachable" in found["b"]["error"]
    assert "unreachable" in found["c"]["error"]


def test_all_dead_is_502_naming_them(api: APIClient, nobody: str) -> None:
    agent_register(actor=SYSTEM, agent_id="a", base_url=nobody)
    agent_register(actor=SYSTEM, agent_id="off", base_url=nobody, enabled=False)
    answer = api.get("/masters")
    assert answer.status_code == 502
    assert "a at" in answer.json()["detail"]
    assert [line["status"] for line in trail("master.list")] == ["failed"]


def test_no_enabled_disk_node_is_an_empty_list(api: APIClient, node: RealNode) -> None:
    assert api.get("/masters").json() == {"agents": []}
    node.register("off", enabled=False)
    node.register("cds", role={"disk": False, "cd": True})
    answer = api.get("/masters")
    assert (answer.status_code, answer.json()) == (200, {"agents": []})


@pytest.mark.parametrize(
    "body", [b"[]", b'{"masters": 7}', b'{"masters": [{"size": 1}]}', b"<html>"]
)
def test_nonsense_is_that_nodes_error(
    api: APIClient, node: RealNode, body: bytes
) -> None:
    node.register("a")
    with http_server(lambda method, path: (200, {}, body)) as fake:
        agent_register(actor=SYSTEM, agent_id="b", base_url=fake.base_url)
        answer = api.get("/masters")
    assert answer.status_code == 200
    assert "error" in answer.json()["agents"][1]


def test_strangers_may_not_and_viewers_may(
    stranger: APIClient, as_viewer: APIClient
) -> None:
    assert stranger.get("/masters").status_code == 401
    assert as_viewer.get("/masters").status_code == 200
