"""kill -9 of the control plane between a node and the ledger: what is not certain is visible, and the same call again ends it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.acceptance.room import Room, room
from tests.nodes import BASE
from tests.workers.stub import Stub, stub_node

MAC = "52:54:00:00:00:01"
IQN = f"{BASE}:pc1.debian"


def _prepare(service: Room, stub: Stub) -> None:
    body = {"id": "stub", "base_url": stub.fake.base_url, "token": "t", "access": "acl"}
    assert service.ask("POST", "/agents", body).status == 201
    worker = {"worker_id": "pc1", "mac": MAC}
    assert service.ask("POST", "/workers", worker).status == 201
    stub.next_iqn = IQN
    disk = {"type": "empty", "os": "debian", "size": "1M"}
    assert service.ask("POST", "/workers/pc1/luns/disk", disk).status == 201


def _killing(service: Room, stub: Stub) -> Callable[[], tuple[int, Any]]:
    """The node does it, and before it can say so the control plane is dead."""

    def answer() -> tuple[int, Any]:
        stub.set_access = None
        service.kill()
        return 200, stub._target(IQN)

    return answer


@pytest.mark.parametrize("body", [{"access": "chap"}, {"access": "off"}])
def test_a_worker_whose_change_was_cut_off_is_named_and_set_again(
    tmp_path: Path, body: dict[str, str]
) -> None:
    root = tmp_path / "root"
    with stub_node() as stub, room(root) as service:
        _prepare(service, stub)
        stub.set_access = _killing(service, stub)
        assert service.ask("PUT", "/workers/pc1/access", body).status == 0
        service.start()
        record = service.ask("GET", "/workers/pc1").body
        assert record["access"] == body["access"]
        assert record["disks"][0]["access"] == "acl"
        told = service.ask("GET", "/healthz?verbose=1").body["differences"]
        assert any(
            f"pc1.debian: acl instead of {body['access']}" in line for line in told
        )
        stub.access = 200, stub._target(IQN)
        answer = service.ask("PUT", "/workers/pc1/access", body)
        assert (answer.status, answer.body["changed"]) == (200, [IQN])
        told = service.ask("GET", "/healthz?verbose=1").body["differences"]
        assert not any("pc1.debian" in line for line in told)


def test_a_new_secret_that_was_cut_off_is_named_and_sent_again(tmp_path: Path) -> None:
    root = tmp_path / "root"
    path = root / "config" / "chap-secrets.yml"
    with stub_node() as stub, room(root) as service:
        _prepare(service, stub)
        stub.access = 200, stub._target(IQN)
        assert (
            service.ask("PUT", "/workers/pc1/access", {"access": "chap"}).status == 200
        )
        stub.set_access = _killing(service, stub)
        assert service.ask("PUT", "/workers/pc1/access", {"rotate": True}).status == 0
        service.start()
        record = yaml.safe_load(path.read_text())["secrets"]["pc1"]
        assert record["next"] != record["secret"]
        told = json.dumps(service.ask("GET", "/healthz?verbose=1").body)
        assert "the secret of pc1 was being changed" in told
        assert record["next"] not in told
        answer = service.ask("PUT", "/workers/pc1/access", {"access": "chap"})
        assert answer.status == 200
        after = yaml.safe_load(path.read_text())["secrets"]["pc1"]
        assert after == {"username": "pc1", "secret": record["next"]}
        told = json.dumps(service.ask("GET", "/healthz?verbose=1").body)
        assert "was being changed" not in told


def test_a_node_whose_change_was_cut_off_is_named_and_set_again(tmp_path: Path) -> None:
    with stub_node() as stub, room(tmp_path / "root") as service:
        _prepare(service, stub)
        stub.set_access = _killing(service, stub)
        assert service.ask("POST", "/agents/stub/access", {"access": "off"}).status == 0
        service.start()
        assert service.ask("GET", "/agents/stub").body["access"] == "off"
        told = service.ask("GET", "/healthz?verbose=1").body["differences"]
        assert any("pc1.debian: acl instead of off" in line for line in told)
        stub.access = 200, stub._target(IQN)
        answer = service.ask("POST", "/agents/stub/access", {"access": "off"})
        assert answer.body["changed"] == [IQN]
        assert "access" not in service.ask("GET", "/workers/pc1").body["disks"][0]
