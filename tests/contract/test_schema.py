"""Every operation of /schema with made-up input: no server error, no status that the schema does not tell."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from drf_spectacular.generators import SchemaGenerator
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.config import (
    GenerationConfig,
    ProjectConfig,
    ProjectsConfig,
    SchemathesisConfig,
)
from schemathesis.specs.openapi.checks import status_code_conformance

from tests.acceptance.room import TOKEN, Room, room
from tests.nodes import BASE, RealNode, node

__all__ = ["node"]

#: What is there, for every other example.
PATHS = {
    "worker_id": "pc1",
    "agent_id": "n",
    "os": "debian",
    "path": "boot",
}
QUERY = {"iqn": f"{BASE}:kept.debian", "mac": "52:54:00:00:00:01", "hostname": "pc1"}
#: What makes a body succeed, for every other example.
BODY = {
    "worker_id": "fresh",
    "hostname": None,
    "arch": "x86_64",
    "mac": "52:54:00:00:00:09",
    "windows_iso": None,
    "boot": {"menu_default": "shell"},
    "type": "empty",
    "os": "ubuntu",
    "size": "1M",
    "name": None,
    "agent": "n",
    "disk_agent": "n",
    "targets": [{"worker_id": "pc1", "agent": "n"}],
    "worker_ids": ["fresh"],
    "delete_disk": True,
    "ignore_missing_target": True,
    "menu_default": None,
    "menu_timeout": 100,
    "id": "extra",
    "iqn": f"{BASE}:made.debian",
    "role": {"disk": True},
    "tags": ["stgt"],
    "token": None,
    "iscsi_server": "127.0.0.1",
    "agent_id": None,
    "base_url": "http://127.0.0.1:9",
}
#: Nobody listens here: what an address must not lead to is another machine.
NOWHERE = "http://127.0.0.1:9"
#: What the contract has for nodes that are gone or full; the schema must tell each.
NODES_FAULT = frozenset({502, 503, 507})


def _schema() -> Any:
    """The schema as the code makes it, which is what GET /schema answers."""
    generation = GenerationConfig(deterministic=True, database="none")
    config = SchemathesisConfig(
        projects=ProjectsConfig(default=ProjectConfig(generation=generation))
    )
    text = SchemaGenerator().get_schema(request=None, public=True)
    return schemathesis.openapi.from_dict(text, config=config)


schema = _schema()


@schema.hook("map_path_parameters")
def _known_path(context: Any, values: Any) -> Any:
    """Every second name is one that is there."""
    if not isinstance(values, dict):
        return values
    return {
        name: PATHS.get(name, value) if len(str(value)) % 2 else value
        for name, value in values.items()
    }


@schema.hook("map_query")
def _known_query(context: Any, values: Any) -> Any:
    if not isinstance(values, dict):
        return values
    return {
        name: QUERY.get(name, value) if len(str(value)) % 2 else value
        for name, value in values.items()
    }


@schema.hook("map_body")
def _loopback_only(context: Any, body: Any) -> Any:
    """Addresses lead to this machine; every second body is one that could succeed."""
    if isinstance(body, dict) and len(repr(body)) % 2:
        body = {name: BODY.get(name, value) for name, value in body.items()}
        if {"type", "iqn"} & set(body) and "iso" not in body:
            body["size"] = BODY["size"]
            body.pop("master", None)
            body.pop("filename", None)
    if isinstance(body, dict) and isinstance(body.get("base_url"), str):
        url = body["base_url"]
        if len(url) % 2 or "://" in url:
            body = {**body, "base_url": NOWHERE}
    return body


@dataclasses.dataclass
class Site:
    """A served control plane and its node."""

    service: Room
    node: RealNode

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.service.port}"

    def seed(self) -> None:
        """What is missing of the things that calls may succeed on."""
        ask = self.service.ask
        url, token = self.node.base_url, self.node.token
        ask("POST", "/agents", {"id": "n", "base_url": url, "token": token})
        change = {
            "base_url": url,
            "token": token,
            "enabled": True,
            "role": {"disk": True, "cd": False},
            "tags": ["stgt"],
        }
        assert ask("PUT", "/agents/n", change).status == 200
        ask("POST", "/workers", {"worker_id": "pc1", "mac": "52:54:00:00:00:01"})
        ask("PUT", "/workers/pc1/mac", {"mac": "52:54:00:00:00:01"})
        disk = {"type": "empty", "os": "debian", "size": "1M"}
        made = ask("POST", "/workers/pc1/luns/disk", disk)
        if made.status == 409:
            ask("POST", "/workers/pc1/luns/disk", {**disk, "type": "existing"})
        ask(
            "POST",
            "/agents/n/luns/disk",
            {"iqn": f"{BASE}:kept.debian", "size": "1M"},
        )
        record = ask("GET", "/workers/pc1")
        assert record.status == 200


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory, node: RealNode) -> Iterator[Site]:
    root = tmp_path_factory.mktemp("schema") / "root"
    environ = {"IPXE_CP_AGENT_TIMEOUT": "2", "IPXE_SERVE_WORKERS": "1"}
    with room(root, **environ) as service:
        (root / "public" / "boot").mkdir()
        (root / "public" / "boot" / "vmlinuz").write_bytes(b"kernel")
        yield Site(service, node)


@pytest.fixture
def seeded(site: Site) -> Site:
    site.seed()
    return site


@schema.parametrize()
@settings(
    max_examples=20,
    derandomize=True,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
def test_an_operation_keeps_to_its_description(case: Any, seeded: Site) -> None:
    answer = case.call(
        base_url=seeded.base_url,
        headers={"Authorization": f"Bearer {TOKEN}"},
        timeout=30,
    )
    checks = [status_code_conformance]
    if answer.status_code not in NODES_FAULT:
        checks.append(not_a_server_error)
    case.validate_response(answer, checks=checks)


def test_the_served_schema_is_the_one_that_is_tested(site: Site) -> None:
    served = site.service.ask("GET", "/schema")
    assert served.status == 200
    assert set(served.body["paths"]) == set(schema.raw_schema["paths"])
