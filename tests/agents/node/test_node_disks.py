"""Disks of a node: made whole or not at all, never over what is there, over every backend."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.node import copying
from agents.node.folder import Folder
from ipxeready.errors import UpstreamFailed
from tests.agents.node import node_lab
from tests.agents.node.node_lab import BASE, SIZE, Lab
from tests.processes import eventually

GIB = 1 << 30


def test_an_empty_disk_is_a_sparse_file_and_a_target(lab: Lab) -> None:
    answer = lab.disk("worker-01.windows", size="40G")
    path = lab.folder / "worker-01.windows.img"
    assert answer.status_code == 201
    made = answer.json()
    assert 0 <= made.pop("seconds") < 10
    assert made == {
        "iqn": f"{BASE}:worker-01.windows",
        "backing": str(path),
        "how": "empty",
        "bytes": 0,
    }
    assert path.stat().st_size == 40 * GIB
    assert path.stat().st_blocks < 100
    target = lab.client.get("/lun").json()[0]
    assert target["luns"] == [
        {"lun": 1, "backing": str(path), "size": 40 * GIB, "type": "disk"}
    ]
    assert target["sessions"] == []


def test_a_clone_has_the_masters_bytes_and_its_holes(lab: Lab) -> None:
    master = lab.image("debian_tpl_v1.img", 64 * SIZE)
    with master.open("r+b") as stream:
        stream.seek(40 * SIZE)
        stream.write(os.urandom(SIZE + 512))
    assert lab.disk("worker-01.debian", master=master.name).status_code == 201
    clone = lab.folder / "worker-01.debian.img"
    assert clone.stat().st_size == 64 * SIZE
    assert clone.stat().st_blocks * 512 < 4 * SIZE
    same = hashlib.sha256(clone.read_bytes()).digest()
    assert same == hashlib.sha256(master.read_bytes()).digest()


@pytest.mark.tgtd
def test_an_initiator_reads_and_writes_the_clone_and_not_the_master(
    stgt: Lab, tmp_path: Path
) -> None:
    master = stgt.image("debian_tpl_v1.img", content=os.urandom(SIZE))
    stgt.disk("worker-01.debian", master=master.name)
    assert stgt.tgtd
    read = tmp_path / "read"
    assert (
        node_lab.read_lun(stgt.tgtd, f"{BASE}:worker-01.debian", read).returncode == 0
    )
    assert read.read_bytes() == master.read_bytes()
    before = master.read_bytes()
    assert node_lab.write_lun(stgt.tgtd, f"{BASE}:worker-01.debian").returncode == 0
    clone = (stgt.folder / "worker-01.debian.img").read_bytes()
    assert clone[:4096] == b"\xab" * 4096
    assert master.read_bytes() == before


def test_reflink_is_measured_and_used_where_it_works(
    make_lab: Callable[..., Lab], reflink_folder: Path
) -> None:
    lab = make_lab(reflink_folder)
    assert lab.client.get("/capabilities").json()["reflink"] is True
    assert lab.client.get("/capabilities").json()["fs_type"] == reflink_folder.name
    master = lab.image(
        "debian_tpl_v1.img", content=os.urandom(32 * SIZE), size=32 * SIZE
    )
    os.sync()
    free = os.statvfs(reflink_folder).f_bfree
    assert lab.disk("worker-01.debian", master=master.name).status_code == 201
    used = (free - os.statvfs(reflink_folder).f_bfree) * os.statvfs(
        reflink_folder
    ).f_bsize
    assert used < 4 * SIZE
    assert (lab.folder / "worker-01.debian.img").read_bytes() == master.read_bytes()
    assert lab.client.get("/logs").json()["entries"][-1]["how"] == "reflink"
    assert [name for name in lab.files() if name.startswith(".")] == []


def test_without_reflink_the_copy_is_full_and_the_log_says_why(
    small_folder: Path, make_lab: Callable[..., Lab]
) -> None:
    lab = make_lab(small_folder)
    assert lab.client.get("/capabilities").json()["reflink"] is False
    master = lab.image("debian_tpl_v1.img", content=b"x" * SIZE)
    assert lab.disk("worker-01.debian", master=master.name).status_code == 201
    how = lab.client.get("/logs").json()["entries"][-1]["how"]
    assert how == "full copy, because EOPNOTSUPP"


@pytest.mark.case(60)
@pytest.mark.parametrize("source", [{"size": "2M"}, {"master": "debian_tpl_v1.img"}])
def test_nothing_is_made_over_an_image_that_is_there(
    lab: Lab, source: dict[str, str]
) -> None:
    lab.image("debian_tpl_v1.img", content=b"m" * SIZE)
    lab.image("worker-01.windows.img", content=b"k" * SIZE)  # by hand, no target
    lab.image("Worker-02.Windows.img", content=b"k" * SIZE)  # differs in case only
    before = lab.files()
    for name in ("worker-01.windows", "worker-02.windows"):
        answer = lab.disk(name, **source)
        assert answer.status_code == 409
        assert "exists already" in answer.json()["detail"]
    lab.scan()
    for name in ("worker-01.windows", "worker-02.windows"):
        assert lab.disk(name, **source).status_code == 409
    assert lab.files() == before


@pytest.mark.case(60)
@pytest.mark.tgtd
def test_nothing_is_made_over_an_image_with_a_session(stgt: Lab) -> None:
    assert stgt.tgtd
    stgt.disk("worker-01.windows", size=SIZE)
    before = stgt.files()
    with node_lab.session(stgt.tgtd, f"{BASE}:worker-01.windows"):
        assert stgt.disk("worker-01.windows", size=SIZE).status_code == 409
        assert stgt.files() == before
        assert stgt.client.get("/lun").json()[0]["sessions"] != []


@pytest.mark.case(60)
def test_two_clones_of_one_name_at_once_make_one(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.image("debian_tpl_v1.img", content=b"m" * SIZE)
    copying_now, go_on = threading.Event(), threading.Event()
    real = copying.reflink

    def slow(source: int, destination: int) -> str | None:
        copying_now.set()
        assert go_on.wait(10)
        return real(source, destination)

    monkeypatch.setattr(copying, "reflink", slow)
    answers: list[Any] = []
    submitted: list[Any] = []
    submit = lab.node.jobs.submit
    monkeypatch.setattr(
        lab.node.jobs,
        "submit",
        lambda *a, **k: submitted.append(submit(*a, **k)) or submitted[-1],
    )

    def ask() -> None:
        answer = lab.disk("worker-01.debian", master="debian_tpl_v1.img")
        answers.append((answer.status_code, answer.json()))

    both = [threading.Thread(target=ask) for _ in range(2)]
    for each in both:
        each.start()
    assert copying_now.wait(10)
    eventually(lambda: len(submitted) == 2)
    different = lab.disk("worker-01.debian", size=SIZE)
    # A slow copy stops nobody else, and a scan leaves the unfinished image alone.
    other = lab.disk("worker-02.debian", size=SIZE)
    scan = lab.scan()
    go_on.set()
    for each in both:
        each.join()
    assert different.status_code == 409
    assert "being worked on" in different.json()["detail"]
    assert other.status_code == 201
    assert scan["created"] == []
    # The same request twice is one piece of work, and both get its answer.
    assert [status for status, _ in answers] == [201, 201]
    assert answers[0] == answers[1]
    assert set(lab.targets()) == {"worker-01.debian", "worker-02.debian"}


def test_a_target_that_cannot_be_made_takes_its_new_file_back(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(exports: list[object]) -> dict[str, Exception]:
        return {e.iqn: UpstreamFailed("tgtd says no") for e in exports}  # type: ignore[attr-defined]

    monkeypatch.setattr(lab.node.backend, "export_all", refuse)
    assert lab.disk("worker-01.windows", size=SIZE).status_code == 502
    assert lab.files() == {}
    entries = lab.client.get("/logs").json()["entries"]
    assert [e["status"] for e in entries][-2:] == ["rollback", "failed"]


def test_an_existing_image_that_cannot_be_exported_stays(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.image("worker-01.windows.img", content=b"k" * SIZE)
    before = lab.files()
    monkeypatch.setattr(
        lab.node.backend,
        "export_all",
        lambda exports: {e.iqn: UpstreamFailed("no") for e in exports},
    )
    assert lab.disk("worker-01.windows", existing=True).status_code == 502
    assert lab.files() == before


def test_existing_exports_what_is_there_and_404_what_is_not(lab: Lab) -> None:
    path = lab.image("worker-01.windows.img")
    assert lab.disk("worker-01.windows", existing=True).json()["backing"] == str(path)
    answer = lab.disk("worker-02.windows", existing=True)
    assert answer.status_code == 404
    assert "worker-02.windows.img" in answer.json()["detail"]
    assert lab.disk("worker-01.windows", existing=True).status_code == 409


def test_the_file_name_must_be_the_iqns_last_part(lab: Lab) -> None:
    answer = lab.disk("worker-01.windows", size=SIZE, filename="other.img")
    assert answer.status_code == 400
    assert "worker-01.windows.img" in answer.json()["detail"]["filename"][0]
    assert lab.files() == {}
    right = lab.disk("worker-01.windows", size=SIZE, filename="worker-01.windows.img")
    assert right.status_code == 201


@pytest.mark.parametrize(
    "iqn",
    [
        "iqn.2020-01.org.other:worker-01.windows",
        BASE,
        f"{BASE}:",
        f"{BASE}x:worker-01.windows",
        f"{BASE}:sub:worker-01.windows",
        f"{BASE}:worker_01.windows",
        f"{BASE}:worker-01..windows",
        f"{BASE}:worker-01.windows\n",
        f"{BASE}:a/b",
        f"{BASE}:worker-01.windows.iso",
        "worker-01.windows",
    ],
)
def test_iqns_outside_the_base_or_the_rule_are_refused(files: Lab, iqn: str) -> None:
    answer = files.post("/lun/disk", iqn=iqn, size=SIZE)
    assert answer.status_code == 400
    assert "iqn" in answer.json()["detail"]
    assert files.files() == {}


@pytest.mark.case(48)
def test_an_iqn_in_capitals_is_the_lower_case_one(lab: Lab) -> None:
    answer = lab.post("/lun/disk", iqn=f"{BASE}:Worker-01.Windows", size=SIZE)
    assert answer.json()["iqn"] == f"{BASE}:worker-01.windows"
    assert list(lab.files()) == ["worker-01.windows.img"]
    deleted = lab.delete("WORKER-01.windows", delete_file="true")
    assert deleted.json() == {
        "deleted": f"{BASE}:worker-01.windows",
        "delete_file": True,
    }


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"size": SIZE, "existing": True},
        {"size": SIZE, "master": "debian_tpl_v1.img"},
        {"size": 0},
        {"size": 513},
        {"size": -512},
        {"size": "12Q"},
        {"size": True},
        {"size": 1.5},
        {"size": "9999T"},
        {"size": SIZE, "typo": 1},
        {"master": ""},
        {"master": "plain.img"},
    ],
)
def test_malformed_disk_requests_are_refused(
    files: Lab, body: dict[str, object]
) -> None:
    files.image("debian_tpl_v1.img")
    before = files.files()
    assert files.disk("worker-01.windows", **body).status_code == 400
    assert files.files() == before


@pytest.mark.case(63)
def test_a_full_copy_without_room_says_what_is_needed_and_free(
    make_lab: Callable[..., Lab], small_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = make_lab(small_folder)
    lab.image("debian_tpl_v1.img", content=b"z" * (36 * SIZE), size=36 * SIZE)
    before = lab.files()
    # It is said before anything is copied, not found out on the way.
    monkeypatch.setattr(
        copying, "sparse_copy", lambda *words, **more: pytest.fail("copied")
    )
    answer = lab.disk("worker-01.debian", master="debian_tpl_v1.img")
    assert answer.status_code == 507
    assert "needed 36 MiB" in answer.json()["detail"]
    assert "free " in answer.json()["detail"]
    assert lab.files() == before
    assert lab.targets() == {}


@pytest.mark.case(63)
def test_a_disk_that_fills_up_in_the_middle_of_a_copy_is_as_before(
    make_lab: Callable[..., Lab], small_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = make_lab(small_folder)
    lab.image("debian_tpl_v1.img", content=b"z" * (36 * SIZE), size=36 * SIZE)
    monkeypatch.setattr(
        type(lab.node.images),
        "_claim",
        lambda self, part, name, needed: self._coming.update({part: needed}),
    )
    free = os.statvfs(small_folder).f_bfree
    answer = lab.disk("worker-01.debian", master="debian_tpl_v1.img")
    assert answer.status_code == 507
    assert os.statvfs(small_folder).f_bfree >= free - 64
    assert os.listdir(small_folder) != []
    assert [n for n in os.listdir(small_folder) if "worker" in n] == []


@pytest.mark.case(71)
def test_empty_disks_may_promise_more_than_there_is(
    make_lab: Callable[..., Lab], small_folder: Path
) -> None:
    lab = make_lab(small_folder)
    for number in range(3):
        assert lab.disk(f"worker-{number}.windows", size="60G").status_code == 201


def test_a_master_that_is_no_whole_image_is_not_cloned(lab: Lab) -> None:
    lab.image("short_tpl_1.img", size=700)
    lab.image("empty_tpl_1.img", size=0)
    for name in ("short_tpl_1.img", "empty_tpl_1.img"):
        assert lab.disk("worker-01.debian", master=name).status_code == 409
    assert lab.targets() == {}


@pytest.mark.case(52)
def test_a_name_that_is_too_long_is_counted_as_a_whole(lab: Lab) -> None:
    long_base = "iqn.2026-07." + ".".join(["a" * 50] * 3)  # 164 bytes
    lab.restart(IPXE_IQN_BASE=long_base)
    fits = f"{long_base}:{'b' * 51}.windows"
    assert len(fits) == 224
    answer = lab.post("/lun/disk", iqn=fits, size=SIZE)
    assert answer.status_code == 400
    assert "223" in answer.json()["detail"]["iqn"][0]
    assert (
        lab.post("/lun/disk", iqn=fits.replace("bb", "b", 1), size=SIZE).status_code
        == 201
    )


@pytest.mark.case(60)
@pytest.mark.parametrize("source", [{"size": SIZE}, {"master": "debian_tpl_v1.img"}])
def test_a_file_that_a_hand_puts_there_during_the_copy_is_not_replaced(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, source: dict[str, object]
) -> None:
    lab.image("debian_tpl_v1.img", content=b"m" * SIZE)
    real = os.fsync
    put: list[Path] = []

    def fsync(file: int) -> None:
        real(file)
        if not put:
            put.append(lab.image("worker-01.debian.img", content=b"h" * SIZE))

    monkeypatch.setattr(os, "fsync", fsync)
    answer = lab.disk("worker-01.debian", **source)
    monkeypatch.undo()
    assert answer.status_code == 409
    assert put[0].read_bytes() == b"h" * SIZE
    assert sorted(lab.files()) == [
        "debian_tpl_v1.img",
        "worker-01.debian.img",
    ]
    assert lab.targets() == {}


@pytest.mark.case(63)
def test_two_copies_at_once_do_not_promise_the_same_room(
    make_lab: Callable[..., Lab], small_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = make_lab(small_folder)
    lab.image("debian_tpl_v1.img", content=b"z" * (22 * SIZE), size=22 * SIZE)
    real, inner = copying.sparse_copy, []

    def copy(source: int, destination: int, **more: object) -> int:
        if not inner:
            inner.append(None)
            inner[0] = lab.disk("worker-02.debian", master="debian_tpl_v1.img")
        return real(source, destination, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(copying, "sparse_copy", copy)
    assert lab.disk("worker-01.debian", master="debian_tpl_v1.img").status_code == 201
    assert inner[0].status_code == 507
    assert set(lab.targets()) == {"worker-01.debian"}


@pytest.mark.case(48)
def test_an_existing_image_in_capitals_is_found_by_its_lower_case_name(
    lab: Lab,
) -> None:
    path = lab.image("Worker-01.Windows.img")
    assert lab.disk("worker-01.windows", existing=True).json()["backing"] == str(path)


@pytest.mark.case(63)
def test_a_full_disk_answers_and_takes_nothing_more(
    make_lab: Callable[..., Lab], small_folder: Path
) -> None:
    with contextlib.suppress(OSError), (small_folder / "ballast").open("wb") as stream:
        while True:
            stream.write(b"b" * SIZE)
            stream.flush()
    lab = make_lab(small_folder)
    found = lab.client.get("/capabilities")
    assert found.status_code == 200
    assert found.json()["reflink"] is False
    answer = lab.disk("worker-01.windows", size=SIZE)
    assert answer.status_code == 507
    assert "free" in answer.json()["detail"]
    assert os.listdir(lab.folder).count("worker-01.windows.img") == 0


def test_a_name_is_found_without_a_look_at_every_file(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch of thousands asks for each: field case 100, no full rescan per item."""
    for number in range(300):
        (lab.folder / f"pc-{number}.debian.img").touch()
    (lab.folder / "Pc-X.debian.img").touch()
    folder = Folder(lab.folder)
    looks = []
    real = os.stat

    def stat(path: Any, **more: Any) -> os.stat_result:
        looks.append(path)
        return real(path, **more)

    monkeypatch.setattr(os, "stat", stat)
    found = [folder.find(f"{name}.debian.img") for name in ("pc-7", "pc-x", "none")]
    assert [entry and entry.name for entry in found] == [
        "pc-7.debian.img",
        "Pc-X.debian.img",
        None,
    ]
    assert len(looks) < 10
    assert folder.find("..") is None
    assert folder.find("") is None
