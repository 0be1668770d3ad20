"""An unchanged file costs one stat, a changed one is always seen; the audit trail survives what is done to it."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from audit.models import Operation
from bootvars.models import Setting
from ipxeready import index
from ipxeready.index import freshness
from ipxeready.index.build import schema_digest
from ipxeready.index.models import Problem
from ipxeready.index.verify import verify_index
from ipxeready.storage import jsonl
from ipxeready.storage.paths import Layout
from tests.index.helpers import ALICE, create, lines, restart
from workers.models import Worker


def settle(layout: Layout) -> None:
    """Make the files older than the clock's grain."""
    for path in (layout.workers_yml, layout.dhcp_hosts, layout.operations):
        st = path.stat()
        os.utime(path, ns=(st.st_atime_ns, st.st_mtime_ns - 10_000_000_000))
    index.ensure_fresh(wait=True)


def test_unchanged_files_cost_no_query(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    create(1)
    # An hour later, for the clock that tells whether stamps can be trusted.
    real = freshness.time.time_ns
    monkeypatch.setattr(freshness.time, "time_ns", lambda: real() + 3_600_000_000_000)
    index.ensure_fresh()
    with CaptureQueriesContext(
        connection,
    ) as queries:
        for _ in range(10):
            index.ensure_fresh()
    assert len(queries) == 0
    assert freshness.settled() is not None


@pytest.mark.parametrize("times", range(8))
def test_an_edit_of_equal_size_right_after_ours_is_seen(
    layout: Layout, times: int
) -> None:
    create(1)
    index.ensure_fresh()
    content = layout.workers_yml.read_bytes()
    fd = os.open(layout.workers_yml, os.O_WRONLY)
    os.write(fd, content.replace(b"x86_64", b"riscv%d" % (times % 10)))
    os.close(fd)
    index.ensure_fresh()
    assert Worker.objects.get(pk="worker-01").arch == f"riscv{times % 10}"
    # And not written over by what the writer remembered.
    create(2)
    assert b"riscv" in layout.workers_yml.read_bytes()


def test_stamps_that_are_put_back_are_seen_through_the_change_time(
    layout: Layout,
) -> None:
    create(1)
    st = layout.workers_yml.stat()
    content = layout.workers_yml.read_bytes()
    layout.workers_yml.write_bytes(content.replace(b"x86_64", b"riscv1"))
    os.utime(layout.workers_yml, ns=(st.st_atime_ns, st.st_mtime_ns))
    index.ensure_fresh()
    assert Worker.objects.get(pk="worker-01").arch == "riscv1"


def test_a_stamp_in_the_future_is_compared_by_content(layout: Layout) -> None:
    create(1)
    ahead = 4_000_000_000_000_000_000
    os.utime(layout.workers_yml, ns=(ahead, ahead))
    index.ensure_fresh()
    assert freshness.settled() is None
    index.ensure_fresh()
    assert Worker.objects.count() == 1


def test_a_stray_write_dies_in_sqlite(layout: Layout) -> None:
    create(1)
    with pytest.raises(OperationalError, match="readonly database"):
        Worker.objects.filter(pk="worker-01").update(arch="x")
    with pytest.raises(OperationalError, match="readonly database"):
        Setting.objects.create(record="a", key="a", value=True)
    assert Worker.objects.get(pk="worker-01").arch == "x86_64"
    with (
        index.writing(actor=ALICE, op="t"),
        pytest.raises(OperationalError, match="readonly"),
    ):
        Worker.objects.all().delete()
    assert Worker.objects.count() == 1


def test_the_index_may_be_deleted_while_we_run(layout: Layout) -> None:
    create(1)
    path = Path(str(connection.settings_dict["NAME"]))
    went: list[Any] = []
    step, stop = threading.Event(), threading.Event()

    def reader() -> None:
        try:
            while not stop.is_set():
                index.ensure_fresh()
                went.append(Worker.objects.count())
                step.set()
        except Exception as error:  # noqa: BLE001 - told below
            went.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=reader) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for number in range(2, 6):
            assert step.wait(10)
            step.clear()
            path.unlink()
            create(number)
            assert Worker.objects.count() == number
    finally:
        stop.set()
        for thread in threads:
            thread.join(10)
    assert [each for each in went if not isinstance(each, int)] == []
    assert verify_index() == []


@pytest.mark.parametrize(
    "junk", [b"", b"not a database, but long enough to be one " * 99]
)
def test_a_damaged_index_is_rebuilt(layout: Layout, junk: bytes) -> None:
    create(1)
    path = Path(str(connection.settings_dict["NAME"]))
    connection.close()
    for side in ("-wal", "-shm"):
        Path(f"{path}{side}").unlink(missing_ok=True)
    path.write_bytes(junk)
    freshness.forget()
    index.ensure_fresh()
    assert Worker.objects.get().pk == "worker-01"
    create(2)
    assert verify_index() == []


def test_the_schema_names_the_index(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ipxeready.index.sources import get_source

    before = schema_digest()
    assert before == schema_digest()
    monkeypatch.setattr(get_source("workers"), "version", 99)
    assert schema_digest() != before
    monkeypatch.undo()
    field = Worker._meta.get_field("arch")
    monkeypatch.setattr(field, "null", True)
    assert schema_digest() != before


def test_a_rebuilt_index_tells_differences(layout: Layout) -> None:
    create(1)
    create(2)
    assert verify_index() == []
    from ipxeready.index.connection import writable

    with writable():
        Worker.objects.filter(pk="worker-01").update(arch="x")
        Worker.objects.filter(pk="worker-02").delete()
    told = " ".join(verify_index())
    assert "1 rows too much" in told
    assert "2 rows missing" in told
    index.rebuild()
    assert verify_index() == []
    restart()
    assert verify_index() == []


# --- the audit trail ---------------------------------------------------------


@pytest.mark.case(91)
@pytest.mark.parametrize(
    "torn", [b'{"ts":1,"ev":"bi', '{"id":9,"op":"机'.encode()[:-1]]
)
def test_a_torn_tail_costs_one_record_and_is_told_once(
    layout: Layout, torn: bytes
) -> None:
    create(1)
    with layout.operations.open("ab") as file:
        file.write(torn)
    index.ensure_fresh()
    create(2)
    assert [line["worker_id"] for line in lines(layout, "create_worker")] == [
        "worker-01",
        "worker-02",
    ]
    assert layout.operations.read_bytes().endswith(b"\n")
    for _ in range(2):
        assert Problem.objects.filter(code="journal.line").count() == 1
        assert Operation.objects.filter(op="create_worker").count() == 2
        restart()
    ids = [line["id"] for line in lines(layout)]
    assert ids == sorted(set(ids))
    assert verify_index() == []


@pytest.mark.case(91)
@pytest.mark.parametrize(
    "bad",
    [
        b"rubbish\n",
        b"\xff\xfe\n",
        b"[1]\n",
        b'{"op":"no id"}\n',
        b'{"id":true,"op":"x"}\n',
        b'{"id":999999999999999999999999,"op":"x"}\n',
        b'{"id":5000,"op":"x","n":NaN}\n',
        b'{"id":5000,"op":"x","n":1e999}\n',
        b'{"id":5000,"op":"\\ud800"}\n',
        b'{"id":5000,"op":' + b"[" * 5000 + b"]" * 5000 + b"}\n",
        b'{"id":' + b"9" * 5000 + b"}\n",
    ],
)
def test_a_damaged_line_in_the_middle_is_told_and_stops_nothing(
    layout: Layout, bad: bytes
) -> None:
    create(1)
    with layout.operations.open("ab") as file:
        file.write(bad)
    create(2)
    assert Operation.objects.filter(op="create_worker").count() == 2
    problem = Problem.objects.get(code="journal.line")
    number = 1 + layout.operations.read_bytes().split(bad)[0].count(b"\n")
    assert problem.line == number
    assert f"line {number} of operations.jsonl cannot be read" in problem.message
    assert lines(layout, "create_worker")[-1]["id"] < 6000
    restart()
    assert Problem.objects.filter(code="journal.line").count() == 1
    assert verify_index() == []


def test_rotation_goes_on_counting(layout: Layout) -> None:
    create(1)
    create(2)
    last = lines(layout)[-1]["id"]
    layout.operations.rename(layout.operations.with_suffix(".jsonl.1"))
    layout.operations.touch()
    create(3)
    assert lines(layout)[0]["id"] == last + 1
    assert Operation.objects.filter(op="create_worker").count() == 3
    assert verify_index() == []


@pytest.mark.parametrize("keep", [0, 1])
def test_a_trail_that_was_cut_goes_on(layout: Layout, keep: int) -> None:
    for number in (1, 2, 3):
        create(number)
    last = lines(layout)[-1]["id"]
    raw = layout.operations.read_bytes().splitlines(keepends=True)
    with layout.operations.open("r+b") as file:
        file.truncate(sum(map(len, raw[:keep])))
    create(4)
    ids = [line["id"] for line in lines(layout)]
    assert len(ids) == keep + 1
    assert ids[-1] > last or keep  # an id that callers have seen does not come again
    assert Problem.objects.filter(code="journal.line").count() == 0


def test_a_line_put_into_the_middle_by_hand_does_not_confuse_the_reader(
    layout: Layout,
) -> None:
    create(1)
    create(2)
    raw = layout.operations.read_bytes().splitlines(keepends=True)
    raw.insert(
        1,
        b'{"id":900,"op":"by.hand","status":"ok","note":"a long line of some hand"}\n',
    )
    with layout.operations.open("r+b") as file:
        file.write(b"".join(raw))
    create(3)
    assert Operation.objects.filter(op="by.hand").count() == 1
    assert Problem.objects.filter(code="journal.line").count() == 0
    assert Operation.objects.filter(op="create_worker").count() == 3


def test_only_the_newest_lines_are_kept_in_the_index(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ipxeready.index.journal import get_journal

    monkeypatch.setattr(get_journal(), "keep", 20)
    for number in range(1, 40):
        index.append_log(actor=ALICE, op="t", status="ok", n=number)
    restart()
    assert Operation.objects.count() == 20
    assert Operation.objects.order_by("-pk")[0].data["n"] == 39
    assert len(lines(layout)) >= 39


def test_the_last_id_is_found_behind_long_lines(tmp_path: Path) -> None:
    path = tmp_path / "o.jsonl"
    jsonl.append(path, jsonl.encode({"id": 7}) + b'{"x":"' + b"y" * 200_000 + b'"}\n')
    assert jsonl.last_id(path) == 7
    jsonl.append(path, json.dumps({"id": 8}).encode())
    assert jsonl.last_id(path) == 8
    assert [line.number for line in jsonl.read(path)] == [1, 2]
