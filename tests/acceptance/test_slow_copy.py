"""The control plane dies in the middle of a slow copy on a node that lives on: the disk is nobody's orphan."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.room import Room, read_files, room
from tests.agents.node.node_lab import BASE, TOKEN
from tests.agents.node.test_node_serve import agent
from tests.processes import eventually

IQN = f"{BASE}:pc1.debian"
DISK = {"type": "master", "os": "debian", "name": "debian_tpl_v1.img"}
BATCH = {**DISK, "targets": [{"worker_id": "pc1", "agent": "slow"}]}


def _disk(root: Path) -> dict[str, Any] | None:
    disks = read_files(root).workers["pc1"].get("disks") or [None]
    found: dict[str, Any] | None = disks[0]
    return found


def _ask_for_it(service: Room, batch: bool) -> Any:
    if batch:
        return service.ask("POST", "/workers/luns/disk/batch", BATCH)
    return service.ask("POST", "/workers/pc1/luns/disk", DISK)


@pytest.mark.case(93)
@pytest.mark.parametrize("batch", [False, True])
def test_a_copy_that_outlives_its_caller(tmp_path: Path, batch: bool) -> None:
    folder = tmp_path / "root" / "images"
    folder.mkdir(parents=True)
    master = folder / "debian_tpl_v1.img"
    master.write_bytes(os.urandom(24 << 20))
    root = tmp_path / "control" / "root"
    root.parent.mkdir()
    with agent(tmp_path, None, slow=True, SLOW="2") as running, room(root) as service:
        url = f"http://127.0.0.1:{running.port}"
        body = {"id": "slow", "base_url": url, "token": TOKEN}
        assert service.ask("POST", "/agents", body).status == 201
        worker = {"worker_id": "pc1", "mac": "52:54:00:00:00:01"}
        assert service.ask("POST", "/workers", worker).status == 201
        caller = threading.Thread(target=_ask_for_it, args=(service, batch))
        caller.start()
        eventually(lambda: list(folder.glob(".pc1.*.part")), 60)
        service.kill()
        caller.join()
        service.start()
        # The copy goes on, so the disk is neither there nor given up.
        assert running.call("GET", "/capabilities")[1]["making"] == ["pc1.debian.img"]
        disk = _disk(root)
        assert disk and disk["status"] == "creating"
        answer = _ask_for_it(service, batch)
        if batch:
            assert [each["worker_id"] for each in answer.body["failed"]] == ["pc1"]
        else:
            assert answer.status == 503, answer
            assert "still making" in answer.body["detail"]
        answer = service.ask("DELETE", "/workers/pc1?delete_disk=true")
        assert answer.status == 409, answer
        assert "being made" in str(answer.body)
        assert _disk(root) == disk
        eventually(lambda: running.call("GET", "/lun")[1], 60)
        # The same request again finds what was made.
        answer = _ask_for_it(service, batch)
        if batch:
            assert [each["worker_id"] for each in answer.body["skipped"]] == ["pc1"]
        else:
            assert answer.status == 409, answer
        disk = _disk(root)
        assert disk and "status" not in disk
        assert (folder / "pc1.debian.img").read_bytes() == master.read_bytes()
        assert service.ask("DELETE", "/workers/pc1?delete_disk=true").status == 200
        assert running.call("GET", "/lun") == (200, [])
        assert not (folder / "pc1.debian.img").exists()
