"""A service that is asked to end leaves what it has not begun of a batch, and says so for each item."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rest_framework.test import APIClient

from ipxeready import ending
from ipxeready.storage.paths import Layout
from tests.nodes import BASE, RealNode, node
from tests.workers.helpers import ledger
from workers import batches, removal_batch

__all__ = ["node"]
WORDS = "the service is ending: not tried"


@pytest.fixture
def asked() -> Iterator[list[bool]]:
    """Ends the service as soon as the list is not empty."""
    told: list[bool] = []
    ending.told_by(lambda: bool(told))
    yield told
    ending.told_by(None)


def test_what_is_not_begun_is_left(
    api: APIClient,
    layout: Layout,
    node: RealNode,
    asked: list[bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node.register("n")
    names = [node.name() for _ in range(4)]
    lines = [f"  {name}:\n    hostname: {name}\n" for name in names]
    layout.workers_yml.write_text("workers:\n" + "".join(lines))
    monkeypatch.setattr(batches, "CHUNK", 2)
    monkeypatch.setattr(removal_batch, "CHUNK", 1)
    made = batches._Batch._make

    def stop_after_this_chunk(self: batches._Batch, items: list[batches.Item]) -> None:
        made(self, items)
        asked.append(True)

    monkeypatch.setattr(batches._Batch, "_make", stop_after_this_chunk)
    body = {
        "type": "empty",
        "os": "debian",
        "size": "1M",
        "targets": [{"worker_id": name, "agent": "n"} for name in names],
    }
    answer = api.post("/workers/luns/disk/batch", body).json()
    assert [each["worker_id"] for each in answer["succeeded"]] == names[:2]
    assert [each["worker_id"] for each in answer["failed"]] == names[2:]
    assert all(WORDS in each["error"] for each in answer["failed"])
    assert [len(ledger(layout)[name].get("disks", [])) for name in names] == [
        1,
        1,
        0,
        0,
    ]
    ours = {f"{BASE}:{name}.debian" for name in names}
    assert ours & set(node.targets()) == {f"{BASE}:{name}.debian" for name in names[:2]}
    # Deleting: those with a disk are left, the others go.
    answer = api.post("/workers/delete/batch", {"worker_ids": names}).json()
    assert [each["worker_id"] for each in answer["failed"]] == names[:2]
    assert all(WORDS in each["error"] for each in answer["failed"])
    assert [each["worker_id"] for each in answer["succeeded"]] == names[2:]
    assert sorted(ledger(layout)) == sorted(names[:2])
