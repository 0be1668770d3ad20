"""Start and scan: everything that is right comes up, everything else is named, nothing is cut."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.node import creating, startup
from agents.node.backends.base import Export
from agents.node.backends.files import FilesBackend
from agents.protocol.requests import DiskRequest
from ipxeready.errors import Unavailable
from ipxeready.startup import StartError
from tests.agents.node import node_lab
from tests.agents.node.node_lab import BASE, SIZE, Lab


@pytest.mark.case(40)
@pytest.mark.parametrize("name", [".windows.img", ".Windows.img"])
def test_a_file_without_a_worker_is_not_exported(lab: Lab, name: str) -> None:
    lab.image(name)
    assert "empty" in lab.skipped()[name]
    lab.restart()
    assert lab.targets() == {}


@pytest.mark.case(48)
def test_one_file_in_capitals_is_exported_under_its_lower_case_name(lab: Lab) -> None:
    lab.image("Worker-01.Windows.img")
    lab.scan()
    assert lab.targets() == {"worker-01.windows": "Worker-01.Windows.img"}
    deleted = lab.delete("worker-01.windows", delete_file="true")
    assert deleted.status_code == 200
    assert not (lab.folder / "Worker-01.Windows.img").exists()


@pytest.mark.case(48)
def test_two_files_that_differ_in_case_are_a_conflict_and_one_target(lab: Lab) -> None:
    lab.image("Worker-01.Windows.img")
    lab.image("worker-01.windows.img")
    for _ in range(2):
        assert "differ only in case" in lab.skipped()["Worker-01.Windows.img"]
        assert lab.targets() == {"worker-01.windows": "worker-01.windows.img"}
        lab.restart()


@pytest.mark.case(48)
def test_the_second_of_two_names_does_not_slip_in_when_the_first_is_off_or_broken(
    lab: Lab,
) -> None:
    lab.disk("worker-01.windows", size=SIZE)
    lab.delete("worker-01.windows")
    lab.image("Worker-01.windows.img")
    lab.image("worker-02.windows.img", size=0)
    lab.image("Worker-02.windows.img")
    lab.scan()
    assert lab.targets() == {}


@pytest.mark.case(49)
def test_underscores_are_reported_and_the_others_come_up(lab: Lab) -> None:
    for name in (
        "worker_01.Windows.img",
        "win11_tpl_v1.img",
        "worker-02.debian.img",
        "worker-03.debian.img",
    ):
        lab.image(name)
    skipped = lab.skipped()
    assert "underscore" in skipped["worker_01.Windows.img"]
    assert "master" in skipped["win11_tpl_v1.img"]
    assert set(lab.targets()) == {"worker-02.debian", "worker-03.debian"}


@pytest.mark.case(50)
def test_commas_are_skipped_and_the_right_file_is_served(lab: Lab) -> None:
    lab.image("worker-01.Windows.img", content=b"r" * SIZE)
    lab.image("worker-01.Windows.img,old", content=b"w" * SIZE)
    lab.image("a", content=b"w" * SIZE)
    lab.image("a,b.img", content=b"w" * SIZE)
    skipped = lab.skipped()
    assert "worker-01.Windows.img,old" in skipped
    assert "comma" in skipped["a,b.img"]
    assert lab.targets() == {"worker-01.windows": "worker-01.Windows.img"}
    assert lab.disk("a,b", size=SIZE).status_code == 400
    if lab.tgtd:
        read = lab.folder.parent / "read"
        node_lab.read_lun(lab.tgtd, f"{BASE}:worker-01.windows", read)
        assert read.read_bytes() == b"r" * SIZE


@pytest.mark.case(50)
@pytest.mark.tgtd
def test_a_backing_path_that_reads_back_different_is_no_success(
    stgt: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """tgtadm says 0, and tgtd serves another file: what a comma does, without our rule against it."""
    other = stgt.image("other.debian.img")
    real = stgt.node.backend._tgtadm.run  # type: ignore[attr-defined]

    def swap(*words: str) -> str:
        return real(
            *[str(other) if w.endswith("worker-01.windows.img") else w for w in words]
        )

    monkeypatch.setattr(stgt.node.backend._tgtadm, "run", swap)  # type: ignore[attr-defined]
    answer = stgt.disk("worker-01.windows", size=SIZE)
    assert answer.status_code == 409
    assert "other.debian.img" in answer.json()["detail"]
    assert stgt.targets() == {}
    assert not (stgt.folder / "worker-01.windows.img").exists()
    assert other.exists()


def test_a_folder_with_a_comma_is_refused_at_the_start(
    lab: Lab, tmp_path: Path
) -> None:
    (tmp_path / "a,b").mkdir()
    with pytest.raises(StartError, match="comma"):
        lab.restart(IPXE_DISK_DIR=str(tmp_path / "a,b"))
    with pytest.raises(StartError, match="directory"):
        lab.restart(IPXE_DISK_DIR=str(tmp_path / "none"))


@pytest.mark.case(70)
def test_what_is_a_master_and_what_is_exported(lab: Lab) -> None:
    masters = [
        "WIN_TPL_v1.img",
        "a_tpl_b_tpl_c.img",
        "win_tpl_v1.img",
        "worker_tpl_01.Windows.img",
    ]
    for name in (*masters, "_tpl_.img", "x_tpl_y.iso", "tpl.img"):
        lab.image(name)
    listed = lab.client.get("/masters").json()["masters"]
    assert [m["name"] for m in listed] == masters
    skipped = lab.skipped()
    assert set(skipped) >= {*masters, "_tpl_.img", "x_tpl_y.iso"}
    assert lab.targets() == {"tpl": "tpl.img"}


@pytest.mark.case(73)
@pytest.mark.parametrize("size", [0, 700, 511])
def test_an_image_that_is_no_whole_disk_is_not_exported(lab: Lab, size: int) -> None:
    path = lab.image("worker-01.windows.img", size=size)
    assert "multiple of 512" in lab.skipped()[path.name]
    assert lab.disk("worker-01.windows", existing=True).status_code == 409
    assert lab.targets() == {}
    assert path.stat().st_size == size


@pytest.mark.case(73)
def test_a_missing_image_is_never_invented(lab: Lab) -> None:
    assert lab.disk("worker-01.windows", existing=True).status_code == 404
    lab.scan()
    assert os.listdir(lab.folder) == []
    assert lab.targets() == {}


def test_folders_sockets_and_other_files_are_no_images(lab: Lab) -> None:
    (lab.folder / "lost+found").mkdir()
    (lab.folder / "folder.img").mkdir()
    os.mkfifo(lab.folder / "pipe.img")
    lab.image("readme.txt")
    skipped = lab.skipped()
    assert set(skipped) == {"folder.img", "pipe.img", "readme.txt"}
    assert lab.targets() == {}


@pytest.mark.case(81)
def test_an_image_on_a_read_only_mount_is_not_exported(
    make_lab: Callable[..., Lab], small_folder: Path
) -> None:
    import subprocess

    (small_folder / "worker-01.windows.img").write_bytes(b"x" * SIZE)
    subprocess.run(["mount", "-o", "remount,ro", str(small_folder)], check=True)
    lab = make_lab(small_folder)
    assert "read-write" in lab.skipped()["worker-01.windows.img"]
    assert lab.targets() == {}


@pytest.mark.case(81)
@pytest.mark.tgtd
def test_a_disk_that_tgtd_could_only_open_for_reading_is_not_served(
    stgt: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stgt.tgtd
    real = stgt.node.backend._tgtadm.run  # type: ignore[attr-defined]

    def readonly(operation: str, mode: str, *words: str) -> str:
        if operation == "update":
            words = (*words[:-1], words[-1] + ",readonly=1")
        return real(operation, mode, *words)

    monkeypatch.setattr(stgt.node.backend._tgtadm, "run", readonly)  # type: ignore[attr-defined]
    answer = stgt.disk("worker-01.windows", size=SIZE)
    assert answer.status_code == 409
    assert "read-only" in answer.json()["detail"]
    assert stgt.targets() == {}


@pytest.mark.case(74)
def test_a_rebuild_three_times_is_one_rebuild(lab: Lab) -> None:
    for number in range(5):
        lab.image(f"worker-{number}.debian.img")
    assert len(lab.scan()["created"]) == 5
    first = lab.client.get("/lun").json()
    for _ in range(2):
        assert lab.scan()["created"] == []
        assert lab.client.get("/lun").json() == first
    before = lab.tgtd.listing() if lab.tgtd else ""
    lab.restart()
    assert lab.client.get("/lun").json() == first
    assert (lab.tgtd.listing() if lab.tgtd else "") == before


@pytest.mark.case(74)
@pytest.mark.tgtd
def test_a_start_beside_live_sessions_adopts_and_cuts_nothing(stgt: Lab) -> None:
    assert stgt.tgtd
    for number in range(4):
        stgt.image(f"worker-{number}.debian.img")
    for number in range(2):
        stgt.disk(f"worker-{number}.debian", existing=True)
    with (
        node_lab.session(
            stgt.tgtd, f"{BASE}:worker-0.debian", initiator=f"{BASE}:worker-0"
        ) as one,
        node_lab.session(
            stgt.tgtd, f"{BASE}:worker-1.debian", initiator=f"{BASE}:worker-1"
        ) as two,
    ):
        for _ in range(3):
            stgt.restart()
            found = {t["iqn"]: t for t in stgt.client.get("/lun").json()}
            assert len(found) == 4
            for number in range(2):
                sessions = found[f"{BASE}:worker-{number}.debian"]["sessions"]
                assert [s["initiator"] for s in sessions] == [f"{BASE}:worker-{number}"]
        assert one.running
        assert two.running


@pytest.mark.case(74)
@pytest.mark.tgtd
def test_a_half_made_target_is_finished_and_a_different_one_is_reported(
    stgt: Lab,
) -> None:
    assert stgt.tgtd
    other = stgt.image("other.debian.img")
    image = stgt.image("worker-03.debian.img")
    adm = stgt.tgtd.adm
    for tid, name in enumerate(
        ["worker-01.debian", "worker-02.debian", "worker-03.debian"], 2
    ):
        adm(
            "--op", "new", "--mode", "target", "--tid", str(tid), "-T", f"{BASE}:{name}"
        )
    # worker-01: no LUN yet. worker-02: somebody else's file. worker-03: all but the door.
    lun = ("--op", "new", "--mode", "logicalunit", "--lun", "1", "--tid")
    adm(*lun, "3", "-b", str(other))
    adm(*lun, "4", "-b", str(image))
    stgt.image("worker-01.debian.img")
    stgt.image("worker-02.debian.img")
    skipped = stgt.skipped()
    assert "other.debian.img" in skipped["worker-02.debian.img"]
    assert stgt.targets()["worker-01.debian"] == "worker-01.debian.img"
    assert stgt.targets()["worker-02.debian"] == "other.debian.img"
    for name in ("worker-01.debian", "worker-03.debian"):
        read = node_lab.read_lun(stgt.tgtd, f"{BASE}:{name}", stgt.folder.parent / name)
        assert read.returncode == 0


@pytest.mark.case(75)
@pytest.mark.tgtd
def test_what_is_left_without_a_disk_or_its_file_is_in_nobodys_way_after_a_start(
    stgt: Lab,
) -> None:
    """And what somebody uses, or lets somebody in, is left to him."""
    assert stgt.tgtd
    adm = stgt.tgtd.adm
    names = ["no-disk.debian", "no-file.debian", "let-in.debian", "in-use.debian"]
    for tid, name in enumerate(names, 50):
        adm("--op", "new", "--mode", "target", "--tid", str(tid), "-T", f"{BASE}:{name}")  # fmt: skip
    lun = ("--op", "new", "--mode", "logicalunit", "--lun", "1", "--tid")
    bind = ("--op", "bind", "--mode", "target", "-I", "ALL", "--tid")
    gone = [stgt.image(f"{name}.img") for name in names[1:]]
    for tid, path in enumerate(gone, 51):
        adm(*lun, str(tid), "-b", str(path))
    adm(*bind, "52")
    adm(*bind, "53")
    with node_lab.session(stgt.tgtd, f"{BASE}:in-use.debian"):
        adm("--op", "unbind", "--mode", "target", "-I", "ALL", "--tid", "53")
        for path in gone:
            path.unlink()
        stgt.restart()
        assert set(stgt.targets()) == {"let-in.debian", "in-use.debian"}
        for name in names[:2]:
            assert stgt.disk(name, size=SIZE).status_code == 201


@pytest.mark.case(86)
@pytest.mark.tgtd
def test_targets_of_others_are_neither_shown_nor_touched(stgt: Lab) -> None:
    assert stgt.tgtd
    foreign = stgt.folder.parent / "foreign"
    foreign.write_bytes(b"f" * SIZE)
    for tid, name in (
        ("1", "iqn.2020-01.org.other:db"),
        ("2", f"{BASE}x:db"),
        ("3", "plain"),
    ):
        stgt.tgtd.adm("--op", "new", "--mode", "target", "--tid", tid, "-T", name)
        stgt.tgtd.adm(
            "--op",
            "new",
            "--mode",
            "logicalunit",
            "--tid",
            tid,
            "--lun",
            "1",
            "-b",
            str(foreign),
        )
    before = stgt.tgtd.listing()
    stgt.disk("worker-01.windows", size=SIZE)
    stgt.scan()
    assert set(stgt.targets()) == {"worker-01.windows"}
    assert (
        stgt.client.delete("/lun?iqn=iqn.2020-01.org.other:db&force=true").status_code
        == 400
    )
    stgt.delete("worker-01.windows", force="true", delete_file="true")
    stgt.restart()
    assert stgt.tgtd.listing() == before


@pytest.mark.tgtd
def test_a_tgtd_that_lost_everything_is_filled_again(stgt: Lab) -> None:
    assert stgt.tgtd
    stgt.disk("worker-01.debian", size=SIZE)
    stgt.disk("worker-02.debian", size=SIZE)
    stgt.delete("worker-02.debian")
    identity = _scsi_ids(stgt)
    assert len(identity) == 1
    # One target that a hand took off stays off ...
    stgt.disk("worker-03.debian", size=SIZE)
    tid = next(
        t["tid"] for t in stgt.client.get("/lun").json() if "worker-03" in t["iqn"]
    )
    stgt.tgtd.adm("--op", "delete", "--mode", "target", "--tid", str(tid))
    startup.watch_targets(stgt.node)
    assert set(stgt.targets()) == {"worker-01.debian"}
    # ... but a daemon that started again gets all that should be there.
    stgt.tgtd.kill()
    assert stgt.client.get("/lun").status_code == 503
    (stgt.tgtd.folder / "tgt.7").unlink(missing_ok=True)
    fresh = node_lab.start_tgtd(stgt.tgtd.folder)
    stgt.tgtd.process, stgt.tgtd.port = fresh.process, fresh.port
    startup.watch_targets(stgt.node)
    assert set(stgt.targets()) == {"worker-01.debian", "worker-03.debian"}
    assert identity <= _scsi_ids(stgt)


@pytest.mark.tgtd
def test_a_tgtd_that_restarts_in_the_midst_of_a_call_is_filled_again(
    stgt: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That call's target is there, so that not all is lost; the other machines have no disk all the same."""
    daemon = stgt.tgtd
    assert daemon
    for name in ("worker-01.debian", "worker-02.debian"):
        stgt.disk(name, size=SIZE)
    real = stgt.node.backend.export

    def export(wanted: Export) -> None:
        daemon.kill()
        daemon.again()
        real(wanted)

    monkeypatch.setattr(stgt.node.backend, "export", export)
    # In this thread: the daemon goes with the thread that starts it.
    request = DiskRequest(f"{BASE}:worker-03.debian", size=SIZE)
    creating.disk_create(stgt.node, request)
    assert [t["iqn"] for t in stgt.node.targets()] == [f"{BASE}:worker-03.debian"]
    startup.watch_targets(stgt.node)
    everybody = {f"worker-0{number}.debian" for number in (1, 2, 3)}
    assert set(stgt.targets()) == everybody
    # Or another change finds it first.
    monkeypatch.undo()
    daemon.kill()
    daemon.again()
    path = str(stgt.folder / "worker-01.debian.img")
    real(Export(f"{BASE}:worker-01.debian", path))
    assert stgt.delete("worker-03.debian").status_code == 200
    assert set(stgt.targets()) == everybody - {"worker-03.debian"}


def test_a_deletion_that_was_killed_before_it_began_does_not_come_true_later(
    lab: Lab,
) -> None:
    iqn = f"{BASE}:worker-01.debian"
    lab.disk("worker-01.debian", size=SIZE)
    lab.node.memory.set(iqn, off=True)  # as far as the killed agent came
    if lab.tgtd:
        lab.restart()
    else:
        lab.scan()  # its table goes with the process
    assert lab.remembered()["off"] == []
    if lab.tgtd:
        lab.tgtd.kill()
        lab.tgtd.again()
    lab.restart()
    assert set(lab.targets()) == {"worker-01.debian"}


@pytest.mark.parametrize("change", ["disk", "delete"])
def test_a_change_before_the_watch_looks_does_not_hide_that_all_was_lost(
    files: Lab, change: str
) -> None:
    """Or the first new disk on a restarted tgtd would leave all other machines without theirs."""
    for number in range(1, 4):
        files.disk(f"worker-0{number}.debian", size=SIZE)
    assert isinstance(files.node.backend, FilesBackend)
    files.node.backend._table.clear()
    if change == "disk":
        assert files.disk("worker-04.debian", size=SIZE).status_code == 201
        expected = {1, 2, 3, 4}
    else:
        assert files.delete("worker-03.debian").status_code == 200
        expected = {1, 2}
    assert set(files.targets()) == {f"worker-0{n}.debian" for n in expected}
    startup.watch_targets(files.node)
    assert set(files.targets()) == {f"worker-0{n}.debian" for n in expected}


def test_targets_that_are_lost_during_a_copy_come_back_with_it(
    files: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.disk("worker-01.debian", size=SIZE)
    backend = files.node.backend
    assert isinstance(backend, FilesBackend)
    make = files.node.images.create_empty

    def slow(name: str, size: int) -> Any:
        backend._table.clear()
        return make(name, size)

    monkeypatch.setattr(files.node.images, "create_empty", slow)
    assert files.disk("worker-02.debian", size=SIZE).status_code == 201
    assert set(files.targets()) == {"worker-01.debian", "worker-02.debian"}


class _Observed:
    """The node's lock, and what happens each time that it has become free."""

    def __init__(self, lock: Any, then: Callable[[], None]) -> None:
        self._lock, self._then, self._depth = lock, then, 0

    def acquire(self, **options: Any) -> bool:
        taken = bool(self._lock.acquire(**options))
        self._depth += taken
        return taken

    def release(self) -> None:
        self._depth -= 1
        free = not self._depth
        self._lock.release()
        if free:
            self._then()


def test_a_target_system_that_is_restarted_just_after_an_export_has_that_target_again(
    files: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.disk("worker-01.debian", size=SIZE)
    node, backend = files.node, files.node.backend
    assert isinstance(backend, FilesBackend)
    table, restarts = backend._table, []

    def restarted() -> None:
        if f"{BASE}:worker-02.debian" in table and not restarts:
            restarts.append(True)
            table.clear()
            startup.watch_targets(node)

    monkeypatch.setattr(node, "_lock", _Observed(node._lock, restarted))
    assert files.disk("worker-02.debian", size=SIZE).status_code == 201
    assert restarts
    assert set(files.targets()) == {"worker-01.debian", "worker-02.debian"}


def _scsi_ids(lab: Lab) -> set[str]:
    assert lab.tgtd
    lines = lab.tgtd.listing().splitlines()
    return {line.strip() for line in lines if "SCSI SN" in line and "beaf" not in line}


@pytest.mark.case(100)
def test_three_hundred_images_come_up_and_a_bad_one_stops_nobody(files: Lab) -> None:
    for number in range(300):
        files.image(f"worker-{number}.debian.img", size=512)
    files.image("worker_x.debian.img")
    assert len(files.scan()["created"]) == 300


@pytest.mark.tgtd
def test_forty_images_come_up_on_tgtd(stgt: Lab) -> None:
    for number in range(40):
        stgt.image(f"worker-{number}.debian.img", size=512)
    assert len(stgt.scan()["created"]) == 40
    assert len(stgt.targets()) == 40


@pytest.mark.tgtd
def test_a_rebuild_that_could_not_run_at_the_start_runs_later(stgt: Lab) -> None:
    memory = stgt.folder / ".targets.json"
    memory.write_text("{")
    stgt.image("worker-01.debian.img")
    node = stgt.restart()
    with pytest.raises(Unavailable):
        startup.watch_targets(node)
    assert stgt.targets() == {}
    memory.unlink()
    startup.watch_targets(node)
    assert set(stgt.targets()) == {"worker-01.debian"}
