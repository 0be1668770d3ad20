"""Images of other formats become raw ones: by magic, whole, cancelled without a trace, and never by way of another file."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import requests

from agents.node import converting, qemuimg, quiet
from agents.node.jobs import Step
from ipxeready.errors import Conflict
from tests.agents.node.node_lab import SIZE, Lab
from tests.nodes import serving
from tests.processes import eventually

MIB = 1 << 20
SECRET = "root:x:0:0"


def qemu(*words: str, folder: Path) -> None:
    subprocess.run(["qemu-img", *words], cwd=folder, check=True, capture_output=True)


def raw(folder: Path, name: str = "content.bin", size: int = 4 * MIB) -> bytes:
    """A sparse raw disk with some content."""
    content = bytearray(size)
    content[MIB : MIB + 100_000] = os.urandom(100_000)
    content[-512:] = os.urandom(512)
    (folder / name).write_bytes(content)
    return bytes(content)


def make(tmp_path: Path, lab: Lab, kind: str, name: str, *options: str) -> bytes:
    """A source of that format in the image directory."""
    content = raw(tmp_path)
    words = ["convert", "-f", "raw", "-O", kind, *options, "content.bin"]
    qemu(*words, str(lab.folder / name), folder=tmp_path)
    return content


def convert(lab: Lab, source: str, name: str = "new_tpl_1.img", **body: Any) -> Any:
    return lab.post("/images/convert", source=source, name=name, **body)


def refused(lab: Lab, source: str) -> str:
    """The words of the refusal; nothing new lies in the directory."""
    before = sorted(p.name for p in lab.folder.iterdir())
    answer = convert(lab, source)
    assert answer.status_code in (400, 409), answer.content
    assert sorted(p.name for p in lab.folder.iterdir()) == before
    words = json.dumps(answer.json()["detail"])
    assert SECRET not in words
    return words


@pytest.mark.parametrize(
    ("kind", "name", "options"),
    [
        ("qcow2", "a.qcow2", []),
        ("qcow2", "cloud.img", ["-c"]),
        ("vhdx", "a.vhdx", []),
        ("vhdx", "fixed.vhdx", ["-o", "subformat=fixed"]),
        ("vpc", "a.vhd", ["-o", "force_size=on"]),
        ("vpc", "fixed.vhd", ["-o", "subformat=fixed,force_size=on"]),
        ("vmdk", "a.vmdk", []),
        ("vmdk", "ova.vmdk", ["-o", "subformat=streamOptimized"]),
        ("raw", "a.raw", []),
    ],
)
def test_each_format_comes_out_with_its_content_and_its_holes(
    files: Lab, tmp_path: Path, kind: str, name: str, options: list[str]
) -> None:
    content = make(tmp_path, files, kind, name, *options)
    before = (files.folder / name).read_bytes()
    answer = convert(files, name)
    assert answer.status_code == 201, answer.content
    done = answer.json()
    assert (done["name"], done["size"], done["format"]) == (
        "new_tpl_1.img",
        len(content),
        kind,
    )
    made = files.folder / "new_tpl_1.img"
    assert made.read_bytes() == content
    assert made.stat().st_blocks * 512 < MIB
    assert done["bytes"] == made.stat().st_blocks * 512
    assert (files.folder / name).read_bytes() == before
    assert set(files.files()) == {name, "new_tpl_1.img"}


def test_the_format_is_read_from_the_file_not_from_its_name(
    files: Lab, tmp_path: Path
) -> None:
    content = make(tmp_path, files, "vmdk", "lie.qcow2")
    assert convert(files, "lie.qcow2").json()["format"] == "vmdk"
    assert (files.folder / "new_tpl_1.img").read_bytes() == content
    wrong = convert(files, "lie.qcow2", "b.img", format="qcow2")
    assert wrong.status_code == 400
    assert "vmdk by its content" in str(wrong.json())
    assert convert(files, "lie.qcow2", "b.img", format="nbd").status_code == 400


def test_a_qcow2_with_a_backing_file_reads_no_other_file(
    files: Lab, tmp_path: Path
) -> None:
    qemu(
        "create", "-f", "qcow2", "-u", "-F", "raw", "-b", "/etc/passwd", "x.qcow2", "1M",
        folder=files.folder,
    )  # fmt: skip
    assert "another file" in refused(files, "x.qcow2")


def test_a_qcow2_with_an_external_data_file_reads_no_other_file(files: Lab) -> None:
    qemu(
        "create", "-f", "qcow2", "-o", "data_file=other.raw,data_file_raw=on",
        "x.qcow2", "1M", folder=files.folder,
    )  # fmt: skip
    assert "another file" in refused(files, "x.qcow2")
    # Even when its header hides the feature from us, qemu-img's own word counts.


def test_a_vmdk_descriptor_that_names_another_file_is_refused(files: Lab) -> None:
    (files.folder / "x.vmdk").write_text(
        '# Disk DescriptorFile\nversion=1\nCID=1\nparentCID=ffffffff\ncreateType="monolithicFlat"\n'
        'RW 2 FLAT "/etc/passwd" 0\n'
    )
    assert "other files" in refused(files, "x.vmdk")


def test_a_vmdk_header_that_leads_to_a_descriptor_is_refused(files: Lab) -> None:
    descriptor = (
        b'# Disk DescriptorFile\nversion=1\nCID=1\nparentCID=ffffffff\ncreateType="monolithicFlat"\n'
        b'RW 2 FLAT "/etc/passwd" 0\n'
    )
    header = b"KDMV" + struct.pack("<IIQQQQ", 1, 3, 0, 128, 1, 20)
    (files.folder / "x.vmdk").write_bytes(
        header.ljust(512, b"\0") + descriptor.ljust(20 * 512, b"\0")
    )
    assert "other files" in refused(files, "x.vmdk")


def test_a_vmdk_in_several_files_and_one_with_a_parent_are_refused(
    files: Lab, tmp_path: Path
) -> None:
    make(tmp_path, files, "vmdk", "s.vmdk", "-o", "subformat=twoGbMaxExtentSparse")
    assert "other files" in refused(files, "s.vmdk")
    qemu("create", "-f", "vmdk", "base.vmdk", "1M", folder=files.folder)
    qemu(
        "create", "-f", "vmdk", "-b", "base.vmdk", "-F", "vmdk", "child.vmdk",
        folder=files.folder,
    )  # fmt: skip
    assert "another file" in refused(files, "child.vmdk")


@pytest.mark.parametrize("format", ["aes", "luks"])
def test_an_encrypted_image_is_refused(files: Lab, format: str) -> None:
    _make_encrypted(files.folder, format)
    assert "encrypted" in refused(files, "x.qcow2")


def _make_encrypted(folder: Path, format: str) -> None:
    """An encrypted qcow2. qemu-img gives up LUKS where its clock of CPU time has not moved meanwhile: then again."""
    words = [
        "create", "--object", "secret,id=s,data=abc", "-f", "qcow2",
        "-o", f"encrypt.format={format},encrypt.key-secret=s", "x.qcow2", "1M",
    ]  # fmt: skip
    for _ in range(100):
        try:
            return qemu(*words, folder=folder)
        except subprocess.CalledProcessError as error:
            if b"CPU usage" not in error.stderr:
                raise
    raise AssertionError("qemu-img measured no CPU time in 100 tries")


def test_a_disk_of_half_sectors_and_a_monstrous_one_are_refused(files: Lab) -> None:
    qemu("create", "-f", "qcow2", "odd.qcow2", "1M", folder=files.folder)
    path = files.folder / "odd.qcow2"
    content = bytearray(path.read_bytes())
    content[24:32] = struct.pack(">Q", MIB + 100)
    path.write_bytes(content)
    assert "multiple of 512" in refused(files, "odd.qcow2")
    qemu("create", "-f", "qcow2", "huge.qcow2", "100T", folder=files.folder)
    assert "limit" in refused(files, "huge.qcow2")


@pytest.mark.parametrize(
    "head", [b"\x1f\x8b", b"PK\x03\x04", b"COWD", b"QED\0", b"nothing known"]
)
def test_what_is_no_disk_image_is_never_taken_for_a_raw_one(
    files: Lab, head: bytes
) -> None:
    name = "x.img" if head != b"nothing known" else "x.qcow2"
    (files.folder / name).write_bytes(head.ljust(1024, b"\1"))
    assert refused(files, name)


@pytest.mark.parametrize(
    "name",
    [
        'json:{"driver":"file","filename":"/etc/passwd"}.qcow2',
        "nbd:localhost:10809.raw",
        "-U.raw",
        "../x.raw",
        "/etc/passwd",
        "x,file.filename=/etc/passwd.raw",
    ],
)
def test_a_name_is_never_an_option_or_a_protocol(files: Lab, name: str) -> None:
    if "/" not in name:
        (files.folder / name).write_bytes(bytes(1024))
    assert convert(files, name).status_code == 400
    assert not (files.folder / "new_tpl_1.img").exists()


def test_a_symlink_is_no_source(files: Lab) -> None:
    (files.folder / "x.raw").symlink_to("/etc/passwd")
    assert "symlink" in refused(files, "x.raw")
    (files.folder / "folder.raw").mkdir()
    os.mkfifo(files.folder / "pipe.raw")
    for name in ("folder.raw", "pipe.raw"):
        assert "regular" in refused(files, name)


def test_an_image_in_use_is_no_source_and_a_name_in_use_no_target(
    files: Lab, tmp_path: Path
) -> None:
    assert files.disk("pc-1.debian", size=SIZE).status_code == 201
    assert "exported" in refused(files, "pc-1.debian.img")
    make(tmp_path, files, "qcow2", "a.qcow2")
    answer = convert(files, "a.qcow2", "pc-1.debian.img")
    assert answer.status_code == 409
    assert convert(files, "gone.qcow2").status_code == 404


@pytest.mark.parametrize(
    ("kind", "name"), [("qcow2", "a.qcow2"), ("vhdx", "a.vhdx"), ("vmdk", "a.vmdk")]
)
def test_half_an_image_is_never_converted_to_zeros(
    files: Lab, tmp_path: Path, kind: str, name: str
) -> None:
    (tmp_path / "content.bin").write_bytes(os.urandom(MIB) * 64)
    qemu(
        "convert",
        "-f",
        "raw",
        "-O",
        kind,
        "content.bin",
        str(files.folder / name),
        folder=tmp_path,
    )
    os.truncate(files.folder / name, 24 * MIB)
    words = refused(files, name)
    assert (
        "cut off" in words or "damaged" in words or "could not open it" in words.lower()
    )
    assert "/proc/" not in words


def test_a_corrupt_image_is_refused_in_words(files: Lab, tmp_path: Path) -> None:
    make(tmp_path, files, "qcow2", "a.qcow2")
    path = files.folder / "a.qcow2"
    content = bytearray(path.read_bytes())
    content[40:48] = struct.pack(">Q", 1 << 60)  # the table of its clusters
    path.write_bytes(content)
    assert "qemu-img could not" in refused(files, "a.qcow2")


def test_no_room_is_said_before_anything_is_written(
    make_lab: Callable[..., Lab], small_folder: Path, tmp_path: Path
) -> None:
    lab = make_lab(small_folder)
    (tmp_path / "big").write_bytes(os.urandom(MIB) * 100)
    qemu("convert", "-c", "-O", "qcow2", "big", str(tmp_path / "b"), folder=tmp_path)
    # As a device would be: nothing in it compresses, so it is promised more than there is.
    qemu("create", "-f", "qcow2", "x.qcow2", "200M", folder=small_folder)
    subprocess.run(
        ["qemu-io", "-f", "qcow2", "-c", "write -c -P 7 0 100M", "x.qcow2"],
        cwd=small_folder, check=True, capture_output=True,
    )  # fmt: skip
    answer = convert(lab, "x.qcow2")
    assert answer.status_code == 507, answer.content
    assert [p.name for p in small_folder.iterdir() if p.name.endswith(".part")] == []


class _Stop(Exception):
    """What a cancelled job raises in the work."""


def test_a_cancelled_conversion_leaves_nothing_and_no_process(
    files: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, files, "qcow2", "a.qcow2")
    pids = _watch_pids(monkeypatch)

    class Cancel(Step):
        def at(self, done: int, total: int | None = None) -> None:
            raise _Stop

    with pytest.raises(_Stop):
        converting.image_convert(files.node, "a.qcow2", "new_tpl_1.img", step=Cancel())
    assert all(process.poll() is not None for process in pids)
    assert [p.name for p in files.folder.iterdir()] == ["a.qcow2"]
    assert files.node.making() == []
    assert convert(files, "a.qcow2").status_code == 201


def _watch_pids(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    started: list[subprocess.Popen[bytes]] = []

    class Noted(subprocess.Popen):  # type: ignore[type-arg]
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            super().__init__(*args, **kwargs)
            started.append(self)

    monkeypatch.setattr(qemuimg.subprocess, "Popen", Noted)
    return started


def test_a_killed_qemu_img_is_a_refusal_and_leaves_nothing(
    files: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, files, "qcow2", "a.qcow2")
    started = _watch_pids(monkeypatch)

    class Kill(Step):
        def at(self, done: int, total: int | None = None) -> None:
            started[-1].kill()

    _slow_qemu(tmp_path, monkeypatch)  # slow enough to be hit
    with pytest.raises(Conflict, match="signal 9"):
        converting.image_convert(files.node, "a.qcow2", "new_tpl_1.img", step=Kill())
    assert [p.name for p in files.folder.iterdir()] == ["a.qcow2"]


def test_a_node_without_qemu_img_says_so(
    files: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, files, "qcow2", "a.qcow2")
    assert "qcow2" in files.client.get("/images").json()["formats"]
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "apt-get install qemu-utils" in refused(files, "a.qcow2")
    assert files.client.get("/images").json()["formats"] == []


def test_a_source_that_is_being_converted_is_not_deleted(
    files: Lab, tmp_path: Path
) -> None:
    make(tmp_path, files, "qcow2", "a.qcow2")
    inside, go = threading.Event(), threading.Event()

    class Wait(Step):
        def turn(self, total: int | None = None) -> None:
            inside.set()
            assert go.wait(10)

    worker = threading.Thread(
        target=lambda: converting.image_convert(
            files.node, "a.qcow2", "new_tpl_1.img", step=Wait()
        )
    )
    worker.start()
    assert inside.wait(10)
    source = files.client.delete("/images?name=a.qcow2")
    target = convert(files, "a.qcow2")
    go.set()
    worker.join()
    assert source.status_code == 409
    assert "copied right now" in source.json()["detail"]
    assert target.status_code == 409
    eventually((files.folder / "new_tpl_1.img").exists)
    assert files.client.delete("/images?name=a.qcow2").status_code == 200


def test_a_file_that_is_still_being_copied_there_is_no_source(
    files: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a raw image looks like a whole one."""
    monkeypatch.setattr(quiet, "_PATIENCE", 0.0)
    make(tmp_path, files, "raw", "a.raw")
    with (files.folder / "a.raw").open("ab"):
        assert "open for writing" in refused(files, "a.raw")
    assert convert(files, "a.raw").status_code == 201


def test_a_source_that_changes_while_it_is_converted_leaves_nothing(
    files: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, files, "raw", "a.raw")
    real = qemuimg.convert

    def then_changed(*words: Any) -> None:
        real(*words)
        with (files.folder / "a.raw").open("r+b") as stream:
            stream.write(b"changed")

    monkeypatch.setattr(qemuimg, "convert", then_changed)
    assert "changed while" in refused(files, "a.raw")


def _slow_qemu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A qemu-img whose conversions take their time."""
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    slow = tmp_path / "qemu-img"
    slow.write_text(
        f'#!/bin/sh\n[ "$1" = convert ] && exec sleep 20\nexec {shutil.which("qemu-img")} "$@"\n'
    )
    slow.chmod(0o755)


def test_a_conversion_is_a_job_that_can_be_cancelled(
    files: Lab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, files, "qcow2", "a.qcow2")
    _slow_qemu(tmp_path, monkeypatch)
    started = _watch_pids(monkeypatch)
    body = {"source": "a.qcow2", "name": "new_tpl_1.img"}
    answer = files.client.post(
        "/images/convert",
        body,
        content_type="application/json",
        headers={"Prefer": "respond-async"},
    )
    assert answer.status_code == 202, answer.content
    path = answer["Location"]
    eventually(lambda: any("convert" in process.args for process in started))
    busy = convert(files, "a.qcow2", format="qcow2")
    assert busy.status_code == 409
    assert files.client.delete(path).status_code == 202
    eventually(lambda: files.client.get(path).json()["state"] == "cancelled")
    assert all(process.poll() is not None for process in started)
    assert [p.name for p in files.folder.iterdir() if p.name[0] != "."] == ["a.qcow2"]
    assert [p for p in files.folder.iterdir() if p.name.endswith(".part")] == []


def test_a_restart_reports_a_conversion_that_was_killed(
    tmp_path: Path,
) -> None:
    with serving(tmp_path / "root", "files") as node:
        subprocess.run(
            ["qemu-img", "create", "-q", "-f", "qcow2", "a.qcow2", "64M"],
            cwd=node.folder,
            check=True,
        )
        subprocess.run(
            ["qemu-io", "-f", "qcow2", "-c", "write -P 3 0 48M", "a.qcow2"],
            cwd=node.folder,
            check=True,
            capture_output=True,
        )
        answer = requests.post(
            f"{node.base_url}/images/convert",
            json={"source": "a.qcow2", "name": "new_tpl_1.img"},
            headers={
                "Authorization": f"Bearer {node.token}",
                "Prefer": "respond-async",
            },
            timeout=20,
        )
        assert answer.status_code == 202, answer.text
        job = answer.headers["Location"]
        node.kill()
    with serving(tmp_path / "root", "files") as node:
        told = requests.get(
            f"{node.base_url}{job}",
            headers={"Authorization": f"Bearer {node.token}"},
            timeout=20,
        ).json()
        names = sorted(p.name for p in node.folder.iterdir() if p.name[0] != ".")
        if told["state"] == "done":
            assert names == ["a.qcow2", "new_tpl_1.img"]
        else:
            assert told["state"] == "failed"
            assert names == ["a.qcow2"]
        assert [p for p in node.folder.iterdir() if p.name.endswith(".part")] == []
