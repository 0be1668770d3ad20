"""Fixtures of the workers' tests: workers and real nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from tests.nodes import node, other_node, stgt_node

__all__ = ["node", "other_node", "stgt_node"]


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
