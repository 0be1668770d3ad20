"""`reindex`: a new index in the place of the present one."""

from __future__ import annotations

import fcntl
from pathlib import Path

import pytest
from django.db import connection

from ipxeready.index.connection import identity, writable
from ipxeready.storage.lock import StateLock
from ipxeready.storage.paths import Layout
from tests.shell import run
from workers.models import Worker

M1 = "52:54:00:00:00:01"


def test_it_is_built_anew_from_the_files(layout: Layout) -> None:
    run("register_workers", "-", stdin=f"worker_id,mac\na,{M1}\n")
    before = identity()
    ended = run("reindex", "--json")
    assert (ended.code, ended.err) == (0, "")
    assert identity() != before
    assert ended.json["index"] == str(connection.settings_dict["NAME"])
    assert ended.json["rows"]["worker"] == ended.json["rows"]["binding"] == 1
    assert ended.json["problems"] == 0
    assert [each["worker_id"] for each in run("list_workers", "--json").json] == ["a"]


def test_rows_that_no_file_has_are_gone(layout: Layout) -> None:
    with writable():
        Worker.objects.create(
            record="x",
            worker_id="x",
            hostname="x",
            state="ready",
            data={"hostname": "x", "disks": []},
        )
    assert len(run("list_workers", "--json").json) == 1
    assert "0 worker" in run("reindex").out
    assert run("list_workers", "--json").json == []


def test_a_broken_index_is_no_obstacle(layout: Layout) -> None:
    connection.close()
    path = Path(str(connection.settings_dict["NAME"]))
    for name in (path, Path(f"{path}-wal"), Path(f"{path}-shm")):
        name.unlink(missing_ok=True)
    path.write_bytes(b"no database at all" * 100)
    assert run("reindex").code == 0
    assert run("list_workers", "--json").json == []


def test_problems_of_the_files_are_counted(layout: Layout) -> None:
    layout.workers_yml.write_text("workers:\n  a: {hostname: a_b}\n")
    ended = run("reindex")
    assert (ended.code, ended.err) == (0, "1 problems in the files; see checkstate\n")


def test_a_lock_that_is_held_is_waited_for_and_named(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    held = StateLock.held
    monkeypatch.setattr(StateLock, "held", lambda self, what: held(self, what, 0.1))
    with layout.lock.open("r+") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        ended = run("reindex", "--json")
    assert ended.code == 1
    assert ended.json["error"]["code"] == "state.busy"
    assert "is busy: held by" in ended.err


def test_an_index_is_compared_with_a_new_one(layout: Layout) -> None:
    pytest.importorskip("ipxeready.index.verify")
    run("register_workers", "-", stdin=f"worker_id,mac\na,{M1}\n")
    ended = run("reindex", "--verify", "--json")
    assert (ended.code, ended.json, ended.err) == (0, {"differences": []}, "")
    with writable():
        Worker.objects.filter(pk="a").update(hostname="b")
    before = identity()
    ended = run("reindex", "--verify", "--json")
    assert ended.code == 1
    assert any("workers_worker" in each for each in ended.json["differences"])
    assert ended.err.startswith("Different: ")
    assert identity() == before
    assert run("reindex").code == 0
    assert run("reindex", "--verify").out == "the index is what the files say\n"
