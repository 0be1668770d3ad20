"""A target that a worker's record names is not taken off behind the record's back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rest_framework.test import APIClient

from ipxeready.storage.paths import Layout
from tests.nodes import BASE, RealNode
from tests.workers.helpers import trail


def test_a_workers_image_is_not_deleted_behind_its_record_and_its_target_alone_may_go(
    layout: Layout,
    api: APIClient,
    node: RealNode,
    worker: Callable[..., dict[str, Any]],
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

    taken = api.delete(f"/agents/n/luns?iqn={iqn}")
    assert taken.status_code == 200
    assert trail(layout, "lun.delete")[-1]["workers"] == [name]
    assert (node.folder / f"{name}.debian.img").exists()
    node_body = {"type": "existing", "os": "debian", "name": f"{name}.debian.img"}
    api.delete(f"/workers/{name}/luns/disk/debian?ignore_missing_target=true")
    again = api.post(f"/workers/{name}/luns/disk", {**node_body, "disk_agent": "n"})
    assert again.status_code == 201, again.json()

    forced = api.delete(f"/agents/n/luns?iqn={iqn}&delete_file=true&force=true")
    assert forced.status_code == 200, forced.json()
    assert iqn not in node.targets()
    assert not (node.folder / f"{name}.debian.img").exists()


def test_a_node_that_is_registered_twice_is_one_machine_and_guards_its_disks(
    api: APIClient,
    node: RealNode,
    worker: Callable[..., dict[str, Any]],
) -> None:
    """Ids cannot be changed, so people add a node once more under its new name."""
    node.register("n")
    name = node.name()
    worker(name)
    disk = {"type": "empty", "os": "debian", "size": "1M", "disk_agent": "n"}
    assert api.post(f"/workers/{name}/luns/disk", disk).status_code == 201
    node.register("twin")
    iqn = f"{BASE}:{name}.debian"

    refused = [
        api.delete(f"/agents/twin/luns?iqn={iqn}&delete_file=true"),
        api.delete(f"/agents/twin/images?name={name}.debian.img"),
        api.post("/agents/twin/luns/access", {"iqn": iqn, "access": "off"}),
    ]
    assert [each.status_code for each in refused] == [409] * 3
    assert all(name in str(each.json()["detail"]) for each in refused)
    assert iqn in node.targets()
    assert (node.folder / f"{name}.debian.img").exists()
