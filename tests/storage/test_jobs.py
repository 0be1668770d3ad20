"""The job store: what a crash leaves can be told from what is still worked on."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from ipxeready.conf import REPOSITORY
from ipxeready.errors import Conflict, NotFound, Unavailable
from ipxeready.storage.jobs import (
    CANCELLED,
    DONE,
    FAILED,
    QUEUED,
    RUNNING,
    Cancelled,
    JobStore,
)


@pytest.fixture
def store(tmp_path: Path) -> JobStore:
    return JobStore(tmp_path / "jobs")


def test_job_is_a_file_that_only_its_owner_reads(store: JobStore) -> None:
    with store.new("disk", by="ann", about={"iqn": "x"}, total=5) as running:
        path = store.folder / f"{running.job.id}.json"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        running.run(lambda job: {"made": job.job.about["iqn"]})
    told = json.loads(path.read_bytes())
    assert (told["state"], told["result"], told["by"]) == (DONE, {"made": "x"}, "ann")
    assert told["created"] <= told["started"] <= told["ended"]
    assert sorted(p.name for p in store.folder.iterdir()) == [path.name]


def test_refusal_of_the_work_is_the_jobs_error(store: JobStore) -> None:
    def work(_: object) -> None:
        raise Conflict("it is there already")

    with store.new("disk", by="ann") as running:
        running.run(work)
    job = store.get(running.job.id)
    assert job.state == FAILED
    assert job.error == {"status": 409, "detail": "it is there already"}


def test_bug_ends_the_job_and_reaches_the_log(store: JobStore) -> None:
    with store.new("disk", by="ann") as running, pytest.raises(ZeroDivisionError):
        running.run(lambda _: 1 // 0)
    job = store.get(running.job.id)
    assert job.state == FAILED
    assert job.error == {"status": 500, "detail": "internal error: ZeroDivisionError"}


def test_wish_to_cancel_stops_the_work_at_its_next_step(store: JobStore) -> None:
    steps = []

    def work(job: object) -> None:
        for number in range(100):
            steps.append(number)
            if number == 3:
                store.cancel(running.job.id)
            running.check()

    with store.new("disk", by="ann") as running:
        running.run(work)
    assert store.get(running.job.id).state == CANCELLED
    assert steps == [0, 1, 2, 3]
    assert not list(store.folder.glob("*.cancel"))


def test_progress_raises_when_cancelled(store: JobStore) -> None:
    with store.new("disk", by="ann", total=10) as running:
        store.cancel(running.job.id)
        with pytest.raises(Cancelled):
            running.at(1)


def test_dead_owner_is_told_from_a_living_one(store: JobStore) -> None:
    script = (
        "import os, sys\n"
        "from pathlib import Path\n"
        "from ipxeready.storage.jobs import JobStore\n"
        "with JobStore(Path(sys.argv[1])).new('disk', by='ann') as running:\n"
        "    running.start()\n"
        "    print(running.job.id, flush=True)\n"
        "    sys.stdin.read()\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", script, str(store.folder)],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )
    assert child.stdout and child.stdin
    job_id = child.stdout.readline().decode().strip()
    assert list(store.abandoned()) == []
    child.stdin.close()
    child.wait(20)
    child.stdout.close()
    assert store.get(job_id).state == RUNNING
    for running in store.abandoned():
        running.fail(status=503, detail="the service was restarted")
    assert store.get(job_id).state == FAILED
    assert list(store.abandoned()) == []


def test_same_key_finds_the_running_job_only(store: JobStore) -> None:
    with store.new("disk", by="ann", key="a") as running:
        found = store.find_running("a")
        assert found is not None
        assert found.id == running.job.id
        running.finish(None)
    assert store.find_running("a") is None


def test_old_ends_go_and_unfinished_jobs_stay(store: JobStore) -> None:
    ids = []
    for _ in range(4):
        with store.new("disk", by="ann") as running:
            running.finish(None)
        ids.append(running.job.id)
    with store.new("disk", by="ann") as left:
        store.prune(keep=2)
        assert len(store.all()) == 3
        assert store.get(left.job.id)


@pytest.mark.parametrize(
    "name", ["", "..", "../x", "20260101-000000-0000000g", "20260101-000000-00000000"]
)
def test_unknown_id_is_not_found(store: JobStore, name: str) -> None:
    with pytest.raises(NotFound, match="there is no job"):
        store.get(name)


def test_file_that_is_no_job_is_passed_over(store: JobStore) -> None:
    store.folder.mkdir()
    (store.folder / "20260101-000000-00000000.json").write_text("{")
    (store.folder / "20260101-000000-00000001.json").write_text("[]")
    (store.folder / "20260101-000000-00000002.json").write_text('{"id": 1}')
    (store.folder / "20260101-000000-00000003.json").write_text("[" * 100_000)
    os.mkfifo(store.folder / "20260101-000000-00000004.json")
    assert store.all() == []


@pytest.mark.parametrize(
    "field",
    [
        {"id": "../../elsewhere"},
        {"kind": ["x"]},
        {"by": None},
        {"about": "x"},
        {"key": 5},
        {"state": ["running"]},
        {"state": "walking"},
        {"done": "5"},
        {"done": True},
        {"total": 1.5},
        {"created": 5},
        {"created": "yesterday"},
        {"created": "2026-01-01T00:00:00"},
        {"started": "-"},
        {"error": "x"},
    ],
    ids=str,
)
def test_file_that_somebody_edited_wrongly_stops_nobody_who_reads_the_others(
    store: JobStore, field: dict[str, object]
) -> None:
    with store.new("disk", by="ann") as running:
        running.start()
        path = store.folder / f"{running.job.id}.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | field))
        with store.new("disk", by="ann") as other:
            assert store.unfinished() == store.all() == [other.job]
    assert next(iter(store.abandoned())).job.id == other.job.id
    store.prune(keep=0)


def test_job_of_later_leaves_no_trace_when_it_is_over_at_once(store: JobStore) -> None:
    with store.later("disk", by="ann") as running:
        running.run(lambda job: job.at(7))
        assert running.job.state == DONE
    assert not store.folder.exists()


def test_job_of_later_is_a_job_like_any_once_it_is_shown(store: JobStore) -> None:
    with store.later("disk", by="ann", key="k") as running:
        running.at(3, total=9)
        assert running.show()
        found = store.find_running("k")
        assert found is not None
        assert (found.state, found.done, found.total) == (QUEUED, 3, 9)
        assert list(store.abandoned()) == []
        store.cancel(running.job.id)
        with pytest.raises(Cancelled):
            running.check()
        running.cancel("enough")
    assert store.get(running.job.id).state == CANCELLED
    assert [p.suffix for p in store.folder.iterdir()] == [".json"]


def test_wish_from_the_own_process_needs_no_file_and_no_pause(store: JobStore) -> None:
    with store.later("disk", by="ann") as running:
        running.at(1)
        running.wish()
        with pytest.raises(Cancelled):
            running.at(2)


def test_full_disk_stops_no_work_that_has_begun(
    store: JobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    with store.new("disk", by="ann") as running:
        with monkeypatch.context() as patch:
            patch.setattr(store, "write", full)
            running.run(lambda job: job.at(7))
            assert running.unwritten
        assert (running.job.state, running.job.done) == (DONE, 7)
        running.save()
        assert not running.unwritten
    assert store.get(running.job.id).state == DONE
    with (
        monkeypatch.context() as patch,
        pytest.raises(Unavailable, match="takes no file"),
    ):
        patch.setattr(store, "write", full)
        with store.new("disk", by="ann"):
            raise AssertionError("the block must not run")


def test_what_a_kill_left_is_swept_and_what_is_at_work_is_not(store: JobStore) -> None:
    with store.new("disk", by="ann") as running:
        draft = store.folder / f".{running.job.id}.json.1.tmp"
        fresh = store.folder / f".{running.job.id}.json.2.tmp"
        orphan = store.folder / "20260101-000000-00000000.cancel"
        for path in (draft, fresh, orphan):
            path.touch()
        for path in (draft, orphan):
            os.utime(path, (0, 0))
        store.cancel(running.job.id)
        store.prune()
        assert running.cancelled()
    assert sorted(p.suffix for p in store.folder.iterdir()) == [
        ".cancel",
        ".json",
        ".tmp",
    ]
