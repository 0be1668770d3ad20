"""How a node says that it is: target system, room, images, and what somebody should look at."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.node.backends import tgtadm
from agents.node.folder import Folder
from tests.agents.node import node_lab
from tests.agents.node.node_lab import BASE, SIZE, Lab
from tests.processes import eventually

DISK = f"{BASE}:worker-01.debian"


def _health(lab: Lab) -> Any:
    answer = lab.client.get("/health")
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_a_healthy_node_counts_what_it_has(lab: Lab) -> None:
    lab.image("debian_tpl_v1.img")
    lab.image("win11.iso")
    lab.disk("worker-01.debian", size=SIZE)
    lab.disk("worker-02.debian", size=SIZE)
    lab.delete("worker-02.debian")
    found = _health(lab)
    assert found["problems"] == []
    assert found["backend"] == {
        "name": "stgt" if lab.tgtd else "files",
        "alive": True,
        "ours": True,
    }
    assert found["images"] == {"disks": 2, "masters": 1, "isos": 1, "kept": 1}
    assert found["targets"] == {"ours": 1, "foreign": 0, "sessions": 0}
    assert found["room"]["promised"] == 2 * SIZE
    assert 0 < found["room"]["reserve"] < found["room"]["total"]
    assert found["fs"]["type"] == lab.node.images.fs_type()
    assert lab.folder.is_relative_to(found["fs"]["mount"])


def test_health_wants_the_token(files: Lab) -> None:
    assert files.stranger.get("/health").status_code == 401
    assert files.client.get("/health?x=1").status_code == 400
    assert files.client.post("/health").status_code == 405


@pytest.mark.tgtd
@pytest.mark.case(86)
def test_foreign_targets_are_counted_and_left_untouched(stgt: Lab) -> None:
    assert stgt.tgtd
    stgt.tgtd.adm("--op", "new", "--mode", "target", "--tid", "9", "-T", "iqn.2001-01.org.else:x")  # fmt: skip
    before = stgt.tgtd.listing()
    stgt.disk("worker-01.debian", size=SIZE)
    with node_lab.session(stgt.tgtd, DISK):
        assert _health(stgt)["targets"] == {"ours": 1, "foreign": 1, "sessions": 1}
    stgt.delete("worker-01.debian", delete_file="true")
    assert stgt.tgtd.listing() == before


@pytest.mark.tgtd
@pytest.mark.case(86)
def test_a_tgtd_that_serves_another_portal_is_not_ours(stgt: Lab) -> None:
    assert stgt.tgtd
    port = stgt.tgtd.port
    for portal in (f"127.0.0.1:{port}", f"0.0.0.0:{port}", f"[::]:{port}"):
        stgt.restart(IPXE_ISCSI_PORTAL=portal)
        assert _health(stgt)["backend"]["ours"] is True
    stgt.restart(IPXE_ISCSI_PORTAL=f"192.0.2.1:{port}")
    assert _health(stgt)["backend"]["ours"] is False
    stgt.restart(IPXE_ISCSI_PORTAL="0.0.0.0:3260")
    found = _health(stgt)
    assert found["backend"]["alive"] is True
    assert found["backend"]["ours"] is False
    (words,) = found["problems"]
    assert f"127.0.0.1:{port}" in words
    assert "0.0.0.0:3260" in words


@pytest.mark.tgtd
@pytest.mark.case(76)
def test_a_backend_that_is_gone_is_told_beside_what_is_well(stgt: Lab) -> None:
    assert stgt.tgtd
    stgt.disk("worker-01.debian", size=SIZE)
    stgt.tgtd.kill()
    found = _health(stgt)
    assert found["backend"]["alive"] is False
    assert found["backend"]["ours"] is False
    assert "tgtd is not connected" in found["backend"]["error"]
    assert found["problems"] == [found["backend"]["error"]]
    assert found["images"]["disks"] == 1
    assert found["room"]["free"] > 0


def _calls(adm: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[list[float], list[int]]:
    """The limit of each call of tgtadm that begins, and how many were under way then: what a hung one may cost."""
    limits: list[float] = []
    at_once: list[int] = []
    real = adm._begin

    def begin(call: object) -> float:
        limit: float = real(call)
        at_once.append(len(adm._running))
        limits.append(limit)
        return limit

    monkeypatch.setattr(adm, "_begin", begin)
    return limits, at_once


@pytest.mark.tgtd
@pytest.mark.case(83)
def test_a_hung_backend_is_told_in_time_and_gathers_no_threads(
    stgt: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """tgtadm is replaced by a program that never returns."""
    stgt.disk("worker-01.debian", size=SIZE)
    adm = stgt.node.backend._tgtadm  # type: ignore[attr-defined]
    hangs = tmp_path / "bin" / "tgtadm"
    hangs.parent.mkdir()
    hangs.write_text("#!/bin/sh\nexec /bin/sleep 600\n")
    hangs.chmod(0o755)
    monkeypatch.setattr(tgtadm, "TIMEOUT", 1.0)
    monkeypatch.setattr(tgtadm, "_SLOW", 0.3)
    monkeypatch.setattr(tgtadm, "_RETRY", 0.5)
    monkeypatch.setattr(tgtadm, "_PAUSE", 0.0)
    monkeypatch.setitem(adm._environment, "PATH", str(hangs.parent))
    limits, at_once = _calls(adm, monkeypatch)
    before = threading.active_count()
    found = _health(stgt)
    assert limits == [1.0]
    assert found["backend"]["alive"] is False
    assert "did not answer" in found["problems"][0]
    assert found["images"]["disks"] == 1
    # It is known to hang: one call at a time tries again, all others are answered at once.
    answers: list[bool] = []

    def ask() -> None:
        answers.append(_health(stgt)["backend"]["alive"])

    threads = [threading.Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    assert answers == [False] * 20
    assert {*limits[1:]} == {0.5}
    assert {*at_once} == {1}
    assert threading.active_count() == before
    monkeypatch.setitem(adm._environment, "PATH", os.environ["PATH"])
    assert _health(stgt)["backend"]["alive"] is True
    assert _health(stgt)["problems"] == []


@pytest.mark.tgtd
@pytest.mark.case(83)
def test_who_comes_while_a_call_hangs_does_not_wait_behind_it(
    stgt: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stgt.tgtd
    monkeypatch.setattr(tgtadm, "TIMEOUT", 60.0)
    monkeypatch.setattr(tgtadm, "_SLOW", 0.2)
    adm = stgt.node.backend._tgtadm  # type: ignore[attr-defined]
    limits, _ = _calls(adm, monkeypatch)
    os.kill(stgt.tgtd.process.pid, signal.SIGSTOP)
    first = threading.Thread(target=stgt.client.get, args=("/lun",))
    try:
        first.start()
        eventually(lambda: adm._running)
        time.sleep(0.3)
        assert stgt.client.get("/lun").status_code == 503
        assert len(limits) == 1  # that answer cost no call
    finally:
        os.kill(stgt.tgtd.process.pid, signal.SIGCONT)
        first.join()
    assert stgt.client.get("/lun").status_code == 200


@pytest.mark.case(71)
def test_more_promised_than_there_is_room_is_a_problem_and_no_refusal(
    files: Lab,
) -> None:
    free = files.node.images.room()[0]
    assert files.disk("worker-01.debian", size=(free // 2) // 512 * 512).status_code == 201  # fmt: skip
    assert _health(files)["problems"] == []
    assert files.disk("worker-02.debian", size=(free // 2) // 512 * 512).status_code == 201  # fmt: skip
    assert files.disk("worker-03.debian", size=SIZE * 512).status_code == 201
    found = _health(files)
    assert found["room"]["promised"] > found["room"]["free"]
    (words,) = found["problems"]
    assert "may still grow by" in words


@pytest.mark.case(71)
def test_a_full_disk_is_a_problem(
    small_folder: Path, make_lab: Callable[..., Lab]
) -> None:
    lab = make_lab(small_folder)
    free, total = lab.node.images.room()
    with (small_folder / "ballast").open("wb") as stream:
        os.posix_fallocate(stream.fileno(), 0, free - total // 100)
    assert any("stay in reserve" in words for words in _health(lab)["problems"])


def test_a_read_only_folder_is_a_problem(
    small_folder: Path, make_lab: Callable[..., Lab]
) -> None:
    lab = make_lab(small_folder)
    subprocess.run(["mount", "-o", "remount,ro", str(small_folder)], check=True)
    (words,) = _health(lab)["problems"]
    assert "read-only" in words


def test_another_file_system_than_at_the_start_is_a_problem(
    small_folder: Path, make_lab: Callable[..., Lab], tmp_path: Path
) -> None:
    inside = small_folder / "images"
    inside.mkdir()
    lab = make_lab(inside)
    assert _health(lab)["problems"] == []
    subprocess.run(["mount", "-t", "tmpfs", "none", str(inside)], check=True)
    try:
        (words,) = _health(lab)["problems"]
        assert "another file system" in words
        assert f"tmpfs at {inside}" in words
    finally:
        subprocess.run(["umount", str(inside)], check=True)
    assert _health(lab)["problems"] == []


def test_a_folder_that_is_gone_is_a_problem(files: Lab) -> None:
    files.folder.rename(files.folder.with_name("elsewhere"))
    found = _health(files)
    assert any("cannot be opened" in words for words in found["problems"])
    assert found["images"]["disks"] == 0


@pytest.mark.parametrize("name", [".targets.json", ".chap.json"])
def test_a_broken_memory_is_a_problem(files: Lab, name: str) -> None:
    (files.folder / name).write_text("{")
    (files.folder / name).chmod(0o600)
    (words,) = _health(files)["problems"]
    assert name in words


def test_targets_without_a_file_are_a_problem(lab: Lab) -> None:
    for number in range(7):
        lab.disk(f"worker-0{number}.debian", size=SIZE)
        (lab.folder / f"worker-0{number}.debian.img").unlink()
    lab.image("worker-09.debian.img")
    problems = _health(lab)["problems"]
    assert len(problems) == 6
    assert "worker-00.debian" in problems[0]
    assert "2 more" in problems[-1]


def test_a_rebuild_that_did_not_run_is_a_problem(files: Lab) -> None:
    (files.folder / ".targets.json").write_text("{")
    files.restart()
    (files.folder / ".targets.json").unlink()
    assert any("rebuild" in words for words in _health(files)["problems"])


def test_the_mount_is_the_nearest_one(small_folder: Path) -> None:
    mount = Folder(small_folder).mount()
    assert mount == ("ext4", str(small_folder))
