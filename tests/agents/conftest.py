"""Fixtures of the registry's tests: real nodes."""

from __future__ import annotations

import pytest

from tests.nodes import node, other_node, stgt_node
from tests.processes import free_port

__all__ = ["node", "other_node", "stgt_node"]


@pytest.fixture
def nobody() -> str:
    """An address where nothing listens."""
    return f"http://127.0.0.1:{free_port()}"
