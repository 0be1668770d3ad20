"""A pool that is not mounted is not an empty one: nothing is made, changed, remembered or cut until it is back."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agents.node import startup
from agents.node.pool import NAME
from tests.agents.node import node_lab
from tests.agents.node.node_lab import BASE, SIZE, Lab


@contextlib.contextmanager
def unmounted(pool: Path) -> Iterator[None]:
    """The pool is elsewhere for the length of the block; below is what is always there: an empty folder."""
    elsewhere = pool.parent / "elsewhere"
    elsewhere.mkdir()
    subprocess.run(["mount", "--move", str(pool), str(elsewhere)], check=True)
    try:
        yield
    finally:
        subprocess.run(["mount", "--move", str(elsewhere), str(pool)], check=True)


def _state(lab: Lab) -> Path:
    return Path(lab.environment["IPXE_ROOT"]) / "state" / "node-pool.json"


@pytest.fixture(params=["files", pytest.param("stgt", marks=pytest.mark.tgtd)])
def pool(
    request: pytest.FixtureRequest, make_lab: Callable[..., Lab], small_folder: Path
) -> Lab:
    """A node whose image directory is a mounted file system; its second disk was taken off on purpose."""
    tgtd = request.getfixturevalue("tgtd") if request.param == "stgt" else None
    lab = make_lab(small_folder, tgtd=tgtd)
    lab.image("debian_tpl_v1.img", content=b"m" * SIZE)
    for number in (1, 2):
        assert lab.disk(f"worker-0{number}.debian", size=SIZE).status_code == 201
    assert lab.delete("worker-02.debian").status_code == 200
    return lab


def _refuses_everything(lab: Lab) -> None:
    answers = [
        lab.disk("worker-03.debian", size=SIZE),
        lab.disk("worker-03.debian", master="debian_tpl_v1.img"),
        lab.disk("worker-02.debian", existing=True),
        lab.delete("worker-01.debian", force="true", delete_file="true"),
        lab.client.post("/lun/scan"),
        lab.client.get("/capabilities"),
        lab.client.get("/masters"),
    ]
    for answer in answers:
        assert answer.status_code == 503, answer.content
        assert "not mounted" in answer.json()["detail"]


@pytest.mark.case(73)
def test_a_pool_that_is_unmounted_while_the_node_runs(pool: Lab) -> None:
    before = pool.files()
    with unmounted(pool.folder):
        _refuses_everything(pool)
        startup.watch_targets(pool.node)
        assert os.listdir(pool.folder) == []
        assert set(pool.targets()) == {"worker-01.debian"}
    assert pool.files() == before
    assert "on purpose" in pool.skipped()["worker-02.debian.img"]
    assert pool.disk("worker-03.debian", size=SIZE).status_code == 201


@pytest.mark.case(73)
def test_a_start_over_an_unmounted_pool_removes_and_remembers_nothing(
    pool: Lab,
) -> None:
    before = pool.files()
    remembered = (pool.folder / ".targets.json").read_bytes()
    with unmounted(pool.folder):
        node = pool.restart()
        assert node.unbuilt
        _refuses_everything(pool)
        with contextlib.suppress(Exception):
            startup.watch_targets(node)
        assert os.listdir(pool.folder) == []
        there = {"worker-01.debian"} if pool.tgtd else set()
        assert set(pool.targets()) == there
    # Mounted again, it comes up by itself, as it was.
    startup.watch_targets(node)
    assert not node.unbuilt
    assert set(pool.targets()) == {"worker-01.debian"}
    assert pool.files() == before
    assert (pool.folder / ".targets.json").read_bytes() == remembered


@pytest.mark.case(73)
@pytest.mark.tgtd
def test_a_session_lives_on_while_the_pool_is_unmounted_and_the_node_restarts(
    make_lab: Callable[..., Lab], small_folder: Path, tgtd: node_lab.Tgtd
) -> None:
    lab = make_lab(small_folder, tgtd=tgtd)
    lab.disk("worker-01.debian", size=SIZE, access="off")
    with (
        node_lab.session(tgtd, f"{BASE}:worker-01.debian") as held,
        unmounted(small_folder),
    ):
        listing = tgtd.listing()
        lab.restart()
        lab.client.post("/lun/scan")
        assert lab.delete("worker-01.debian", force="true").status_code == 503
        assert tgtd.listing() == listing
        assert held.running


@pytest.mark.case(73)
def test_another_file_system_in_the_place_of_the_pool_is_not_served(
    pool: Lab,
) -> None:
    """Stale images below the mount, or a disk of another machine."""
    with unmounted(pool.folder):
        for mark in (None, "another"):
            stale = pool.folder / "worker-01.debian.img"
            stale.write_bytes(b"s" * SIZE)
            if mark:
                (pool.folder / NAME).write_text(mark)
            node = pool.restart()
            assert node.unbuilt
            _refuses_everything(pool)
            assert not pool.tgtd or set(pool.targets()) == {"worker-01.debian"}
            stale.unlink()


@pytest.mark.case(73)
def test_a_pool_that_was_emptied_is_still_the_pool(pool: Lab) -> None:
    for path in pool.folder.glob("*.img"):
        path.unlink()
    (pool.folder / ".targets.json").unlink()
    node = pool.restart()
    assert not node.unbuilt
    assert pool.disk("worker-04.debian", size=SIZE).status_code == 201


@pytest.mark.case(73)
def test_an_operator_may_say_that_another_directory_is_the_right_one_now(
    pool: Lab,
) -> None:
    with unmounted(pool.folder):
        pool.folder.joinpath("worker-05.debian.img").write_bytes(b"n" * SIZE)
        answer = pool.client.post("/lun/scan")
        assert str(_state(pool)) in answer.json()["detail"]
        _state(pool).unlink()
        assert pool.client.post("/lun/scan").status_code == 200
        assert "worker-05.debian" in pool.targets()
        mark = (pool.folder / NAME).read_text().strip()
        assert json.loads(_state(pool).read_text()) == {str(pool.folder): mark}
        (pool.folder / NAME).unlink()
        pool.folder.joinpath("worker-05.debian.img").unlink()


def test_a_pool_that_is_mounted_after_the_first_start_is_taken_as_it_is(
    make_lab: Callable[..., Lab], small_folder: Path
) -> None:
    (small_folder / "worker-01.debian.img").write_bytes(b"x" * SIZE)
    with unmounted(small_folder):
        lab = make_lab(small_folder)
        assert lab.targets() == {}
        assert not _state(lab).exists()
        assert os.listdir(small_folder) == []
    assert len(lab.scan()["created"]) == 1
    assert (small_folder / NAME).exists()


def test_a_mark_that_cannot_be_written_or_remembered_stops_nothing(
    make_lab: Callable[..., Lab], small_folder: Path, tmp_path: Path
) -> None:
    (small_folder / "worker-01.debian.img").write_bytes(b"x" * SIZE)
    subprocess.run(["mount", "-o", "remount,ro", str(small_folder)], check=True)
    lab = make_lab(small_folder)
    assert not lab.node.unbuilt
    assert not (small_folder / NAME).exists()
    subprocess.run(["mount", "-o", "remount,rw", str(small_folder)], check=True)
    _state(lab).write_text("{")
    lab.restart()
    assert lab.disk("worker-02.debian", size=SIZE).status_code == 201
    assert json.loads(_state(lab).read_text())[str(small_folder)]
