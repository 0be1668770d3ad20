"""Clones that cannot lie: what is shared, what is copied, what is refused, and what is left when it goes wrong."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.node import copying, extents, quiet, sample
from agents.node.copying import CANNOT
from tests.agents.node import node_lab
from tests.agents.node.node_lab import BASE, SIZE, Lab

MASTER = "debian_tpl_v1.img"


def _digest(path: Path) -> bytes:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").digest()


def _sparse(path: Path, size: int, pieces: dict[int, int]) -> None:
    """A file of random pieces (offset -> length) and holes."""
    with path.open("xb") as stream:
        for offset, length in pieces.items():
            stream.seek(offset)
            stream.write(os.urandom(length))
        stream.truncate(size)
        os.fsync(stream.fileno())


def _used(path: Path) -> int:
    return path.stat().st_blocks * 512


def _free(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


# --- FICLONE and what it says -----------------------------------------------


def _short(source: int, clone: int) -> None:
    os.ftruncate(clone, 512)


def _all_zeros(source: int, clone: int) -> None:
    os.ftruncate(clone, os.fstat(source).st_size)


def _without_the_end(source: int, clone: int) -> None:
    _whole(source, clone)
    os.pwrite(clone, bytes(512), os.fstat(source).st_size - 512)


def _junk_in_the_holes(source: int, clone: int) -> None:
    os.ftruncate(clone, os.fstat(source).st_size)
    for at in range(0, os.fstat(source).st_size, SIZE):
        os.pwrite(clone, b"j" * SIZE, at)
    for start, end in extents.data_extents(source):
        os.pwrite(clone, os.pread(source, end - start, start), start)


def _whole(source: int, clone: int) -> None:
    size = os.fstat(source).st_size
    os.pwrite(clone, os.pread(source, size, 0), 0)


@pytest.mark.case(59)
@pytest.mark.parametrize(
    ("lie", "why"),
    [
        (_short, "512 bytes instead of"),
        (_all_zeros, "differed at byte"),
        (_without_the_end, "differed at byte"),
        (_junk_in_the_holes, "differed at byte"),
    ],
)
def test_a_clone_that_lies_is_copied_in_full_before_it_is_exported(
    files: Lab,
    monkeypatch: pytest.MonkeyPatch,
    lie: Callable[[int, int], None],
    why: str,
) -> None:
    master = files.folder / MASTER
    _sparse(master, 8 * SIZE, {0: SIZE, 4 * SIZE: SIZE, 8 * SIZE - 4096: 4096})
    monkeypatch.setattr(copying, "ficlone", lie)
    answer = files.disk("worker-01.debian", master=MASTER)
    clone = files.folder / "worker-01.debian.img"
    assert answer.status_code == 201
    assert why in answer.json()["how"]
    assert answer.json()["how"].startswith("full copy, because the clone")
    assert answer.json()["bytes"] == 2 * SIZE + 4096
    assert _digest(clone) == _digest(master)
    assert _used(clone) < 3 * SIZE


def test_a_sample_costs_the_same_for_every_size_and_looks_at_both_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _sparse(tmp_path / "a", 1 << 40, {1 << 39: SIZE})
    looked: list[int] = []
    real = os.pread

    def pread(file: int, count: int, offset: int) -> bytes:
        looked.append(offset)
        return real(file, count, offset)

    monkeypatch.setattr(os, "pread", pread)
    with (tmp_path / "a").open("rb") as one:
        assert sample.differs(one.fileno(), one.fileno()) is None
    assert len(looked) <= 2 * sample.PLACES
    assert {0, (1 << 40) - sample.BLOCK} <= set(looked)
    # One part in a million has data, and it is looked at all the same.
    assert any(1 << 39 <= offset < (1 << 39) + SIZE for offset in looked)


@pytest.mark.case(59)
def test_the_source_is_on_disk_before_it_is_cloned(
    files: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.image(MASTER, content=b"m" * SIZE)
    assert "reflink" in files.client.get("/capabilities").json()  # tried once
    steps: list[str] = []
    real = os.fsync

    def fsync(file: int) -> None:
        steps.append(Path(os.readlink(f"/proc/self/fd/{file}")).name)
        real(file)

    def ficlone(source: int, clone: int) -> None:
        steps.append("FICLONE")
        _whole(source, clone)

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(copying, "ficlone", ficlone)
    files.disk("worker-01.debian", master=MASTER)
    assert steps[:2] == [MASTER, "FICLONE"]


@pytest.mark.case(61)
@pytest.mark.parametrize("number", sorted(CANNOT), ids=errno.errorcode.get)
def test_errors_of_ficlone_that_mean_a_full_copy(
    files: Lab, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(source: int, destination: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(copying, "ficlone", refuse)
    master = files.image(MASTER, content=b"y" * SIZE)
    answer = files.disk("worker-01.debian", master=MASTER)
    assert answer.status_code == 201
    name = "EOPNOTSUPP" if number == errno.EOPNOTSUPP else errno.errorcode[number]
    entry = files.client.get("/logs").json()["entries"][-1]
    for told in (answer.json(), entry):
        assert told["how"] == f"full copy, because {name}"
        assert told["bytes"] == SIZE
        assert told["seconds"] >= 0
    assert entry["master"] == MASTER
    assert _digest(files.folder / "worker-01.debian.img") == _digest(master)


@pytest.mark.case(61)
def test_the_errors_that_mean_a_full_copy_are_those_of_the_field_and_no_fault_of_a_disk() -> (
    None
):
    field = ["EXDEV", "EOPNOTSUPP", "ENOTTY", "EINVAL", "EAGAIN", "EPERM"]
    assert {getattr(errno, name) for name in field} <= CANNOT
    assert not CANNOT & set(STOP)


STOP = {
    errno.ENOSPC: (507, "free "),
    errno.EDQUOT: (507, "quota"),
    errno.EFBIG: (507, "free "),
    errno.EIO: (503, "Input/output error"),
    errno.EROFS: (503, "Read-only file system"),
    errno.ENODEV: (503, "No such device"),
    errno.ENOMEM: (503, "Cannot allocate memory"),
    errno.ENXIO: (503, "No such device or address"),
    errno.ESTALE: (503, "Stale file handle"),
    errno.EUCLEAN: (503, "Structure needs cleaning"),
    errno.EBADF: (503, "Bad file descriptor"),
}


@pytest.mark.case(61)
@pytest.mark.parametrize("number", sorted(STOP), ids=errno.errorcode.get)
@pytest.mark.parametrize("step", ["ficlone", "sparse_copy"])
def test_errors_of_the_disk_end_the_clone_at_once_with_the_reason(
    files: Lab, monkeypatch: pytest.MonkeyPatch, number: int, step: str
) -> None:
    def refuse(*words: Any, **more: Any) -> None:
        raise OSError(number, os.strerror(number))

    calls = []
    if step == "ficlone":
        monkeypatch.setattr(copying, "sparse_copy", lambda *_, **__: calls.append(1))
    monkeypatch.setattr(copying, step, refuse)
    files.image(MASTER, content=b"y" * SIZE)
    before = files.files()
    answer = files.disk("worker-01.debian", master=MASTER)
    status, word = STOP[number]
    assert answer.status_code == status
    assert word in answer.json()["detail"]
    assert files.files() == before
    assert files.targets() == {}
    assert calls == []


@pytest.mark.case(59)
def test_an_operator_may_forbid_reflinks(
    make_lab: Callable[..., Lab],
    reflink_folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lab = make_lab(reflink_folder)
    lab.restart(IPXE_AGENT_REFLINK="never")
    monkeypatch.setattr(copying, "ficlone", lambda *_: pytest.fail("cloned"))
    master = lab.image(MASTER, content=os.urandom(SIZE))
    assert lab.client.get("/capabilities").json()["reflink"] is False
    made = lab.disk("worker-01.debian", master=MASTER).json()
    assert made["how"] == "full copy, because IPXE_AGENT_REFLINK=never"
    clone = lab.folder / "worker-01.debian.img"
    assert _digest(clone) == _digest(master)
    with clone.open("rb") as stream:
        assert extents.shares_blocks(stream.fileno()) is False


# --- room ---------------------------------------------------------------------


@pytest.mark.case(67)
def test_what_a_reflink_is_said_to_take_is_what_it_takes(
    make_lab: Callable[..., Lab], reflink_folder: Path
) -> None:
    lab = make_lab(reflink_folder)
    lab.image(MASTER, content=os.urandom(32 * SIZE), size=32 * SIZE)
    os.sync()
    before = _free(reflink_folder)
    for number in (1, 2):
        made = lab.disk(f"worker-0{number}.debian", master=MASTER).json()
        assert (made["how"], made["bytes"]) == ("reflink", 0)
    os.sync()
    shown = lab.client.get("/capabilities").json()["free_bytes"]
    assert before - shown < 4 * SIZE
    assert abs(shown - _free(reflink_folder)) < SIZE


@pytest.mark.case(67)
def test_a_reflink_that_shares_nothing_is_not_called_cheap(
    make_lab: Callable[..., Lab], reflink_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on file systems and servers that answer FICLONE with a copy of their own."""
    monkeypatch.setattr(copying, "ficlone", _whole)
    lab = make_lab(reflink_folder)
    lab.image(MASTER, content=os.urandom(32 * SIZE), size=32 * SIZE)
    os.sync()
    before = _free(reflink_folder)
    assert lab.client.get("/capabilities").json()["reflink"] is False
    made = lab.disk("worker-01.debian", master=MASTER).json()
    assert made["how"] == "reflink, but the file system shares nothing"
    os.sync()
    taken = before - _free(reflink_folder)
    assert abs(made["bytes"] - taken) < 4 * SIZE
    assert made["bytes"] >= 32 * SIZE


@pytest.mark.case(64)
@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs"])
def test_a_full_copy_keeps_the_holes(
    make_lab: Callable[..., Lab], tmp_path: Path, _own_mounts: None, kind: str
) -> None:
    with node_lab.mounted(kind, tmp_path) as folder:
        lab = make_lab(folder)
        lab.restart(IPXE_AGENT_REFLINK="never")
        master = lab.folder / MASTER
        pieces = {0: 4096, 5 * SIZE + 512: 3 * SIZE, 900 * SIZE: 2 * SIZE}
        pieces |= {(100 + 10 * turn) * SIZE: 8192 for turn in range(50)}
        _sparse(master, 60 << 30, {**pieces, (60 << 30) - 4096: 4096})
        made = lab.disk("worker-01.debian", master=MASTER).json()
        clone = lab.folder / "worker-01.debian.img"
        assert clone.stat().st_size == 60 << 30
        assert abs(_used(clone) - _used(master)) < 2 * SIZE
        assert made["bytes"] <= _used(master)
        # All 60 GiB by what has data: hashing holes would take minutes.
        with master.open("rb") as one, clone.open("rb") as other:
            for start, end in extents.data_extents(one.fileno()):
                count = end - start
                expected = os.pread(one.fileno(), count, start)
                assert os.pread(other.fileno(), count, start) == expected
        empty = lab.disk("worker-02.debian", size="60G").json()
        assert empty["bytes"] == 0
        assert _used(lab.folder / "worker-02.debian.img") < SIZE


@pytest.mark.case(64)
def test_zeros_that_the_file_system_calls_data_become_holes(
    files: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    master = files.folder / MASTER
    content = bytearray(16 * SIZE)
    content[3 * SIZE + 700 : 3 * SIZE + 705] = b"hello"
    content[-512:] = b"e" * 512
    master.write_bytes(content)
    assert _used(master) == 16 * SIZE
    made = files.disk("worker-01.debian", master=MASTER).json()
    clone = files.folder / "worker-01.debian.img"
    assert clone.read_bytes() == content
    assert made["bytes"] == 128 << 10
    assert _used(clone) <= SIZE


def test_a_file_system_that_knows_no_holes_is_copied_all_the_same(
    files: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    master = files.folder / MASTER
    _sparse(master, 8 * SIZE, {SIZE: 4096})

    def lseek(file: int, offset: int, whence: int) -> int:
        raise OSError(errno.EINVAL, "no SEEK_DATA here")

    monkeypatch.setattr(os, "lseek", lseek)
    made = files.disk("worker-01.debian", master=MASTER).json()
    assert made["bytes"] == 64 << 10
    assert _digest(files.folder / "worker-01.debian.img") == _digest(master)


def test_data_in_a_place_that_was_called_a_hole_is_missed_by_no_clone(
    files: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file system whose SEEK_DATA lies, as one did for files that were just written."""
    files.image(MASTER, content=b"y" * SIZE)
    monkeypatch.setattr(copying, "data_extents", lambda file: iter([(4096, SIZE)]))
    before = files.files()
    answer = files.disk("worker-01.debian", master=MASTER)
    assert answer.status_code == 409
    assert "differs from its master at byte 0" in answer.json()["detail"]
    assert files.files() == before


@pytest.mark.case(63)
def test_the_disk_is_full_at_95_percent_of_a_copy(
    make_lab: Callable[..., Lab], small_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Somebody else takes the room that was free when the copy began."""
    lab = make_lab(small_folder)
    master = lab.image(MASTER, content=os.urandom(20 * SIZE), size=20 * SIZE)
    lab.disk("worker-01.debian", size=SIZE)
    before, free = lab.files(), _free(small_folder)
    ballast = small_folder.parent / "ext4" / "ballast"
    copied = 0
    real = os.pwrite

    def pwrite(file: int, data: Any, offset: int) -> int:
        nonlocal copied
        copied += len(data)
        if copied >= 19 * SIZE and not ballast.exists():
            with ballast.open("wb") as stream:
                left = _free(small_folder)
                os.posix_fallocate(stream.fileno(), 0, left - (left % 4096))
        return real(file, data, offset)

    monkeypatch.setattr(os, "pwrite", pwrite)
    answer = lab.disk("worker-02.debian", master=MASTER)
    monkeypatch.undo()
    assert answer.status_code == 507
    assert "needed 20 MiB" in answer.json()["detail"]
    assert "free " in answer.json()["detail"]
    assert copied >= 19 * SIZE
    ballast.unlink()
    assert lab.files() == before
    assert _free(small_folder) >= free - 64 * 1024
    assert set(lab.targets()) == {"worker-01.debian"}
    assert master.stat().st_size == 20 * SIZE
    assert lab.disk("worker-02.debian", master=MASTER).status_code == 201


@pytest.mark.case(63)
def test_room_that_was_only_set_aside_in_a_master_is_not_needed_for_its_copy(
    make_lab: Callable[..., Lab], small_folder: Path
) -> None:
    lab = make_lab(small_folder)
    with (lab.folder / MASTER).open("xb") as stream:
        stream.write(b"y" * SIZE)
        stream.flush()
        os.posix_fallocate(stream.fileno(), 0, 40 * SIZE)
        os.fsync(stream.fileno())
    made = lab.disk("worker-01.debian", master=MASTER)
    assert made.status_code == 201, made.content
    assert made.json()["bytes"] == SIZE


@pytest.mark.case(63)
def test_a_reflink_is_refused_when_the_clones_that_are_there_have_no_room_to_grow(
    files: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.image(MASTER, content=b"m" * SIZE)
    monkeypatch.setattr(copying, "ficlone", _whole)
    monkeypatch.setattr(files.node.images, "room", lambda: (SIZE, 320 * SIZE))
    before = files.files()
    answer = files.disk("worker-01.debian", master=MASTER)
    assert answer.status_code == 507
    assert "reserve" in answer.json()["detail"]
    assert files.files() == before


# --- a master that does not lie still ---------------------------------------


def test_a_master_that_is_open_for_writing_is_not_cloned(
    files: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quiet, "_PATIENCE", 0.2)
    master = files.image(MASTER, content=b"m" * SIZE)
    with master.open("r+b"):
        answer = files.disk("worker-01.debian", master=MASTER)
        assert answer.status_code == 409
        assert "open for writing" in answer.json()["detail"]
        assert "fuser" in answer.json()["detail"]
        assert [n for n in os.listdir(files.folder) if "worker" in n] == []
    assert files.disk("worker-01.debian", master=MASTER).status_code == 201


def test_a_master_that_was_just_moved_into_place_is_cloned_at_once(files: Lab) -> None:
    upload = files.folder.parent / "upload"
    upload.write_bytes(b"m" * SIZE)
    upload.rename(files.folder / MASTER)
    begin = time.monotonic()
    assert files.disk("worker-01.debian", master=MASTER).status_code == 201
    assert time.monotonic() - begin < quiet._PATIENCE


def test_whoever_gave_a_master_its_name_has_a_moment_to_let_go_of_it(
    files: Lab,
) -> None:
    stream = files.image(MASTER, content=b"m" * SIZE).open("r+b")
    release = threading.Timer(0.3, stream.close)
    release.start()
    assert files.disk("worker-01.debian", master=MASTER).status_code == 201
    release.join()


def test_a_writer_that_comes_during_the_look_does_not_end_this_process(
    tmp_path: Path,
) -> None:
    path = tmp_path / "master"
    path.write_bytes(b"m" * SIZE)
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            os.close(os.open(path, os.O_RDWR))

    writer = threading.Thread(target=write)
    writer.start()
    try:
        with path.open("rb") as stream:
            until = time.monotonic() + 0.5
            while time.monotonic() < until:
                quiet._is_written(stream.fileno())
    finally:
        stop.set()
        writer.join()


@pytest.mark.parametrize("change", ["write", "grow", "replace"])
@pytest.mark.parametrize("way", ["reflink", "copy"])
def test_a_master_that_changes_meanwhile_gives_no_clone(
    files: Lab, monkeypatch: pytest.MonkeyPatch, change: str, way: str
) -> None:
    master = files.image(MASTER, content=b"m" * SIZE)
    kept = files.image("kept_tpl_1.img", content=b"n" * SIZE)
    assert "reflink" in files.client.get("/capabilities").json()  # tried once

    def happen() -> None:
        if change == "replace":
            kept.rename(master)
            return
        with master.open("r+b") as stream:
            if change == "grow":
                stream.truncate(2 * SIZE)
            else:
                stream.write(b"changed")

    def ficlone(source: int, clone: int) -> None:
        _whole(source, clone)
        happen()

    real = copying.sparse_copy

    def copy(*words: Any, **more: Any) -> int:
        copied = real(*words, **more)
        happen()
        return copied

    if way == "reflink":
        monkeypatch.setattr(copying, "ficlone", ficlone)
    else:
        monkeypatch.setattr(copying, "sparse_copy", copy)
    answer = files.disk("worker-01.debian", master=MASTER)
    assert answer.status_code == 409
    assert files.targets() == {}
    assert [n for n in os.listdir(files.folder) if "worker" in n] == []


def test_a_master_that_somebody_exported_by_hand_is_not_cloned(lab: Lab) -> None:
    from agents.node.backends.base import Export

    master = lab.image(MASTER, content=b"m" * SIZE)
    lab.node.backend.export(Export(f"{BASE}:by-hand", str(master)))
    answer = lab.disk("worker-01.debian", master=MASTER)
    assert answer.status_code == 409
    assert f"{BASE}:by-hand" in answer.json()["detail"]
    assert set(lab.targets()) == {"by-hand"}
    assert lab.delete("by-hand").status_code == 200
    assert lab.disk("worker-01.debian", master=MASTER).status_code == 201


@pytest.mark.tgtd
def test_a_master_that_a_target_of_others_serves_is_not_cloned(
    stgt: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quiet, "_PATIENCE", 0.2)
    assert stgt.tgtd
    master = stgt.image(MASTER, content=b"m" * SIZE)
    adm = stgt.tgtd.adm
    adm("--op", "new", "--mode", "target", "--tid", "9", "-T", "iqn.2020-01.org.o:x")
    lun = ("--op", "new", "--mode", "logicalunit", "--lun", "1", "--tid", "9")
    adm(*lun, "-b", str(master))
    answer = stgt.disk("worker-01.debian", master=MASTER)
    assert answer.status_code == 409
    assert "open for writing" in answer.json()["detail"]


# --- others meanwhile, and an end before the end ----------------------------


@pytest.mark.case(66)
def test_a_reflink_that_takes_long_holds_up_nobody_else(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.image(MASTER, content=b"m" * SIZE)
    lab.disk("worker-09.debian", size=SIZE)
    begun, go_on = threading.Event(), threading.Event()

    def slow(source: int, clone: int) -> None:
        if not begun.is_set():
            begun.set()
            assert go_on.wait(20)
        _whole(source, clone)

    monkeypatch.setattr(copying, "ficlone", slow)
    answers: list[Any] = []
    clone = threading.Thread(
        target=lambda: answers.append(lab.disk("worker-01.debian", master=MASTER))
    )
    clone.start()
    try:
        assert begun.wait(10)
        begin = time.monotonic()
        assert lab.disk("worker-02.debian", size=SIZE).status_code == 201
        assert lab.disk("worker-03.debian", master=MASTER).status_code == 201
        assert lab.client.get("/lun").status_code == 200
        assert lab.delete("worker-09.debian", delete_file="true").status_code == 200
        listed = lab.client.get("/masters").json()["masters"]
        assert [each["name"] for each in listed] == [MASTER]
        node = lab.client.get("/capabilities").json()
        assert node["making"] == ["worker-01.debian.img"]
        assert lab.scan()["created"] == []
        assert time.monotonic() - begin < 5
        assert set(lab.targets()) == {"worker-02.debian", "worker-03.debian"}
        assert answers == []
    finally:
        go_on.set()
        clone.join()
    assert answers[0].status_code == 201
    assert "worker-01.debian" in lab.targets()


class _CancelledError(Exception):
    pass


def test_whoever_follows_the_progress_sees_all_of_it_and_can_end_it(files: Lab) -> None:
    master = files.folder / MASTER
    _sparse(master, 12 * SIZE, {0: 3 * SIZE, 8 * SIZE: 2 * SIZE})
    totals: list[int] = []
    steps: list[int] = []
    images = files.node.images
    made = images.clone(MASTER, "one.img", progress=steps.append, total=totals.append)
    assert totals == [5 * SIZE]
    assert sum(steps) == 5 * SIZE
    assert len([step for step in steps if step]) >= 5
    assert made.copied == 5 * SIZE
    before = files.files()

    def stop(count: int) -> None:
        if count:
            raise _CancelledError

    with pytest.raises(_CancelledError):
        images.clone(MASTER, "two.img", progress=stop)
    assert files.files() == before
    assert images._coming == {}


def test_a_disk_that_fails_while_it_is_written_is_heard(
    files: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What sync_file_range tells is not told again by fsync."""
    import ctypes

    class Libc:
        @staticmethod
        def sync_file_range(*words: int) -> int:
            ctypes.set_errno(errno.EIO)
            return -1

    monkeypatch.setattr(copying, "_libc", Libc)
    monkeypatch.setattr(copying, "WINDOW", SIZE)
    files.image(MASTER, content=os.urandom(3 * SIZE), size=3 * SIZE)
    before = files.files()
    assert files.disk("worker-01.debian", master=MASTER).status_code == 503
    assert files.files() == before


@pytest.mark.case(81)
def test_an_image_that_may_not_be_written_is_not_exported(
    make_lab: Callable[..., Lab], small_folder: Path
) -> None:
    lab = make_lab(small_folder)
    image = lab.image("worker-01.debian.img")
    subprocess.run(["chattr", "+i", str(image)], check=True)
    try:
        assert "read-write" in lab.skipped()[image.name]
        answer = lab.disk("worker-01.debian", existing=True)
        assert answer.status_code == 409
        assert "owner, mode or mount" in answer.json()["detail"]
        assert lab.targets() == {}
    finally:
        subprocess.run(["chattr", "-i", str(image)], check=True)


@pytest.mark.case(81)
@pytest.mark.parametrize(("mode", "owner"), [(0o444, 65534), (0o600, 0)])
def test_an_agent_that_is_not_root_sees_that_an_image_is_read_only(
    mode: int, owner: int
) -> None:
    folder = Path(tempfile.mkdtemp(prefix="clones-"))  # pytest's own are root's
    folder.chmod(0o755)
    try:
        image = folder / "worker-01.debian.img"
        image.write_bytes(b"x" * SIZE)
        image.chmod(mode)
        os.chown(image, owner, owner)
        pid = os.fork()
        if pid == 0:  # no return into pytest from here
            code = 1
            try:
                os.setgroups([])
                os.setgid(65534)
                os.setuid(65534)
                from agents.node.images import Images
                from ipxeready.errors import Conflict

                try:
                    Images(folder).check_disk(image.name)
                except Conflict as error:
                    code = 0 if "Permission denied" in error.message else 2
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    finally:
        shutil.rmtree(folder)
