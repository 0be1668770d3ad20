"""Fixtures of the workers' tests: workers, real nodes, callers of weaker roles."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from ipxeready.actors import OPERATOR, VIEWER
from ipxeready.storage.paths import Layout
from ipxeready.web.authentication import TokenUser
from tests.nodes import node, other_node, stgt_node

__all__ = ["node", "other_node", "stgt_node"]


def _client(role: str) -> APIClient:
    client = APIClient()
    client.default_format = "json"
    client.force_authenticate(TokenUser(username=role, role=role))
    return client


@pytest.fixture
def as_operator(layout: Layout) -> APIClient:
    """A client of an operator."""
    return _client(OPERATOR)


@pytest.fixture
def as_viewer(layout: Layout) -> APIClient:
    """A client of a viewer."""
    return _client(VIEWER)


@pytest.fixture
def impatient(layout: Layout, settings: Any) -> None:
    """One second for a quick call to a node."""
    settings.IPXE = dataclasses.replace(settings.IPXE, agent_timeout=1.0)


@pytest.fixture
def worker(api: APIClient) -> Callable[..., dict[str, Any]]:
    """Makes a worker over the API; the record."""
    count = iter(range(1, 250))

    def make(worker_id: str = "worker-01", **fields: Any) -> dict[str, Any]:
        fields.setdefault("mac", f"52:54:00:00:01:{next(count):02x}")
        answer = api.post("/workers", {"worker_id": worker_id, **fields})
        assert answer.status_code == 201, answer.json()
        return dict(answer.json())

    return make
