"""/agents/{id}/jobs...: what a node is at, seen and cancelled through the control plane."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests
from rest_framework.test import APIClient

from agents.services import agent_register
from ipxeready.actors import SYSTEM
from tests.agents.helpers import trail
from tests.agents.node.node_lab import BASE, TOKEN
from tests.agents.node.test_node_serve import Agent, agent
from tests.nodes import RealNode
from tests.processes import eventually

MASTER = "debian_tpl_v1.img"
IQN = f"{BASE}:pc1.debian"
NONE = "20260101-000000-00000000"


@pytest.fixture
def slow(tmp_path: Path, layout: object) -> Iterator[Agent]:
    """A node, registered as `slow`, whose disk takes its time."""
    folder = tmp_path / "node" / "root" / "images"
    folder.mkdir(parents=True)
    (folder / MASTER).write_bytes(os.urandom(64 << 20))
    with agent(tmp_path / "node", None, slow=True) as process:
        url = f"http://127.0.0.1:{process.port}"
        agent_register(actor=SYSTEM, agent_id="slow", base_url=url, token=TOKEN)
        yield process


@pytest.fixture
def quick(layout: object, node: RealNode) -> RealNode:
    """A node, registered as `n`, that has no job of these ids."""
    node.register("n")
    return node


def copy(process: Agent) -> str:
    """The id of a copy that is under way."""
    made = requests.post(
        f"http://127.0.0.1:{process.port}/lun/disk",
        json={"iqn": IQN, "master": MASTER},
        headers={"Authorization": f"Bearer {TOKEN}", "Prefer": "respond-async"},
        timeout=10,
    )
    assert made.status_code == 202
    return str(made.json()["id"])


@pytest.mark.case(65)
def test_copy_of_a_node_is_seen_and_cancelled_from_here(
    api: APIClient, slow: Agent
) -> None:
    job_id = copy(slow)
    path = f"/agents/slow/jobs/{job_id}"
    listed = api.get("/agents/slow/jobs").json()
    assert [each["id"] for each in listed] == [job_id]
    eventually(lambda: api.get(path).json()["done"])
    found = api.get(path).json()
    assert (found["state"], found["total"]) == ("running", 64 << 20)
    assert found["about"]["iqn"] == IQN
    assert found["cancelling"] is False
    asked = api.delete(path)
    assert asked.status_code == 200
    assert asked.json()["cancelling"] is True
    eventually(lambda: api.get(path).json()["state"] == "cancelled")
    assert api.get(path).json()["cancelling"] is False
    assert api.get("/agents/slow/jobs?state=running").json() == []
    assert api.get("/agents/slow/luns").json() == []
    again = api.delete(path)
    assert again.status_code == 409
    assert again.json()["detail"]["agent"] == "slow"
    first, second = trail("job.cancel")
    assert (first["status"], first["agent"], first["job"]) == ("ok", "slow", job_id)
    assert (first["kind"], first["iqn"]) == ("lun.create_disk", IQN)
    assert second["status"] == "failed"


@pytest.mark.parametrize("name", [NONE, "x", "a%20b", "x" * 80])
def test_unknown_job_is_the_nodes_not_found(
    api: APIClient, quick: RealNode, name: str
) -> None:
    for call in (api.get, api.delete):
        answer = call(f"/agents/n/jobs/{name}")
        assert answer.status_code == 404
        assert answer.json()["detail"]["agent"] == "n"


@pytest.mark.parametrize("query", ["state=odd", "limit=0", "limit=1001", "limit=²"])
def test_wrong_filter_is_refused_before_the_node_is_asked(
    api: APIClient, quick: RealNode, query: str
) -> None:
    answer = api.get(f"/agents/n/jobs?{query}")
    assert answer.status_code == 400
    assert query.partition("=")[0] in answer.json()["detail"]


def test_unknown_and_dead_nodes_are_told_apart(
    api: APIClient, layout: object, nobody: str
) -> None:
    agent_register(actor=SYSTEM, agent_id="dead", base_url=nobody, token="t")
    for call in (api.get, api.delete):
        assert call(f"/agents/none/jobs/{NONE}").status_code == 404
        assert call(f"/agents/dead/jobs/{NONE}").status_code == 503
    assert api.get("/agents/dead/jobs").status_code == 503


def test_viewer_sees_jobs_and_an_operator_cancels_them(
    quick: RealNode, as_viewer: APIClient, as_operator: APIClient, stranger: APIClient
) -> None:
    path = f"/agents/n/jobs/{NONE}"
    assert as_viewer.get("/agents/n/jobs").status_code == 200
    assert as_viewer.get(path).status_code == 404
    assert as_viewer.delete(path).status_code == 403
    assert as_operator.delete(path).status_code == 404
    for call in (stranger.get, stranger.delete):
        assert call(path).status_code == 401
