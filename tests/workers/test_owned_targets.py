"""A target that a worker's record names is not taken off behind the record's back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rest_framework.test import APIClient

from tests.nodes import BASE, RealNode


def test_deleting_a_workers_target_on_its_node_is_refused_and_names_the_worker(
    api: APIClient, node: RealNode, worker: Callable[..., dict[str, Any]]
) -> None:
    node.register("n")
    name = node.name()
    worker(name)
    disk = {"type": "empty", "os": "debian", "size": "1M", "disk_agent": "n"}
    assert api.post(f"/workers/{name}/luns/disk", disk).status_code == 201
    iqn = f"{BASE}:{name}.debian"

    refused = api.delete(f"/agents/n/luns?iqn={iqn}&delete_file=true")
    assert refused.status_code == 409
    assert f"{iqn} belongs to {name}" in refused.json()["detail"]
    assert iqn in node.targets()
    assert (node.folder / f"{name}.debian.img").exists()

    forced = api.delete(f"/agents/n/luns?iqn={iqn}&force=true")
    assert forced.status_code == 200, forced.json()
    assert iqn not in node.targets()
