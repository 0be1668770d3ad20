"""What the tables say in words beside a success and its errors: rows that do different things on different nodes."""

from __future__ import annotations

import pytest
from django.test import Client
from rest_framework.test import APIClient

from agents.services import agent_register
from ipxeready.actors import SYSTEM
from ipxeready.storage.paths import Layout
from tests.agents.node import node_lab
from tests.nodes import BASE, RealNode, node, stgt_node

__all__ = ["node", "stgt_node"]
MAC, MAC2 = "52:54:00:00:00:01", "52:54:00:00:00:02"
DISK = {"type": "empty", "os": "debian", "size": "1M"}


@pytest.fixture
def pc(api: APIClient, node: RealNode) -> str:
    """A worker with a disk on node `n`."""
    node.register("n")
    name = node.name()
    assert api.post("/workers", {"worker_id": name, "mac": MAC}).status_code == 201
    assert api.post(f"/workers/{name}/luns/disk", DISK).status_code == 201
    return name


def _gone(api: APIClient) -> None:
    body = {"base_url": "http://127.0.0.1:9", "token": "t"}
    assert api.put("/agents/n", body).status_code == 200


def test_status_of_a_node_that_is_gone(api: APIClient, pc: str) -> None:
    _gone(api)
    answer = api.get(f"/workers/{pc}/status")
    assert answer.status_code == 200
    (disk,) = answer.json()["actual"]["disks"]
    assert disk["exists"] is None
    assert "unreachable" in disk["error"]


def test_the_same_mac_changes_nothing(api: APIClient, layout: Layout, pc: str) -> None:
    before = layout.dhcp_hosts.stat().st_mtime_ns
    answer = api.put(f"/workers/{pc}/mac", {"mac": "5254.0000.0001"}).json()
    assert (answer["changed"], answer["mac"]) == (False, MAC)
    assert layout.dhcp_hosts.stat().st_mtime_ns == before


def test_forget_takes_it_off_the_ledger_only(
    api: APIClient, node: RealNode, pc: str
) -> None:
    _gone(api)
    path = f"/workers/{pc}/luns/disk/debian"
    assert api.delete(path).status_code == 503
    answer = api.delete(f"{path}?forget=true")
    assert (answer.status_code, answer.json()["state"]) == (200, "registered")
    assert f"{BASE}:{pc}.debian" in node.targets()


def test_a_target_that_is_missing_may_be(api: APIClient, pc: str) -> None:
    iqn = f"{BASE}:{pc}.debian"
    assert api.delete(f"/agents/n/luns?iqn={iqn}").status_code == 200
    gone = api.delete(f"/agents/n/luns?iqn={iqn}&ignore_missing=true")
    assert gone.json() == {
        "deleted": iqn,
        "delete_file": False,
        "ignored_missing": True,
    }
    path = f"/workers/{pc}/luns/disk/debian"
    assert api.delete(path).status_code == 404
    assert api.delete(f"{path}?ignore_missing_target=true").status_code == 200


def test_a_deleted_disk_takes_what_boots_along(api: APIClient, pc: str) -> None:
    boot = {"os": "debian", "menu_default": "debian"}
    assert api.put(f"/workers/{pc}/default-os", boot).status_code == 200
    answer = api.delete(f"/workers/{pc}/luns/disk/debian").json()
    assert "default_os" not in answer
    assert "menu_default" not in answer.get("boot", {})
    assert answer["state"] == "registered"


@pytest.mark.tgtd
@pytest.mark.case(72)
@pytest.mark.parametrize(
    "path",
    ["/workers/{pc}", "/workers/{pc}/luns/disk/debian", "/agents/s/luns?iqn={iqn}"],
)
def test_an_open_session_is_409_naming_it_unless_forced(
    api: APIClient, stgt_node: RealNode, path: str
) -> None:
    assert stgt_node.tgtd
    stgt_node.register("s")
    name = stgt_node.name()
    api.post("/workers", {"worker_id": name, "mac": MAC})
    assert api.post(f"/workers/{name}/luns/disk", DISK).status_code == 201
    iqn = f"{BASE}:{name}.debian"
    path = path.format(pc=name, iqn=iqn)
    initiator = f"{BASE}:{name}"
    with node_lab.session(stgt_node.tgtd, iqn, initiator=initiator):
        answer = api.delete(path)
        assert answer.status_code == 409
        assert initiator in answer.content.decode()
        assert iqn in stgt_node.targets()
        mark = "&" if "?" in path else "?"
        assert api.delete(f"{path}{mark}force=true").status_code == 200
    assert iqn not in stgt_node.targets()


def test_masters_without_a_node_and_with_a_dead_one(
    api: APIClient, node: RealNode
) -> None:
    assert api.get("/masters").json() == {"agents": []}
    agent_register(
        actor=SYSTEM, agent_id="dead", base_url="http://127.0.0.1:9", token="t"
    )
    node.register("n")
    entries = {each["agent"]: each for each in api.get("/masters").json()["agents"]}
    assert "error" in entries["dead"] and "error" not in entries["n"]


def test_tokens_are_never_shown(api: APIClient, node: RealNode) -> None:
    node.register("n")
    for path in ("/agents", "/agents?live=true", "/agents/n", "/operations"):
        assert node.token not in api.get(path).content.decode()


def test_a_file_with_its_parts_and_a_miss(layout: Layout) -> None:
    (layout.public / "vmlinuz").write_bytes(b"0123456789")
    client = Client()
    part = client.get("/file/vmlinuz", HTTP_RANGE="bytes=2-4")
    assert part.status_code == 206
    assert b"".join(part.streaming_content) == b"234"  # type: ignore[attr-defined]
    for path in ("/file/none", "/file/../state/workers.yml", "/file/%2e%2e/config"):
        miss = client.get(path, HTTP_ACCEPT="text/html")
        assert miss.status_code == 404
        assert miss["Content-Type"].startswith("text/plain")


def test_the_verbose_health_wants_credentials(api: APIClient) -> None:
    assert Client().get("/healthz?verbose=1").status_code == 401
    assert {"status", "files", "dnsmasq", "nodes"} <= set(
        api.get("/healthz?verbose=1").json()
    )


def test_pages_only_when_asked(api: APIClient) -> None:
    for number in range(3):
        body = {"worker_id": f"pc{number}", "mac": f"52:54:00:00:01:{number:02x}"}
        api.post("/workers", body)
    assert [w["worker_id"] for w in api.get("/workers").json()] == ["pc0", "pc1", "pc2"]
    page = api.get("/workers?limit=2").json()
    assert (page["count"], len(page["results"])) == (3, 2)


def test_a_broken_file_refuses_writes_and_goes_on_reading(
    api: APIClient, layout: Layout
) -> None:
    api.post("/workers", {"worker_id": "pc1", "mac": MAC})
    layout.workers_yml.write_text('workers:\n  pc1: {hostname: "pc1}\n')
    before = layout.workers_yml.read_bytes()
    assert api.get("/workers/pc1").status_code == 200
    writes = [
        api.post("/workers", {"worker_id": "pc2", "mac": MAC2}),
        api.put("/workers/pc1/default-os", {"menu_timeout": 5}),
        api.delete("/workers/pc1"),
        api.post("/workers/delete/batch", {"worker_ids": ["pc1"]}),
    ]
    for answer in writes:
        assert answer.status_code == 503, answer.content
        words = answer.json()["detail"]
        assert "workers.yml" in words and "line" in words and "column" in words
    assert layout.workers_yml.read_bytes() == before
