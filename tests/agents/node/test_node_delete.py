"""Taking targets off: nothing under a running machine, images last, masters never, and off stays off."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agents.node import creating
from agents.protocol.requests import DiskRequest
from ipxeready.errors import UpstreamFailed
from tests.agents.node import node_lab
from tests.agents.node.node_lab import BASE, SIZE, Lab


def test_an_unknown_target_is_404(lab: Lab) -> None:
    answer = lab.delete("worker-01.windows")
    assert answer.status_code == 404
    assert "worker-01.windows" in answer.json()["detail"]
    assert lab.delete("worker-01.windows", delete_file="true").status_code == 404


def test_delete_with_its_file(lab: Lab) -> None:
    lab.disk("worker-01.windows", size=SIZE)
    answer = lab.delete("worker-01.windows", delete_file="true")
    assert answer.json() == {
        "deleted": f"{BASE}:worker-01.windows",
        "delete_file": True,
    }
    assert lab.targets() == {}
    assert not (lab.folder / "worker-01.windows.img").exists()
    assert lab.disk("worker-01.windows", size=SIZE).status_code == 201


def test_a_kept_image_stays_off_until_it_is_exported_again(lab: Lab) -> None:
    lab.disk("worker-01.windows", size=SIZE)
    assert lab.delete("worker-01.windows").json()["delete_file"] is False
    assert (lab.folder / "worker-01.windows.img").exists()
    assert "taken off on purpose" in lab.skipped()["worker-01.windows.img"]
    lab.restart()
    assert lab.targets() == {}
    assert lab.disk("worker-01.windows", existing=True).status_code == 201
    assert json.loads((lab.folder / ".targets.json").read_text())["off"] == []
    if lab.tgtd:
        lab.tgtd.adm("--op", "delete", "--mode", "target", "--tid", "1", "--force")
    lab.restart()
    assert lab.targets() == {"worker-01.windows": "worker-01.windows.img"}


def test_the_image_of_a_target_that_is_off_can_still_be_deleted(lab: Lab) -> None:
    lab.disk("worker-01.windows", size=SIZE)
    lab.delete("worker-01.windows")
    assert lab.delete("worker-01.windows", delete_file="1").status_code == 200
    assert not (lab.folder / "worker-01.windows.img").exists()


@pytest.mark.parametrize(
    "query",
    [
        "iqn=",
        "",
        "iqn=x",
        f"iqn={BASE}:a&typo=1",
        f"iqn={BASE}:a&force=yes",
        f"iqn={BASE}:a&delete_file=TRUE",
        f"iqn={BASE}:a&iqn={BASE}:b",
        f"iqn={BASE}:..",
        "iqn=iqn.2020-01.org.other:a",
    ],
)
def test_malformed_deletions_are_refused(files: Lab, query: str) -> None:
    assert files.client.delete(f"/lun?{query}").status_code == 400


@pytest.mark.case(72)
@pytest.mark.tgtd
def test_a_session_refuses_the_deletion_and_names_who(stgt: Lab) -> None:
    assert stgt.tgtd
    stgt.disk("worker-01.windows", size=SIZE)
    with node_lab.session(
        stgt.tgtd, f"{BASE}:worker-01.windows", initiator=f"{BASE}:worker-01"
    ):
        listing, files = stgt.tgtd.listing(), stgt.files()
        (shown,) = stgt.client.get("/lun").json()[0]["sessions"]
        assert shown["initiator"] == f"{BASE}:worker-01"
        assert shown["address"] == "127.0.0.1"
        for query in ({}, {"delete_file": "true"}, {"force": "false"}):
            answer = stgt.delete("worker-01.windows", **query)
            assert answer.status_code == 409
            assert f"{BASE}:worker-01 from 127.0.0.1" in answer.json()["detail"]
        assert stgt.tgtd.listing() == listing
        assert stgt.files() == files


@pytest.mark.case(72)
@pytest.mark.tgtd
def test_a_session_that_comes_between_the_look_and_the_deletion_is_not_cut(
    stgt: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stgt.tgtd
    stgt.disk("worker-01.windows", size=SIZE)
    blind = stgt.node.backend.targets()
    with node_lab.session(stgt.tgtd, f"{BASE}:worker-01.windows"):
        real, calls = stgt.node.backend._show, []  # type: ignore[attr-defined]

        def first_look() -> object:
            shown = real()
            if not calls:  # as it was a moment ago
                shown[f"{BASE}:worker-01.windows"].sessions = []
            calls.append(1)
            return shown

        monkeypatch.setattr(stgt.node.backend, "targets", lambda: blind)
        monkeypatch.setattr(stgt.node.backend, "_show", first_look)
        listing = stgt.tgtd.listing()
        answer = stgt.delete("worker-01.windows", delete_file="true")
        assert answer.status_code == 409
        assert f"{BASE}:worker-01 " in answer.json()["detail"]
        assert stgt.tgtd.listing() == listing
    assert (stgt.folder / "worker-01.windows.img").exists()
    memory = json.loads((stgt.folder / ".targets.json").read_text())
    assert memory["off"] == []


@pytest.mark.case(72)
@pytest.mark.tgtd
def test_force_ends_the_session_and_says_whose(stgt: Lab) -> None:
    assert stgt.tgtd
    stgt.disk("worker-01.windows", size=SIZE)
    stgt.disk("worker-02.windows", size=SIZE)
    with node_lab.session(stgt.tgtd, f"{BASE}:worker-01.windows"):
        answer = stgt.delete("worker-01.windows", delete_file="true", force="true")
        assert answer.status_code == 200
        assert answer.json()["closed"][0]["initiator"] == f"{BASE}:worker-01"
    assert stgt.targets() == {"worker-02.windows": "worker-02.windows.img"}
    assert not (stgt.folder / "worker-01.windows.img").exists()


@pytest.mark.case(75)
def test_a_deletion_that_failed_half_way_is_finished_by_the_next(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.disk("worker-01.windows", size=SIZE)
    with monkeypatch.context() as broken:
        broken.setattr(
            type(lab.node.images), "delete", _raise(UpstreamFailed("the disk says no"))
        )
        assert lab.delete("worker-01.windows", delete_file="true").status_code == 502
    # The target is gone; a restart now must not bring half of a deletion back.
    lab.restart()
    assert lab.targets() == {}
    assert lab.delete("worker-01.windows", delete_file="true").status_code == 200
    assert not (lab.folder / "worker-01.windows.img").exists()


def test_a_target_that_cannot_be_removed_keeps_its_file_and_is_not_remembered_as_off(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.disk("worker-01.windows", size=SIZE)
    before = lab.files()
    monkeypatch.setattr(lab.node.backend, "unexport", _raise(UpstreamFailed("no")))
    assert lab.delete("worker-01.windows", delete_file="true").status_code == 502
    assert lab.remembered()["off"] == []
    assert lab.files() == before


@pytest.mark.case(69)
def test_deleting_a_symlink_to_the_master_or_a_second_link_is_refused(lab: Lab) -> None:
    master = lab.image("win_tpl_v1.img", content=b"m" * SIZE)
    (lab.folder / "worker-01.windows.img").symlink_to(master)
    os.link(master, lab.folder / "worker-02.windows.img")
    before = lab.files()
    skipped = lab.skipped()
    assert "symlink" in skipped["worker-01.windows.img"]
    assert "hard link" in skipped["worker-02.windows.img"]
    for name in ("worker-01.windows", "worker-02.windows"):
        assert lab.disk(name, existing=True).status_code == 409
        assert lab.delete(name, delete_file="true").status_code == 409
    assert lab.targets() == {}
    assert lab.files() == before


@pytest.mark.case(69)
def test_a_link_that_was_made_after_the_export_is_not_deleted(lab: Lab) -> None:
    lab.disk("worker-01.windows", size=SIZE)
    os.link(lab.folder / "worker-01.windows.img", lab.folder / "second")
    assert lab.delete("worker-01.windows", delete_file="true").status_code == 409
    assert lab.targets() == {"worker-01.windows": "worker-01.windows.img"}


@pytest.mark.case(70)
def test_a_master_is_never_deleted_or_made_by_the_workers_route(lab: Lab) -> None:
    for name in ("win_tpl_v1.img", "WIN_TPL_v2.img", "worker_tpl_01.Windows.img"):
        lab.image(name)
    before = lab.files()
    for name in ("win_tpl_v1", "WIN_TPL_v2", "worker_tpl_01.Windows"):
        assert lab.delete(name, delete_file="true", force="true").status_code == 400
        assert lab.disk(name, size=SIZE).status_code == 400
        assert lab.disk(name, existing=True).status_code == 400
    assert lab.files() == before


@pytest.mark.tgtd
def test_an_image_that_is_gone_does_not_block_the_deletion_of_its_target(
    stgt: Lab,
) -> None:
    stgt.disk("worker-01.windows", size=SIZE)
    (stgt.folder / "worker-01.windows.img").unlink()
    assert f"{BASE}:worker-01.windows" in stgt.skipped()
    assert stgt.delete("worker-01.windows", delete_file="true").status_code == 200
    assert stgt.targets() == {}


@pytest.mark.tgtd
def test_a_file_outside_the_directory_is_never_deleted(stgt: Lab) -> None:
    assert stgt.tgtd
    outside = stgt.folder.parent / "worker-01.windows.img"
    outside.write_bytes(b"x" * SIZE)
    stgt.tgtd.adm(
        "--op",
        "new",
        "--mode",
        "target",
        "--tid",
        "5",
        "-T",
        f"{BASE}:worker-01.windows",
    )
    stgt.tgtd.adm(
        "--op",
        "new",
        "--mode",
        "logicalunit",
        "--tid",
        "5",
        "--lun",
        "1",
        "-b",
        str(outside),
    )
    assert stgt.delete("worker-01.windows", delete_file="true").status_code == 409
    assert stgt.delete("worker-01.windows").status_code == 200
    assert outside.exists()


def test_a_broken_memory_takes_no_writes_and_says_where(lab: Lab) -> None:
    lab.disk("worker-01.windows", size=SIZE)
    (lab.folder / ".targets.json").write_text('{"off": [\n  oops\n')
    before = lab.files()
    for answer in (
        lab.delete("worker-01.windows"),
        lab.disk("worker-02.windows", size=SIZE),
        lab.client.post("/lun/scan"),
    ):
        assert answer.status_code == 503
        assert ".targets.json" in answer.json()["detail"]
        assert "line 2, column 3" in answer.json()["detail"]
    lab.restart()
    assert lab.client.get("/lun").status_code == 200
    assert lab.files() == before


@pytest.mark.case(92)
def test_an_empty_memory_is_a_broken_one_and_opens_nothing(files: Lab) -> None:
    """What a power cut leaves of a file on some file systems."""
    files.disk("worker-01.windows", size=SIZE, access="acl")
    files.delete("worker-01.windows")
    (files.folder / ".targets.json").write_bytes(b"")
    files.restart()
    assert files.client.post("/lun/scan").status_code == 503
    assert files.targets() == {}
    assert (files.folder / ".targets.json").read_bytes() == b""


def test_keys_of_the_memory_that_we_do_not_know_stay(files: Lab) -> None:
    files.disk("worker-01.windows", size=SIZE)
    (files.folder / ".targets.json").write_text('{"note": "机房", "off": []}')
    files.delete("worker-01.windows")
    memory = json.loads((files.folder / ".targets.json").read_text())
    assert memory["note"] == "机房"
    assert memory["off"] == [f"{BASE}:worker-01.windows"]


def _raise(error: Exception) -> Callable[..., None]:
    def call(*args: object, **kwargs: object) -> None:
        raise error

    return call


def test_an_image_that_is_being_made_is_told_and_not_deleted(files: Lab) -> None:
    """The copy goes on after its caller is gone: until it is done there is neither an image nor nothing."""
    name = "worker-01.debian"
    assert files.client.get("/capabilities").json()["making"] == []
    with files.node.changing():
        files.node.reserve(f"{name}.img")
    assert files.client.get("/capabilities").json()["making"] == [f"{name}.img"]
    for query in ("", "&delete_file=true", "&force=true"):
        answer = files.client.delete(f"/lun?iqn={BASE}:{name}{query}")
        assert answer.status_code == 409
        assert "being made" in answer.json()["detail"]
    with files.node.changing():
        files.node.release(f"{name}.img")
    assert files.client.delete(f"/lun?iqn={BASE}:{name}").status_code == 404


def test_a_target_that_is_being_taken_off_is_told(files: Lab) -> None:
    name = "worker-01.debian"
    files.disk(name, size=1 << 20)
    told = []
    real = files.node.backend.unexport

    def unexport(iqn: str, *, force: bool = False) -> None:
        told.append(files.client.get("/capabilities").json()["removing"])
        real(iqn, force=force)

    files.node.backend.unexport = unexport  # type: ignore[method-assign]
    assert files.client.delete(f"/lun?iqn={BASE}:{name}").status_code == 200
    assert told == [[f"{BASE}:{name}"]]
    assert files.client.get("/capabilities").json()["removing"] == []


@pytest.fixture
def tiny(tmp_path: Path, _own_mounts: None) -> Iterator[Path]:
    """A folder on a file system that can be full to its last byte: ext4 keeps some for itself."""
    point = tmp_path / "tiny"
    point.mkdir()
    words = ("mount", "-t", "tmpfs", "-o", "size=8M", "none", str(point))
    subprocess.run(words, check=True)
    try:
        yield point
    finally:
        subprocess.run(["umount", "-l", str(point)], check=True)


@pytest.mark.parametrize("way", ["target", "rest", "image"])
def test_a_full_disk_is_made_room_on_by_deleting(
    make_lab: Callable[..., Lab], tiny: Path, way: str
) -> None:
    lab = make_lab(tiny)
    lab.disk("worker-01.windows", size=SIZE, access="acl")
    lab.disk("worker-02.windows", size=SIZE)
    image = tiny / "worker-01.windows.img"
    image.write_bytes(b"x" * SIZE)
    if way != "target":
        assert lab.delete("worker-01.windows").status_code == 200
    filler = os.open(tiny / "filler", os.O_WRONLY | os.O_CREAT)
    with contextlib.suppress(OSError):
        while os.write(filler, b"x" * 4096):
            pass
    os.close(filler)
    # What would have to be remembered is refused, and nothing is changed.
    assert lab.delete("worker-02.windows").status_code == 503
    if way == "image":
        answer = lab.client.delete("/images?name=worker-01.windows.img")
    else:
        answer = lab.delete("worker-01.windows", delete_file="true")
    assert answer.status_code == 200, answer.content
    assert not image.exists()
    assert list(lab.targets()) == ["worker-02.windows"]
    assert f"{BASE}:worker-01.windows" not in lab.remembered()["off"]
    assert lab.delete("worker-02.windows").status_code == 200


@pytest.mark.parametrize("kind", ["size", "import"])
def test_a_new_image_is_not_off_because_an_old_one_of_its_name_was(
    files: Lab, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A kill behind the deletion of an image leaves it remembered as off; another, behind the new image's name, must not find that."""
    iqn = f"{BASE}:worker-01.debian"
    files.node.memory.set(iqn, off=True)
    there = []

    def die(*_: object, **__: object) -> str:
        there.extend(p.name for p in files.folder.glob("worker*"))
        assert files.remembered()["off"] == []
        raise SystemExit

    monkeypatch.setattr(creating, "_export", die)
    request = DiskRequest(iqn, size=SIZE)
    if kind == "import":
        files.image("old.img")
        request = DiskRequest(iqn, import_="old.img")
    with pytest.raises(SystemExit):
        creating.disk_create(files.node, request)
    assert there == ["worker-01.debian.img"]
