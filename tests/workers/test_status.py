"""GET /workers/{id}/status: the record beside what dnsmasq and the nodes really have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from agents.services import agent_register
from ipxeready.actors import SYSTEM
from ipxeready.storage.paths import Layout
from tests.nodes import BASE, RealNode
from tests.workers.helpers import M1, M2, snapshot

Make = Callable[..., dict[str, Any]]


def test_a_new_worker_has_its_binding_only(api: APIClient, worker: Make) -> None:
    record = worker("pc1", mac=M1)
    answer = api.get("/workers/PC1/status")
    assert answer.status_code == 200
    assert answer.json() == {
        "worker": api.get("/workers/pc1").json(),
        "actual": {
            "dnsmasq": {"hostname": "pc1", "mac": M1},
            "disks": [],
            "cd": None,
        },
    }
    assert answer.json()["worker"]["worker_id"] == record["worker_id"]


def test_without_a_binding(api: APIClient, layout: Layout) -> None:
    layout.workers_yml.write_text("workers:\n  pc1: {hostname: pc1}\n")
    layout.dhcp_hosts.write_text(f"{M1},other\n")
    assert api.get("/workers/pc1/status").json()["actual"]["dnsmasq"] is None


def test_several_macs(api: APIClient, layout: Layout) -> None:
    layout.workers_yml.write_text("workers:\n  pc1: {hostname: pc1}\n")
    layout.dhcp_hosts.write_text(f"{M1},{M2},pc1\n")
    actual = api.get("/workers/pc1/status").json()["actual"]
    assert actual["dnsmasq"] == {"hostname": "pc1", "mac": M1, "macs": [M1, M2]}


def test_targets_that_are_there_and_gone(
    api: APIClient, node: RealNode, worker: Make
) -> None:
    node.register("n")
    name = node.name()
    worker(name)
    for os in ("debian", "ubuntu"):
        body = {"type": "empty", "os": os, "size": "1M"}
        assert api.post(f"/workers/{name}/luns/disk", body).status_code == 201
    gone = f"{BASE}:{name}.ubuntu"
    assert api.delete(f"/agents/n/luns?iqn={gone}").status_code == 200
    debian, ubuntu = api.get(f"/workers/{name}/status").json()["actual"]["disks"]
    assert (debian["os"], debian["exists"]) == ("debian", True)
    assert debian["target"] == node.targets()[f"{BASE}:{name}.debian"]
    assert ubuntu == {
        "os": "ubuntu",
        "access": "acl",
        "exists": False,
        "target": None,
    }


@pytest.mark.usefixtures("impatient")
def test_a_node_that_does_not_answer_leaves_it_open(
    api: APIClient, layout: Layout, node: RealNode
) -> None:
    node.register("n")
    agent_register(
        actor=SYSTEM, agent_id="dead", base_url="http://127.0.0.1:9", token="t"
    )
    disks = [
        f"{{os: {os}, agent: {agent}, iqn: '{BASE}:pc1.{os}'}}"
        for os, agent in (("debian", "dead"), ("ubuntu", "n"), ("esxi", "nowhere"))
    ]
    cd = f"{{agent: dead, iqn: '{BASE}:pc1.windows.iso', iso: a.iso}}"
    layout.workers_yml.write_text(
        f"workers:\n  pc1: {{hostname: pc1, disks: [{', '.join(disks)}], cd: {cd}}}\n"
    )
    before = snapshot(layout)
    answer = api.get("/workers/pc1/status")
    assert answer.status_code == 200, answer.content
    dead, there, nowhere = answer.json()["actual"]["disks"]
    assert (dead["exists"], dead["target"]) == (None, None)
    assert "unreachable" in dead["error"]
    assert there == {
        "os": "ubuntu",
        "access": "acl",
        "exists": False,
        "target": None,
    }
    assert (nowhere["exists"], "no node nowhere" in nowhere["error"]) == (None, True)
    assert answer.json()["actual"]["cd"]["exists"] is None
    assert snapshot(layout) == before


def test_who_may_ask_and_how(
    api: APIClient, as_viewer: APIClient, stranger: APIClient, worker: Make
) -> None:
    worker("pc1")
    path = "/api/cp/workers/pc1/status/"
    assert stranger.get(path).status_code == 401
    assert as_viewer.get(path).status_code == 200
    assert api.get("/workers/nobody/status").status_code == 404
    assert api.get(f"{path}?live=true").status_code == 400
    assert api.post(path, {}).status_code == 405
