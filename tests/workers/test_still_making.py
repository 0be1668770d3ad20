"""A node that goes on making a disk after its caller is gone: nothing is given up, nothing is left behind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rest_framework.test import APIClient

from ipxeready.storage.paths import Layout
from tests.agents.fakes import CAPABILITIES
from tests.workers.helpers import M1, ledger, refusal, trail
from tests.workers.stub import Stub, die, stub_node
from workers.settle import settle_all

IQN = "iqn.2026-07.com.controller:pc1.ubuntu"
FILE = "pc1.ubuntu.img"
BODY = {"type": "empty", "os": "ubuntu", "size": "1M"}
PATH = "/workers/pc1/luns/disk"
BATCH = {**BODY, "targets": [{"worker_id": "pc1", "agent": "stub"}]}


@pytest.fixture
def busy(
    layout: Layout,
    worker: Callable[..., dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Stub]:
    """A node that drops the connection and is still making pc1's disk."""
    monkeypatch.setitem(CAPABILITIES, "making", [FILE])
    with stub_node() as found:
        found.register()
        found.before = die
        worker("pc1", mac=M1)
        yield found


def _status(layout: Layout) -> str | None:
    (disk,) = ledger(layout)["pc1"]["disks"]
    status: str | None = disk.get("status")
    return status


@pytest.mark.case(93)
@pytest.mark.parametrize("batch", [False, True])
def test_its_disk_stays_creating_until_it_is_done(
    api: APIClient, layout: Layout, busy: Stub, batch: bool
) -> None:
    if batch:
        (failed,) = api.post("/workers/luns/disk/batch", BATCH).json()["failed"]
        words = failed["error"]
    else:
        status, words = refusal(api, "post", PATH, BODY)
        assert status == 503
    assert "still making" in words
    assert _status(layout) == "creating"
    settle_all()
    assert _status(layout) == "creating"
    status, words = refusal(api, "post", PATH, BODY)
    assert (status, "still making" in words) == (503, True), words
    # It is done: the same request again finds it.
    busy.targets[IQN] = []
    assert refusal(api, "post", PATH, BODY)[0] == 409
    assert _status(layout) is None
    assert trail(layout, "worker.disk.create")[-1]["status"] == "ok"


def test_a_copy_that_failed_in_the_end_is_taken_off_the_ledger(
    api: APIClient,
    layout: Layout,
    busy: Stub,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    refusal(api, "post", PATH, BODY)
    assert _status(layout) == "creating"
    monkeypatch.setitem(CAPABILITIES, "making", [])
    settle_all()
    assert ledger(layout)["pc1"]["disks"] == []
    assert trail(layout, "worker.disk.create")[-1]["status"] == "rollback"


@pytest.mark.case(93)
def test_a_disk_that_is_still_being_deleted_stays_deleting(
    api: APIClient,
    layout: Layout,
    busy: Stub,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The target is listed to the end: it must not come back to the ledger just before it goes."""
    busy.before, busy.next_iqn = None, IQN
    assert api.post(PATH, BODY).status_code == 201
    monkeypatch.setitem(CAPABILITIES, "removing", [IQN])
    busy.before = die
    assert refusal(api, "delete", f"{PATH}/ubuntu")[0] == 503
    assert _status(layout) == "deleting"
    settle_all()
    assert _status(layout) == "deleting"
    monkeypatch.setitem(CAPABILITIES, "removing", [])
    del busy.targets[IQN]
    settle_all()
    assert ledger(layout)["pc1"]["disks"] == []
