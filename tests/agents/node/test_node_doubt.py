"""Calls that get no answer: nobody knows what came of them, so the node looks again, and nothing stays half."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from agents.node import importing, resetting, startup
from agents.node.backends.base import Export
from agents.node.backends.files import FilesBackend
from ipxeready.errors import ApplicationError, Unavailable
from tests.agents.node import node_lab
from tests.agents.node.node_lab import BASE, SIZE, Lab

DISK = "worker-01.debian"
IMAGE = f"{DISK}.img"
IQN = f"{BASE}:{DISK}"
ONE = f"{BASE}:worker-01"
MASTER = "debian_tpl_v1.img"
FRESH = b"as the master has it"


class Silent:
    """A target system that does what it is asked and then says nothing, while it is on."""

    def __init__(self, lab: Lab, patch: pytest.MonkeyPatch) -> None:
        self.backend = lab.node.backend
        self.exports = self.unexports = 0
        """How many of the next calls get no answer."""
        self.deaf = False
        """Those calls are not done either."""
        self._export, self._unexport = self.backend.export_all, self.backend.unexport
        patch.setattr(self.backend, "export_all", self.export_all)
        patch.setattr(self.backend, "unexport", self.unexport)

    def export_all(
        self, exports: Sequence[Export]
    ) -> dict[str, ApplicationError | None]:
        if not self.exports:
            return self._export(exports)
        self.exports -= 1
        if not self.deaf:
            self._export(exports)
        raise Unavailable("no answer")

    def unexport(self, iqn: str, *, force: bool = False) -> None:
        if not self.unexports:
            return self._unexport(iqn, force=force)
        self.unexports -= 1
        if not self.deaf:
            self._unexport(iqn, force=force)
        raise Unavailable("no answer")


@pytest.fixture
def silent(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> Silent:
    return Silent(lab, monkeypatch)


@pytest.mark.case(75)
def test_what_is_left_of_a_disk_that_was_taken_back_is_in_nobodys_way(
    lab: Lab, silent: Silent
) -> None:
    silent.exports = 1
    assert lab.disk(DISK, size=SIZE).status_code == 503
    assert lab.files() == {}
    assert lab.disk(DISK, size=2 * SIZE).status_code == 201
    (target,) = lab.client.get("/lun").json()
    assert target["luns"][0]["size"] == 2 * SIZE


@pytest.mark.case(75)
def test_the_watch_takes_off_what_is_left_of_a_disk(lab: Lab, silent: Silent) -> None:
    silent.exports = 1
    assert lab.disk(DISK, size=SIZE).status_code == 503
    startup.watch_targets(lab.node)
    assert lab.client.get("/lun").json() == []


@pytest.mark.tgtd
@pytest.mark.case(75)
def test_a_tgtd_that_is_slow_at_one_call_leaves_nothing_in_the_way(
    stgt: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever call of a creation it is: it is done a moment after nobody waits for it any more."""
    real = stgt.node.backend._tgtadm.run  # type: ignore[attr-defined]
    seen: list[tuple[str, ...]] = []
    for slow in range(1, 20):
        calls = iter(range(1, 100))

        def run(*words: str, at: int = slow, calls: Any = calls) -> str:
            number = next(calls)
            if number > at:
                raise Unavailable("did not answer a moment ago", code="stgt.hung")
            answer = str(real(*words))
            if number == at:
                seen.append(words[:2])
                raise Unavailable("did not answer", code="stgt.hung")
            return answer

        with monkeypatch.context() as patch:
            patch.setattr(stgt.node.backend._tgtadm, "run", run)  # type: ignore[attr-defined]
            status = stgt.disk(DISK, size=SIZE).status_code
        if status == 201:
            break
        assert status == 503
        assert not (stgt.folder / IMAGE).exists()
        answer = stgt.disk(DISK, size=SIZE)
        assert answer.status_code == 201, (slow, answer.content)
        assert stgt.delete(DISK, delete_file="true").status_code == 200
    assert status == 201
    assert {("new", "target"), ("new", "logicalunit"), ("bind", "target")} <= {*seen}


def test_a_deletion_that_was_done_without_a_word_is_not_half_done(
    lab: Lab, silent: Silent
) -> None:
    """The answer was that it stays: so it does."""
    lab.disk(DISK, size=SIZE)
    lab.disk("worker-02.debian", size=SIZE)
    silent.unexports = 1
    assert lab.delete(DISK).status_code == 503
    startup.watch_targets(lab.node)
    assert set(lab.targets()) == {DISK, "worker-02.debian"}
    assert lab.node.doubtful == set()


def test_the_only_disk_comes_back_when_the_target_system_answers_again(
    lab: Lab, silent: Silent
) -> None:
    lab.disk(DISK, size=SIZE)
    silent.exports, silent.deaf = 2, True
    assert lab.post("/lun/grow", iqn=IQN, size=2 * SIZE).status_code == 503
    assert lab.node.targets() == []
    assert (lab.folder / IMAGE).stat().st_size == SIZE
    startup.watch_targets(lab.node)
    assert lab.targets() == {DISK: IMAGE}


@pytest.mark.tgtd
def test_a_reset_that_got_no_answer_serves_the_old_disk_and_not_what_was_removed(
    stgt: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert stgt.tgtd
    stgt.image(MASTER, SIZE, FRESH)
    stgt.disk(DISK, master=MASTER, access="off")
    (stgt.folder / IMAGE).write_bytes(b"worn".ljust(SIZE, b"\1"))
    silent = Silent(stgt, monkeypatch)
    real = silent.export_all

    def then_deaf(exports: Sequence[Export]) -> dict[str, ApplicationError | None]:
        silent.unexports, silent.deaf = 1, False
        try:
            return real(exports)
        finally:
            silent.deaf = True

    silent.exports = 1
    with monkeypatch.context() as patch:
        patch.setattr(stgt.node.backend, "export_all", then_deaf)
        refused = stgt.post("/lun/reset", iqn=IQN, master=MASTER)
    assert refused.status_code == 503
    startup.watch_targets(stgt.node)
    assert stgt.targets() == {DISK: IMAGE}
    assert node_lab.read_lun(stgt.tgtd, IQN, tmp_path / "read").returncode == 0
    assert (tmp_path / "read").read_bytes().startswith(b"worn")


@pytest.mark.tgtd
@pytest.mark.parametrize("done", [True, False])
def test_a_change_of_secret_without_an_answer_leaves_no_target_shut(
    stgt: Lab, monkeypatch: pytest.MonkeyPatch, done: bool
) -> None:
    """Whichever call it is, and whether it is done a moment later or never: the old secret opens both targets."""
    assert stgt.tgtd
    old = {"username": "worker-01", "secret": "Abcdefghijkl0123"}
    new = {"username": "worker-01", "secret": "Zyxwvutsrqpo9876"}
    names = (DISK, "worker-01.windows")
    for name in names:
        stgt.disk(name, size=SIZE, access="chap", chap=old)
    real = stgt.node.backend._tgtadm.run  # type: ignore[attr-defined]
    for silent in range(1, 40):
        calls = iter(range(1, 100))

        def run(*words: str, at: int = silent, calls: Any = calls) -> str:
            number = next(calls)
            if number < at or (number == at and done):
                answer = str(real(*words))
            if number >= at:
                raise Unavailable("did not answer", code="stgt.hung")
            return answer

        with monkeypatch.context() as patch:
            patch.setattr(stgt.node.backend._tgtadm, "run", run)  # type: ignore[attr-defined]
            answer = stgt.post("/lun/access", iqn=IQN, access="chap", chap=new)
        if answer.status_code == 200:
            break
        assert answer.status_code == 503
        startup.watch_targets(stgt.node)
        for name in names:
            assert node_lab.may_log_in(stgt.tgtd, f"{BASE}:{name}", ONE, old), silent
    assert silent > 10
    for name in names:
        assert node_lab.may_log_in(stgt.tgtd, f"{BASE}:{name}", ONE, new)


@pytest.mark.tgtd
@pytest.mark.parametrize("done", [True, False])
@pytest.mark.parametrize(
    "change", ["delete", "force", "grow", "reset", "cd", "existing"]
)
def test_a_change_without_an_answer_is_made_or_it_is_not(
    stgt: Lab, monkeypatch: pytest.MonkeyPatch, change: str, done: bool
) -> None:
    """At every call of it: what was reported as not done is as before, once the watch has looked."""
    stgt.image(MASTER, SIZE, FRESH)
    stgt.image("win.iso", 4096)
    kept, cd = "worker-02.debian", f"{BASE}:worker-01.windows.iso"
    stgt.disk(kept, size=SIZE)
    stgt.delete(kept)
    stgt.disk(DISK, master=MASTER)
    (stgt.folder / IMAGE).write_bytes(b"worn".ljust(SIZE, b"\1"))
    stgt.scan()
    changes: dict[str, Callable[[], Any]] = {
        "delete": lambda: stgt.delete(DISK, delete_file="true"),
        "force": lambda: stgt.delete(DISK, force="true"),
        "grow": lambda: stgt.post("/lun/grow", iqn=IQN, size=2 * SIZE),
        "reset": lambda: stgt.post("/lun/reset", iqn=IQN, master=MASTER),
        "cd": lambda: stgt.post("/lun/cd", iso="win.iso", iqn=cd),
        "existing": lambda: stgt.disk(kept, existing=True),
    }
    real = stgt.node.backend._tgtadm.run  # type: ignore[attr-defined]

    def state() -> object:
        listed = stgt.client.get("/lun").json()
        said = [(t["iqn"], t["luns"], t["access"], t["initiators"]) for t in listed]
        memory = stgt.remembered()
        return (
            said,
            stgt.files(),
            sorted(memory["off"]),
            memory["cds"],
            memory["access"],
        )

    before = state()
    for silent in range(1, 40):
        calls = iter(range(1, 100))

        def run(*words: str, at: int = silent, calls: Any = calls) -> str:
            number = next(calls)
            if number < at or (number == at and done):
                answer = str(real(*words))
            if number >= at:
                raise Unavailable("did not answer", code="stgt.hung")
            return answer

        with monkeypatch.context() as patch:
            patch.setattr(stgt.node.backend._tgtadm, "run", run)  # type: ignore[attr-defined]
            answer = changes[change]()
        if answer.status_code in (200, 201):
            break
        assert answer.status_code == 503
        startup.watch_targets(stgt.node)
        assert state() == before, silent
    assert silent > 2
    assert state() != before


def test_a_machine_that_is_logged_in_is_not_cut_off_to_find_out(
    stgt: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stgt.tgtd
    stgt.disk(DISK, size=SIZE, access="off")
    with node_lab.session(stgt.tgtd, IQN) as held:
        stgt.node.doubtful.add(IQN)
        startup.watch_targets(stgt.node)
        held.reads()
    assert stgt.node.doubtful == set()


def test_what_a_rebuild_got_no_answer_about_is_tried_again(
    files: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        files.image(f"worker-0{number}.debian.img")
    real = files.node.backend.export_all

    def partly(exports: Sequence[Export]) -> dict[str, ApplicationError | None]:
        monkeypatch.undo()
        silent: dict[str, ApplicationError | None] = {
            export.iqn: Unavailable("no answer") for export in exports[1:]
        }
        return real(exports[:1]) | silent

    monkeypatch.setattr(files.node.backend, "export_all", partly)
    assert len(files.scan()["created"]) == 1
    startup.watch_targets(files.node)
    assert len(files.targets()) == 3


def _restarted(lab: Lab) -> None:
    """The target system has just lost everything, and no watch has looked yet."""
    assert isinstance(lab.node.backend, FilesBackend)
    lab.node.backend._table.clear()


def test_the_image_of_a_disk_is_not_deleted_because_the_target_system_was_restarted(
    files: Lab,
) -> None:
    files.disk(DISK, size=SIZE)
    _restarted(files)
    refused = files.client.delete(f"/images?name={IMAGE}")
    assert refused.status_code == 409, refused.content
    assert IQN in refused.json()["detail"]
    assert (files.folder / IMAGE).exists()


def test_nor_before_the_rebuild_that_could_not_run_at_the_start(files: Lab) -> None:
    files.disk(DISK, size=SIZE)
    memory = files.folder / ".targets.json"
    good = memory.read_bytes()
    memory.write_text("{")
    assert files.restart().unbuilt
    memory.write_bytes(good)
    assert files.client.delete(f"/images?name={IMAGE}").status_code == 409
    assert files.targets() == {DISK: IMAGE}


def test_the_image_of_a_disk_is_no_source_either(files: Lab) -> None:
    files.disk(DISK, size=SIZE)
    _restarted(files)
    answer = files.post("/images/convert", source=IMAGE, name="new_tpl_v1.img")
    assert answer.status_code == 409
    assert IQN in answer.json()["detail"]


def test_who_lists_the_targets_of_a_restarted_target_system_does_not_find_them_gone(
    files: Lab,
) -> None:
    files.disk(DISK, size=SIZE)
    _restarted(files)
    assert files.targets() == {DISK: IMAGE}


class _Refusing:
    """A lock that is not to be had once `until` says so."""

    def __init__(self, lock: Any, until: Callable[[], bool]) -> None:
        self._lock, self._until = lock, until

    def acquire(self, **options: Any) -> bool:
        return not self._until() and bool(self._lock.acquire(**options))

    def release(self) -> None:
        self._lock.release()


def test_a_lock_that_is_not_had_after_a_reset_leaves_no_name_reserved(
    files: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.image(MASTER, SIZE, FRESH)
    files.disk(DISK, master=MASTER)
    node = files.node
    inode = (files.folder / IMAGE).stat().st_ino
    with monkeypatch.context() as patch:
        refusing = _Refusing(
            node._lock, lambda: (files.folder / IMAGE).stat().st_ino != inode
        )
        patch.setattr(node, "_lock", refusing)
        assert resetting.disk_reset(node, IQN, MASTER)["iqn"] == IQN
    assert node.making() == []
    startup.watch_targets(node)
    assert files.targets() == {DISK: IMAGE}


def test_a_lock_that_is_not_had_after_a_copy_leaves_no_image(
    files: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, image = files.node, files.folder / IMAGE
    with monkeypatch.context() as patch:
        patch.setattr(node, "_lock", _Refusing(node._lock, image.exists))
        assert files.disk(DISK, size=SIZE).status_code == 503
    assert files.files() == {}
    assert node.making() == []
    assert files.disk(DISK, size=SIZE).status_code == 201


def test_a_rebuild_that_comes_late_leaves_an_import_alone(
    files: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.image("my_disk.img")
    files.node.unbuilt = True
    watch = threading.Thread(target=startup.watch_targets, args=(files.node,))
    link = importing.os.link

    def meanwhile(*words: Any, **where: Any) -> None:
        link(*words, **where)
        watch.start()
        watch.join(0.5)

    monkeypatch.setattr(importing.os, "link", meanwhile)
    answer = files.disk(DISK, **{"import": "my_disk.img"})
    watch.join(10)
    assert answer.status_code == 201, answer.content
    assert files.targets() == {DISK: IMAGE}
