"""Many writers and readers at once: nothing is lost, nobody meets an error, batches keep what is good."""

from __future__ import annotations

import os
import threading
import time
from typing import Any

import pytest
from django.db import connection

from ipxeready import index
from ipxeready.actors import SYSTEM
from ipxeready.errors import Invalid, Unavailable
from ipxeready.index import Grouped, freshness
from ipxeready.index.verify import verify_index
from ipxeready.storage.lock import StateLock
from ipxeready.storage.paths import Layout
from tests.index.helpers import ALICE, create, forked, ledger, lines, mac
from workers.adapters import normalized
from workers.models import Binding, Worker

WRITERS, EACH, READERS = 4, 12, 2


def in_child(work: Any) -> int:
    """Start `work` in a child; returns its pid."""
    connection.close()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            connection.connection = None
            work()
            code = 0
        except BaseException:  # noqa: BLE001 - a child of a test ends here whatever happens
            import traceback

            traceback.print_exc()
        finally:
            os._exit(code)
    return pid


def test_four_processes_write_and_two_read(layout: Layout) -> None:
    def writer(which: int) -> None:
        for number in range(EACH):
            create(1 + which * EACH + number)

    def reader() -> None:
        last, end = 0, time.monotonic() + 60
        while last < WRITERS * EACH and time.monotonic() < end:
            index.ensure_fresh()
            now = Worker.objects.count()
            assert now >= last, "a write was lost on the way"
            assert Binding.objects.count() <= WRITERS * EACH
            last = now
        assert last == WRITERS * EACH

    pids = [in_child(lambda which=which: writer(which)) for which in range(WRITERS)]
    pids += [in_child(reader) for _ in range(READERS)]
    assert [os.waitpid(pid, 0)[1] for pid in pids] == [0] * len(pids)
    index.ensure_fresh(wait=True)
    names = {f"worker-{n:02d}" for n in range(1, WRITERS * EACH + 1)}
    assert set(ledger(layout)) == names
    assert set(Worker.objects.values_list("pk", flat=True)) == names
    assert Binding.objects.count() == len(names)
    assert len(layout.dhcp_hosts.read_text().splitlines()) >= len(names)
    ids = [line["id"] for line in lines(layout)]
    assert ids == list(range(ids[0], ids[0] + len(ids)))
    assert lines(layout, "external.edit") == []
    assert verify_index() == []


def test_the_one_who_holds_the_lock_is_named(layout: Layout) -> None:
    create(1)
    layout.workers_yml.write_text(
        layout.workers_yml.read_text() + "  worker-05:\n    hostname: worker-05\n"
    )
    entered, leave = threading.Event(), threading.Event()

    def holder() -> None:
        with freshness.lock().held("a long export"):
            entered.set()
            leave.wait(20)

    thread = threading.Thread(target=holder)
    thread.start()
    try:
        assert entered.wait(5)
        with (
            pytest.raises(
                Unavailable, match=f"held by a long export, pid {os.getpid()}"
            ) as caught,
            index.writing(actor=ALICE, op="t", timeout=0.2),
        ):
            pass
        assert caught.value.code == "state.busy"
        # Another process sees the same, and a reader is served what is there at once.
        assert forked(lambda: index.ensure_fresh()) == 0
        before = time.monotonic()
        index.ensure_fresh()
        assert time.monotonic() - before < 5
        assert set(Worker.objects.values_list("pk", flat=True)) == {"worker-01"}
    finally:
        leave.set()
        thread.join()
    index.ensure_fresh()
    assert Worker.objects.count() == 2


def test_the_lock_outlives_its_file(layout: Layout) -> None:
    lock, other = StateLock(layout.lock), StateLock(layout.lock)
    with lock.held("first"):
        assert lock.mine
        assert not other.acquire("second", 0)
    assert not lock.mine
    # Whoever removes the name must not let two in.
    assert other.acquire("second", 0)
    layout.lock.unlink()
    assert lock.acquire("third", 0)
    lock.release()
    other.release()
    with lock.held("again"), lock.held("inside"):
        assert not other.acquire("second", 0.05)
    assert other.acquire("second", 0)
    other.release()


def test_a_lock_that_cannot_be_noted_is_still_a_lock(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*args: Any) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    lock = StateLock(layout.lock)
    with lock.held("first"):
        pass
    assert lock.acquire("second", 0)
    lock.release()


def test_nested_writing_is_one_write(layout: Layout) -> None:
    create(1)
    called: list[str] = []
    with index.writing(actor=ALICE, op="outer") as tx:
        tx.on_commit(lambda: called.append("outer"))
        create(2)
        with index.writing(actor=SYSTEM, op="inner") as inner:
            assert inner is tx
            inner.on_commit(lambda: called.append("inner"))
        assert Worker.objects.filter(pk="worker-02").exists()
        assert "worker-02" not in ledger(layout)
        assert called == []
    assert called == ["outer", "inner"]
    assert "worker-02" in ledger(layout)
    assert verify_index() == []


def test_one_bad_item_of_a_batch_takes_nothing_with_it(layout: Layout) -> None:
    create(1)
    with index.writing(actor=ALICE, op="batch") as tx:
        for number in range(2, 6):
            try:
                with tx.savepoint():
                    name = f"worker-{number:02d}"
                    tx.yaml("workers").put(name, normalized({"hostname": name}))
                    tx.hosts.bind(mac(number), name)
                    tx.log(worker_id=name)
                    if number == 3:
                        raise Invalid("no")
            except Invalid:
                continue
    assert set(ledger(layout)) == {"worker-01", "worker-02", "worker-04", "worker-05"}
    assert "worker-03" not in layout.dhcp_hosts.read_text()
    assert [line["worker_id"] for line in lines(layout, "batch")] == [
        "worker-02",
        "worker-04",
        "worker-05",
    ]
    assert verify_index() == []


def test_a_refused_record_does_not_stay_in_the_text(layout: Layout) -> None:
    create(1)
    with index.writing(actor=ALICE, op="batch") as tx:
        with pytest.raises(Invalid):
            tx.yaml("workers").put("worker-02", {"hostname": "not a name"})
        with pytest.raises(Invalid):
            tx.yaml("workers").put("worker-01", {"hostname": 5, "disks": "no list"})
        create(3)
    assert set(ledger(layout)) == {"worker-01", "worker-03"}
    assert verify_index() == []


def test_half_of_several_bindings_is_none(layout: Layout) -> None:
    create(1)
    with index.writing(actor=ALICE, op="batch") as tx:
        with pytest.raises(Exception, match="is bound to"):
            tx.hosts.bind_many([(mac(7), "worker-07"), (mac(8), "worker-01")])
        create(2)
    assert "worker-07" not in layout.dhcp_hosts.read_text()
    assert verify_index() == []


def test_what_get_returns_may_be_changed(layout: Layout) -> None:
    create(1)
    with index.writing(actor=ALICE, op="t") as tx:
        record = tx.yaml("workers").get("worker-01")
        record["boot"] = {"menu_timeout": 5}
        tx.yaml("workers").put("worker-01", record)
        record["boot"]["menu_timeout"] = 6
    assert ledger(layout)["worker-01"]["boot"] == {"menu_timeout": 5}
    assert Worker.objects.get().menu_timeout == 5


def test_an_error_in_the_block_leaves_files_and_index(layout: Layout) -> None:
    create(1)
    before = layout.workers_yml.read_bytes(), layout.dhcp_hosts.read_bytes()
    with pytest.raises(ZeroDivisionError), index.writing(actor=ALICE, op="t") as tx:
        tx.yaml("workers").remove("worker-01")
        tx.hosts.unbind_hostname("worker-01")
        assert Worker.objects.count() == 0
        raise ZeroDivisionError
    assert (layout.workers_yml.read_bytes(), layout.dhcp_hosts.read_bytes()) == before
    assert Worker.objects.count() == 1
    assert verify_index() == []


def test_a_failing_afterthought_does_not_report_the_write_as_failed(
    layout: Layout,
) -> None:
    called: list[int] = []
    with index.writing(actor=ALICE, op="t") as tx:
        tx.yaml("workers").put("worker-01", normalized({"hostname": "worker-01"}))
        tx.on_commit(lambda: 1 / 0)  # type: ignore[arg-type,return-value]
        tx.on_commit(lambda: called.append(1))
    assert called == [1]
    assert Worker.objects.count() == 1


def test_an_index_error_after_the_files_does_not_report_the_write_as_failed(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    from django.db import OperationalError

    def full(*args: Any) -> None:
        raise OperationalError("database or disk is full")

    create(1)
    with monkeypatch.context() as patch:
        patch.setattr("ipxeready.index.writer.Transaction._note", full)
        create(2)
    assert "worker-02" in ledger(layout)
    index.ensure_fresh()
    assert Worker.objects.count() == 2
    assert len(lines(layout, "create_worker")) == 2
    assert verify_index() == []


def test_those_who_wait_are_served_together(layout: Layout) -> None:
    served: list[list[int]] = []

    def handle(tx: Any, items: list[int]) -> list[int | Exception]:
        served.append(items)
        for number in items:
            create(number)
        return [Invalid("odd") if number == 13 else number * 2 for number in items]

    grouped: Grouped[int, int] = Grouped("t", handle)
    results: dict[int, Any] = {}

    def ask(number: int) -> None:
        try:
            results[number] = grouped.submit(ALICE, number)
        except Invalid as error:
            results[number] = error.message
        finally:
            connection.close()

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(10, 20)]
    with freshness.lock().held("a test"):
        for thread in threads:
            thread.start()
        end = time.monotonic() + 10
        while len(grouped._waiting) < 10 and time.monotonic() < end:
            time.sleep(0.01)
    for thread in threads:
        thread.join(20)
    assert results == {n: "odd" if n == 13 else n * 2 for n in range(10, 20)}
    assert [sorted(items) for items in served] == [list(range(10, 20))]
    assert Worker.objects.count() == 10


def test_nobody_waits_for_ever_when_the_handler_answers_too_little(
    layout: Layout,
) -> None:
    grouped: Grouped[int, int] = Grouped("t", lambda tx, items: [])
    with pytest.raises(ValueError, match="shorter"):
        grouped.submit(ALICE, 1)
