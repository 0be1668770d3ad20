"""Fixtures of the registry's tests: real nodes, and callers of weaker roles."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from rest_framework.test import APIClient

from ipxeready.actors import OPERATOR, VIEWER
from ipxeready.storage.paths import Layout
from ipxeready.web.authentication import TokenUser
from tests.agents.node.node_lab import free_port
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
def nobody() -> str:
    """An address where nothing listens."""
    return f"http://127.0.0.1:{free_port()}"
