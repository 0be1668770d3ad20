"""The keeper: what nobody works on any more is settled while the service runs, and its job is ended."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connections
from rest_framework.test import APIClient

from ipxeready.actors import SYSTEM, Actor
from ipxeready.jobs import selectors, services
from ipxeready.storage.inflight import claim
from ipxeready.storage.jobs import CANCELLED, DONE, FAILED, RUNNING, Job
from ipxeready.storage.paths import Layout
from tests.agents.fakes import CAPABILITIES
from tests.nodes import BASE
from tests.workers.helpers import M1, M2, ledger, trail
from tests.workers.stub import Stub, die, stub_node
from workers import jobs as work
from workers import keeper as keeping
from workers.disks import disk_spec
from workers.keeper import Keeper
from workers.recovery import NOT_DELETED, NOT_MADE, NOT_TRIED

IQN = f"{BASE}:pc1.ubuntu"
BODY = {"type": "empty", "os": "ubuntu", "size": "1M"}
SPEC = disk_spec(type="empty", os="ubuntu", size="1M")
PATH = "/workers/pc1/luns/disk"


@pytest.fixture
def stub(layout: Layout, worker: Callable[..., dict[str, Any]]) -> Iterator[Stub]:
    with stub_node() as found:
        found.register()
        found.next_iqn = IQN
        worker("pc1", mac=M1)
        yield found


@pytest.fixture
def left(api: APIClient, stub: Stub) -> Stub:
    """Its answer was lost and it could not be asked: pc1's disk stays `creating`."""
    stub.before = die
    stub.mute = True
    assert api.post(PATH, BODY).status_code == 503
    stub.mute = False
    stub.fake.requests.clear()
    return stub


def _status(layout: Layout) -> str | None:
    (disk,) = ledger(layout)["pc1"]["disks"]
    status: str | None = disk.get("status")
    return status


def _abandoned(given: services.Work, **more: Any) -> Job:
    """A job whose process died in the middle of it."""
    with services._new(SYSTEM, given) as running:
        running.start()
        running.note(**more)
    return running.job


def _now(job: Job) -> Job:
    return selectors.store().get(job.id)


@pytest.mark.parametrize("made", [False, True])
def test_a_disk_that_is_left_over_is_settled(
    layout: Layout, left: Stub, made: bool
) -> None:
    if made:
        left.targets[IQN] = []
    Keeper().look()
    if made:
        assert _status(layout) is None
    else:
        assert ledger(layout)["pc1"]["disks"] == []
    line = trail(layout, "worker.disk.create")[-1]
    assert (line["status"], line["user"]) == ("ok" if made else "rollback", "system")


def test_nothing_left_over_costs_no_call_and_no_line(
    layout: Layout, stub: Stub
) -> None:
    stub.fake.requests.clear()
    before = layout.operations.read_bytes()
    keeper = Keeper()
    for _ in range(3):
        keeper.look()
    assert stub.fake.requests == []
    assert layout.operations.read_bytes() == before


def test_what_somebody_works_on_is_left_alone(layout: Layout, left: Stub) -> None:
    with claim(layout.run, "disk-pc1.ubuntu"):
        Keeper().look()
    assert left.fake.requests == []
    assert _status(layout) == "creating"


def test_a_node_that_does_not_answer_is_asked_less_and_less(
    layout: Layout, left: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    left.mute = True
    clock = [1000.0]
    monkeypatch.setattr(keeping.time, "monotonic", lambda: clock[0])
    before = layout.operations.read_bytes()
    keeper, asked = Keeper(), []
    while clock[0] < 1300:
        left.fake.requests.clear()
        keeper._settle()
        if left.asked("GET"):
            asked.append(clock[0] - 1000)
        clock[0] += 1
    assert asked == [0, 5, 15, 35, 75, 135, 195, 255]
    # What cannot be settled is no event.
    assert layout.operations.read_bytes() == before
    left.mute = False
    clock[0] += 60
    keeper._settle()
    assert ledger(layout)["pc1"]["disks"] == []


@pytest.mark.case(93)
def test_a_disk_that_its_node_still_makes_is_looked_at_until_it_is_there(
    layout: Layout, left: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(CAPABILITIES, "making", ["pc1.ubuntu.img"])
    monkeypatch.setattr(keeping, "FIRST", 0.0)
    keeper = Keeper()
    for _ in range(3):
        keeper.look()
        assert _status(layout) == "creating"
    left.targets[IQN] = []
    monkeypatch.setitem(CAPABILITIES, "making", [])
    keeper.look()
    assert _status(layout) is None


# --- jobs whose process is gone ------------------------------------------------


@pytest.mark.parametrize(
    ("made", "cancelled", "state"),
    [(True, False, DONE), (False, False, FAILED), (False, True, CANCELLED)],
)
def test_the_job_of_a_disk_ends_as_the_disk_did(
    api: APIClient,
    layout: Layout,
    left: Stub,
    operator: Actor,
    made: bool,
    cancelled: bool,
    state: str,
) -> None:
    given = work.disk_work(actor=operator, worker_id="pc1", spec=SPEC, set_default=True)
    job = _abandoned(given, agent="stub", iqn=IQN)
    if cancelled:
        services.job_cancel(actor=operator, job_id=job.id)
    left.mute = True
    keeper = Keeper()
    keeper.look()
    assert _now(job).state == RUNNING
    left.mute = False
    keeper._disks.clear()
    if made:
        left.targets[IQN] = []
    keeper.look()
    job = _now(job)
    assert job.state == state
    if made:
        assert job.result == api.get("/workers/pc1").json()
        assert job.result["default_os"] == "ubuntu"
    elif not cancelled:
        assert job.error == {"status": 503, "detail": NOT_MADE}
        assert ledger(layout)["pc1"]["disks"] == []


def test_a_job_that_had_not_come_to_its_disk_was_not_tried(
    layout: Layout, stub: Stub, operator: Actor
) -> None:
    job = _abandoned(work.disk_work(actor=operator, worker_id="pc1", spec=SPEC))
    Keeper().look()
    assert _now(job).error == {"status": 503, "detail": NOT_TRIED}


@pytest.mark.parametrize("cancelled", [False, True])
def test_a_batch_is_told_from_the_ledger_once_its_disks_are_settled(
    api: APIClient,
    layout: Layout,
    left: Stub,
    worker: Callable[..., dict[str, Any]],
    operator: Actor,
    cancelled: bool,
) -> None:
    for name in ("pc2", "pc3", "pc4"):
        worker(name)
    # pc3 had a disk before.
    left.before, left.next_iqn = None, f"{BASE}:pc3.ubuntu"
    assert api.post("/workers/pc3/luns/disk", BODY).status_code == 201
    targets = [(name, "stub") for name in ("pc4", "pc1", "pc2", "pc3", "pc1")]
    given = work.disks_work(actor=operator, targets=targets, **BODY)
    job = _abandoned(given, begun=["pc1", "pc2"])
    if cancelled:
        services.job_cancel(actor=operator, job_id=job.id)
    left.mute = True
    keeper = Keeper()
    keeper.look()
    assert (_now(job).state, _now(job).done, _now(job).total) == (RUNNING, 4, 5)
    left.mute = False
    left.targets[IQN] = []
    keeper._disks.clear()
    keeper.look()
    job = _now(job)
    assert job.state == (CANCELLED if cancelled else DONE)
    left_out = "cancelled: not tried" if cancelled else NOT_TRIED
    assert job.result == {
        "succeeded": [{"worker_id": "pc1", "agent": "stub", "iqn": IQN}],
        "skipped": [
            {
                "worker_id": "pc3",
                "reason": "pc3 has a ubuntu disk already on node stub",
            },
            {"worker_id": "pc1", "reason": "pc1 is named earlier in this request"},
        ],
        "failed": [
            {"worker_id": "pc4", "agent": "stub", "error": left_out},
            {"worker_id": "pc2", "agent": "stub", "error": NOT_MADE},
        ],
    }
    # A success of a batch is also what the worker boots.
    assert ledger(layout)["pc1"]["default_os"] == "ubuntu"
    assert "default_os" not in ledger(layout)["pc3"]


def test_a_batch_of_deletions_is_told_from_the_ledger(
    api: APIClient,
    layout: Layout,
    stub: Stub,
    worker: Callable[..., dict[str, Any]],
    operator: Actor,
) -> None:
    worker("pc2", mac=M2)
    names = ["pc1", "pc2", "nobody"]
    given = work.deletion_work(actor=operator, worker_ids=names, delete_disk=True)
    hostnames = [["pc1", "pc1"], ["pc2", "pc2"], ["nobody", ""]]
    job = _abandoned(given, hostnames=hostnames)
    assert api.delete("/workers/pc1").status_code == 200
    # The node does not say whether it has taken pc2's off.
    stub.next_iqn = f"{BASE}:pc2.ubuntu"
    assert api.post("/workers/pc2/luns/disk", BODY).status_code == 201
    stub.before = die
    assert api.delete("/workers/pc2/luns/disk/ubuntu").status_code == 503
    stub.mute = True
    keeper = Keeper()
    keeper.look()
    assert _now(job).state == RUNNING
    stub.mute = False
    keeper._disks.clear()
    keeper.look()
    job = _now(job)
    assert job.state == DONE
    assert job.result == {
        "succeeded": [{"worker_id": "pc1", "hostname": "pc1"}],
        "failed": [
            {"worker_id": "pc2", "error": NOT_DELETED},
            {"worker_id": "nobody", "error": "there is no worker 'nobody'"},
        ],
    }


def test_the_disk_of_a_node_ends_as_the_node_says(
    stub: Stub, operator: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agents import jobs as node_work

    def lost() -> Job:
        given = node_work.disk_work(actor=operator, agent_id="stub", iqn=IQN, size="1M")
        return _abandoned(given)

    monkeypatch.setitem(CAPABILITIES, "making", ["pc1.ubuntu.img"])
    first = lost()
    Keeper().look()
    assert _now(first).state == RUNNING
    monkeypatch.setitem(CAPABILITIES, "making", [])
    stub.mute = True
    Keeper().look()
    assert _now(first).state == RUNNING
    stub.mute = False
    Keeper().look()
    assert _now(first).state == FAILED
    stub.targets[IQN] = []
    second = lost()
    Keeper().look()
    assert _now(second).result == {"iqn": IQN, "backing": "/images/x.img"}
    scan = _abandoned(node_work.scan_work(actor=operator, agent_id="stub"))
    Keeper().look()
    assert "Scan again" in _now(scan).error["detail"]


def test_a_job_whose_node_cannot_be_asked_is_looked_at_less_and_less(
    stub: Stub, operator: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agents import jobs as node_work

    given = node_work.disk_work(actor=operator, agent_id="stub", iqn=IQN, size="1M")
    job = _abandoned(given)
    stub.mute = True
    clock = [1000.0]
    monkeypatch.setattr(keeping.time, "monotonic", lambda: clock[0])
    keeper, asked = Keeper(), []
    while clock[0] < 1100:
        stub.fake.requests.clear()
        keeper._end_jobs()
        if stub.asked("GET"):
            asked.append(clock[0] - 1000)
        clock[0] += 1
    assert asked == [0, 5, 15, 35, 75]
    stub.mute = False
    clock[0] += 60
    keeper._end_jobs()
    assert _now(job).state == FAILED
    keeper._end_jobs()
    assert keeper._jobs == {}


def test_old_jobs_go(
    layout: Layout, operator: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    pruned: list[int] = []
    monkeypatch.setattr(
        selectors.store(), "prune", lambda keep=500: pruned.append(keep)
    )
    keeper = Keeper()
    keeper.look()
    keeper.look()
    assert pruned == [500]


# --- the thread ----------------------------------------------------------------


def test_a_disk_that_takes_no_file_for_a_while_ends_no_keeper(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "PERIOD", 0.02)
    monkeypatch.setattr(keeping, "_STEP", 0.01)
    looked, full, stop = threading.Event(), threading.Event(), threading.Event()
    monkeypatch.setattr(Keeper, "look", lambda self: looked.set())
    real = os.open

    def opening(path: Any, *words: Any, **where: Any) -> int:
        if str(path).endswith("keeper.busy") and not full.is_set():
            full.set()
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(path, *words, **where)

    monkeypatch.setattr("ipxeready.storage.inflight.os.open", opening)
    thread = threading.Thread(target=keeping.keep, args=(stop,))
    thread.start()
    try:
        assert looked.wait(10)
        assert full.is_set()
    finally:
        stop.set()
        thread.join(10)


def test_one_keeps_at_a_time_and_another_takes_over(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "PERIOD", 0.02)
    monkeypatch.setattr(keeping, "_STEP", 0.01)
    looks: list[str] = []
    opened: list[Any] = []

    def look(self: Keeper) -> None:
        looks.append(threading.current_thread().name)
        with connections["default"].cursor() as cursor:
            cursor.execute("select 1")
        opened.append(connections["default"])
        if len(looks) == 2:
            raise ZeroDivisionError  # it lives on

    monkeypatch.setattr(Keeper, "look", look)
    stops = [threading.Event(), threading.Event()]
    threads = [
        threading.Thread(target=keeping.keep, args=(stop,), name=f"k{at}")
        for at, stop in enumerate(stops)
    ]

    def seen(number: int) -> None:
        until = time.monotonic() + 20
        while len(looks) < number:
            assert time.monotonic() < until
            time.sleep(0.01)

    threads[0].start()
    seen(4)
    threads[1].start()
    time.sleep(0.2)
    assert set(looks) == {"k0"}
    stops[0].set()
    threads[0].join(10)
    count = len(looks)
    seen(count + 3)
    assert set(looks[count:]) == {"k1"}
    stops[1].set()
    threads[1].join(10)
    assert not any(thread.is_alive() for thread in threads)
    assert {each.connection for each in opened} == {None}
    assert not list(layout.run.glob("keeper*"))
