"""Boots do not ask nodes: the last known path is sent, whatever has become of the image or the node."""

from __future__ import annotations

import time

import pytest
from rest_framework.test import APIClient

from ipxeready.storage.paths import Layout
from tests.nodes import BASE, RealNode, node

__all__ = ["node"]
MAC = "52:54:00:00:00:46"


def _script(api: APIClient) -> str:
    started = time.monotonic()
    answer = api.get(f"/boot-vars?mac={MAC}")
    assert answer.status_code == 200
    assert time.monotonic() - started < 1
    return str(answer.content.decode())


@pytest.mark.case(46)
def test_an_image_that_is_gone_and_a_node_that_is_down(
    api: APIClient, layout: Layout, node: RealNode
) -> None:
    node.register("n")
    name = node.name()
    api.post("/workers", {"worker_id": name, "mac": MAC})
    body = {"type": "empty", "os": "debian", "size": "1M"}
    assert api.post(f"/workers/{name}/luns/disk", body).status_code == 201
    before = _script(api)
    assert f"set base-iqn {BASE}\n" in before
    assert "set iscsi-server 127.0.0.1\n" in before
    # Past the control plane: the target goes, then the image.
    assert api.delete(f"/agents/n/luns?iqn={BASE}:{name}.debian").status_code == 200
    (node.folder / f"{name}.debian.img").unlink()
    assert _script(api) == before
    (disk,) = api.get(f"/workers/{name}/status").json()["actual"]["disks"]
    assert disk["exists"] is False
    # The node is silent: its address leads nowhere.
    gone = {"base_url": "http://127.0.0.1:9", "token": "t", "iscsi_server": "127.0.0.1"}
    assert api.put("/agents/n", gone).status_code == 200
    assert _script(api) == before


@pytest.mark.case(46)
def test_a_disk_that_is_not_there_yet_is_never_sent(
    api: APIClient, layout: Layout, node: RealNode
) -> None:
    node.register("n")
    api.post("/workers", {"worker_id": "pc1", "mac": MAC})
    for status in ("creating", "deleting"):
        disk = f"{{os: debian, agent: n, iqn: '{BASE}:pc1.debian', status: {status}}}"
        layout.workers_yml.write_text(
            f"workers:\n  pc1: {{hostname: pc1, disks: [{disk}]}}\n"
        )
        assert "base-iqn" not in _script(api)
