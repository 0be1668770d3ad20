"""The list of the image directory, deletion, and images that become a worker's disk under a new name."""

from __future__ import annotations

import os
from typing import Any

import pytest

from agents.node import importing
from ipxeready.errors import Conflict, Unavailable
from tests.agents.node.node_lab import BASE, SIZE, Lab


def listed(lab: Lab) -> dict[str, dict[str, Any]]:
    answer = lab.client.get("/images")
    assert answer.status_code == 200, answer.content
    return {image["name"]: image for image in answer.json()["images"]}


def test_every_file_is_listed_with_its_kind_its_user_and_its_problem(lab: Lab) -> None:
    lab.image("win_tpl_1.img")
    lab.image("debian.iso")
    lab.image("cloud.qcow2")
    lab.image("readme.txt", 3, b"abc")
    lab.image("half.img", 700)
    (lab.folder / "link.img").symlink_to("win_tpl_1.img")
    (lab.folder / "lost+found").mkdir()
    lab.image(".hidden")
    assert lab.disk("pc-1.debian", size=SIZE).status_code == 201
    found = listed(lab)
    assert {name: image["kind"] for name, image in found.items()} == {
        "win_tpl_1.img": "master",
        "debian.iso": "iso",
        "cloud.qcow2": "source",
        "readme.txt": "other",
        "half.img": "disk",
        "link.img": "disk",
        "pc-1.debian.img": "disk",
    }
    assert found["pc-1.debian.img"]["target"] == f"{BASE}:pc-1.debian"
    assert found["pc-1.debian.img"]["allocated"] == 0
    assert "multiple of 512" in found["half.img"]["problem"]
    assert "symlink" in found["link.img"]["problem"]
    assert "problem" not in found["win_tpl_1.img"]


@pytest.mark.parametrize(
    ("magic", "kind", "size"),
    [
        (b"QFI\xfb\0\0\0\3", "qcow2", SIZE),
        (b"QFI\xfb\0\0\0\3", "qcow2", SIZE + 7),
        (b"vhdxfile", "vhdx", SIZE),
        (b"KDMV\1\0\0\0", "vmdk", SIZE),
    ],
)
def test_what_is_no_raw_disk_inside_becomes_no_disk_and_is_listed_so(
    lab: Lab, magic: bytes, kind: str, size: int
) -> None:
    lab.image("cloud_tpl_1.img", size, magic)
    lab.image("cloud.img", size, magic)
    lab.image("good_tpl_1.img")
    before = sorted(path.name for path in lab.folder.iterdir())
    for source in ({"master": "cloud_tpl_1.img"}, {"import": "cloud.img"}):
        answer = lab.disk("pc-1.debian", **source)
        assert answer.status_code == 409, answer.content
        words = answer.json()["detail"]
        assert f"is {kind} inside" in words
        assert "manage.py image convert" in words
        assert len(words) <= 200
    assert sorted(path.name for path in lab.folder.iterdir()) == before
    found = listed(lab)
    assert f"is {kind} inside" in found["cloud.img"]["problem"]
    assert f"is {kind} inside" in found["cloud_tpl_1.img"]["problem"]
    masters = {
        each["name"]: each for each in lab.client.get("/masters").json()["masters"]
    }
    assert f"is {kind} inside" in masters["cloud_tpl_1.img"]["problem"]
    assert "problem" not in masters["good_tpl_1.img"]


def test_a_disk_is_never_refused_for_what_its_machine_wrote(lab: Lab) -> None:
    assert lab.disk("pc-1.debian", size=SIZE).status_code == 201
    with (lab.folder / "pc-1.debian.img").open("r+b") as disk:
        disk.write(b"QFI\xfb\0\0\0\3")
    assert "problem" not in listed(lab)["pc-1.debian.img"]
    assert lab.delete("pc-1.debian").status_code == 200
    assert lab.disk("pc-1.debian", existing=True).status_code == 201


def test_a_master_that_was_put_right_is_cloned(files: Lab) -> None:
    path = files.image("cloud_tpl_1.img", SIZE, b"vhdxfile")
    assert files.disk("pc-1.debian", master=path.name).status_code == 409
    assert "problem" in files.client.get("/masters").json()["masters"][0]
    path.unlink()
    files.image("cloud_tpl_1.img")
    assert "problem" not in files.client.get("/masters").json()["masters"][0]
    assert files.disk("pc-1.debian", master=path.name).status_code == 201


def test_only_what_nobody_uses_is_deleted(lab: Lab) -> None:
    assert lab.disk("pc-1.debian", size=SIZE).status_code == 201
    used = lab.client.delete("/images?name=pc-1.debian.img")
    assert used.status_code == 409
    assert f"{BASE}:pc-1.debian" in used.json()["detail"]
    assert lab.delete("pc-1.debian").status_code == 200
    done = lab.client.delete("/images?name=pc-1.debian.img")
    assert done.json() == {"deleted": "pc-1.debian.img", "freed": 0}
    assert lab.node.memory.read().off == set()
    assert lab.client.delete("/images?name=pc-1.debian.img").status_code == 404


def test_a_master_is_deleted_only_by_saying_that_it_is_one(files: Lab) -> None:
    files.image("win_tpl_1.img")
    refused = files.client.delete("/images?name=win_tpl_1.img")
    assert refused.status_code == 409
    assert files.client.get("/masters").json()["masters"]
    done = files.client.delete("/images?name=win_tpl_1.img&master=true")
    assert done.status_code == 200
    assert files.client.get("/masters").json()["masters"] == []


def test_links_hidden_files_and_paths_are_never_deleted(files: Lab) -> None:
    files.image("a.img")
    os.link(files.folder / "a.img", files.folder / "b.img")
    (files.folder / "c.img").symlink_to("a.img")
    assert files.disk("pc-1.debian", size=SIZE).status_code == 201
    files.delete("pc-1.debian")
    before = sorted(p.name for p in files.folder.iterdir())
    for name, status in (
        ("a.img", 409),
        ("c.img", 409),
        (".targets.json", 400),
        ("../x", 400),
        ("", 400),
    ):
        answer = files.client.delete(f"/images?name={name}")
        assert answer.status_code == status, (name, answer.content)
    assert sorted(p.name for p in files.folder.iterdir()) == before


# -- import ------------------------------------------------------------------


def test_an_image_becomes_a_workers_disk_and_stays_it_after_a_restart(lab: Lab) -> None:
    path = lab.image("Old VM (2019).img", content=b"system")
    inode = path.stat().st_ino
    done = lab.disk("pc-1.windows", **{"import": "Old VM (2019).img"})
    assert done.status_code == 201, done.content
    new = lab.folder / "pc-1.windows.img"
    assert new.stat().st_ino == inode
    assert new.stat().st_nlink == 1
    assert not path.exists()
    lab.restart()
    assert lab.targets() == {"pc-1.windows": "pc-1.windows.img"}
    assert [p.name for p in lab.folder.iterdir() if p.name.endswith(".import")] == []


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("win_tpl_1.img", 400, "master"),
        ("gone.img", 404, "no gone.img"),
        ("half.img", 409, "multiple of 512"),
        ("twice.img", 409, "hard links"),
        ("link.img", 409, "symlink"),
        ("cd.iso", 400, ".img"),
        ("../x.img", 400, "not a file name"),
        ("other.debian.img", 409, "exported already"),
    ],
)
def test_what_cannot_be_imported_is_left_as_it_was(
    files: Lab, name: str, status: int, words: str
) -> None:
    files.image("win_tpl_1.img")
    files.image("half.img", 700)
    files.image("twice.img")
    os.link(files.folder / "twice.img", files.folder / "same.img")
    (files.folder / "link.img").symlink_to("win_tpl_1.img")
    files.image("cd.iso")
    assert files.disk("other.debian", size=SIZE).status_code == 201
    before = files.files()
    answer = files.disk("pc-1.windows", **{"import": name})
    assert answer.status_code == status, answer.content
    assert words in str(answer.json()["detail"])
    assert files.files() == before


def test_an_import_never_replaces_the_image_that_is_there(files: Lab) -> None:
    files.image("old.img", content=b"old")
    files.image("pc-1.windows.img", content=b"mine")
    answer = files.disk("pc-1.windows", **{"import": "old.img"})
    assert answer.status_code == 409
    assert (files.folder / "old.img").read_bytes().startswith(b"old")
    assert (files.folder / "pc-1.windows.img").read_bytes().startswith(b"mine")


def test_an_export_that_fails_gives_the_old_name_back(
    files: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    files.image("old.img", content=b"old")
    before = files.files()

    def fail(*_: Any) -> None:
        raise Unavailable("the target system is gone")

    with monkeypatch.context() as patch:
        patch.setattr(files.node.backend, "export", fail)
        assert files.disk("pc-1.windows", **{"import": "old.img"}).status_code == 503
    assert files.files() == before
    assert files.disk("pc-1.windows", **{"import": "old.img"}).status_code == 201


@pytest.mark.parametrize("step", ["marked", "linked", "renamed"])
def test_a_crash_within_an_import_leaves_one_name_after_the_start(
    files: Lab, step: str
) -> None:
    old, new = files.image("old.img", content=b"old"), files.folder / "pc-1.debian.img"
    mark = files.folder / ".0123456789ab.import"
    mark.symlink_to("old.img/pc-1.debian.img")
    if step != "marked":
        os.link(old, new)
    if step == "renamed":
        old.unlink()
    files.restart()
    names = sorted(p.name for p in files.folder.glob("*.img"))
    if step == "marked":
        assert names == ["old.img"]
    else:
        assert names == ["pc-1.debian.img"]
        assert files.targets()["pc-1.debian"] == "pc-1.debian.img"
    assert not mark.is_symlink()


def test_a_mark_that_somebody_made_never_removes_a_file(files: Lab) -> None:
    files.image("a.img", content=b"a")
    files.image("b.img", content=b"b")
    for number, text in enumerate(("a.img/b.img", "a.img/../a.img", "a.img/", "x/y/z")):
        (files.folder / f".0123456789a{number}.import").symlink_to(text)
    importing.recover(files.node.images)
    assert sorted(p.name for p in files.folder.glob("*.img")) == ["a.img", "b.img"]


def test_only_one_source_may_be_named(files: Lab) -> None:
    files.image("old.img")
    answer = files.disk("pc-1.windows", size=SIZE, **{"import": "old.img"})
    assert answer.status_code == 400
    assert "size and import" in answer.json()["detail"]


def test_an_image_that_a_copy_reads_is_not_renamed(files: Lab) -> None:
    files.image("old.img")
    with files.node.reading("old.img"), pytest.raises(Conflict, match="copied"):
        importing.check_importable(files.node, "old.img", "pc-1.debian.img")
