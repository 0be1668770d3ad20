"""`image`: files of a node from the shell."""

from __future__ import annotations

import hashlib
import io
import os
import subprocess
from pathlib import Path

import pytest

from agents import intake
from ipxeready.actors import SYSTEM
from ipxeready.errors import Unavailable
from ipxeready.storage.paths import Layout
from tests.agents.helpers import trail
from tests.nodes import MIB, RealNode
from tests.shell import run


@pytest.fixture
def source(layout: Layout, node: RealNode, tmp_path: Path) -> Path:
    """A file of a few pieces, and the node registered."""
    node.register("n1")
    path = tmp_path / f"{node.name()}.iso"
    path.write_bytes(os.urandom(9 * MIB) + bytes(3 * MIB))
    return path


def test_a_file_is_uploaded_verified_listed_and_deleted(
    source: Path, node: RealNode
) -> None:
    ended = run("image", "upload", "n1", str(source), "--json")
    assert ended.code == 0, ended.err
    assert ended.json["sha256"] == hashlib.sha256(source.read_bytes()).hexdigest()
    there = node.folder / source.name
    assert there.read_bytes() == source.read_bytes()
    listed = run("image", "list", "n1")
    (line,) = (row for row in listed.out.splitlines() if source.name in row)
    assert line.split()[1:4] == ["iso", "12", "MiB"]
    assert source.name in str(run("image", "list", "n1", "--json").json["images"])
    assert run("image", "delete", "n1", source.name).code == 2  # nobody to ask
    master = node.image(f"{node.name()}_tpl_1.img")
    kept = run("image", "delete", "n1", master.name, "--yes")
    assert (kept.code, "--master" in kept.err) == (1, True)
    assert run("image", "delete", "n1", master.name, "--master", "--yes").code == 0
    gone = run("image", "delete", "n1", source.name, "gone.iso", "--yes")
    assert gone.code == 3
    assert "gone.iso" in gone.err
    assert not there.exists()
    assert trail("image.upload")[-1]["user"].startswith("shell:")


def test_the_same_command_goes_on_where_it_stopped(
    source: Path, node: RealNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, count = intake.upload_write, 0

    def cut(**kwargs: object) -> object:
        nonlocal count
        count += 1
        if count == 2:
            raise KeyboardInterrupt
        return real(**kwargs)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(intake, "upload_write", cut)
        assert run("image", "upload", "n1", str(source)).code == 130
    (left,) = (
        each
        for each in intake.upload_list(actor=SYSTEM, agent_id="n1")
        if each["name"] == source.name
    )
    assert left["offset"] == 8 * MIB
    ended = run("image", "upload", "n1", str(source))
    assert ended.code == 0, ended.err
    assert "going on at 8 MiB" in ended.err
    assert (node.folder / source.name).read_bytes() == source.read_bytes()


def test_a_piece_that_fails_is_sent_again(
    source: Path, node: RealNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, count = intake.upload_write, 0

    def lost(**kwargs: object) -> object:
        nonlocal count
        count += 1
        done = real(**kwargs)  # type: ignore[arg-type]
        if count == 1:
            raise Unavailable("the answer was lost")
        return done

    monkeypatch.setattr(intake, "upload_write", lost)
    ended = run("image", "upload", "n1", str(source))
    assert ended.code == 0, ended.err
    assert (node.folder / source.name).read_bytes() == source.read_bytes()


def test_a_wrong_checksum_gives_no_file(source: Path, node: RealNode) -> None:
    ended = run("image", "upload", "n1", str(source), "--sha256", "0" * 64)
    assert ended.code == 1
    assert "not the expected" in ended.err
    assert not (node.folder / source.name).exists()


def test_the_rest_of_another_file_is_never_added(source: Path, node: RealNode) -> None:
    """Same name and size: the beginning of one that stopped is given up, and the file is sent whole."""
    begun = intake.upload_create(
        actor=SYSTEM, agent_id="n1", name=source.name, size=12 * MIB
    )
    other = io.BytesIO(os.urandom(4 * MIB))
    intake.upload_write(
        actor=SYSTEM,
        agent_id="n1",
        upload_id=begun["id"],
        offset=0,
        length=4 * MIB,
        read=other.read,
    )
    ended = run("image", "upload", "n1", str(source))
    assert ended.code == 0, ended.err
    assert "going on at 4 MiB" in ended.err
    assert "from its start" in ended.err
    assert (node.folder / source.name).read_bytes() == source.read_bytes()
    left = intake.upload_list(actor=SYSTEM, agent_id="n1")
    assert source.name not in [each["name"] for each in left]


def test_an_image_is_converted(source: Path, node: RealNode) -> None:
    stem = node.name()
    subprocess.run(
        ["qemu-img", "create", "-q", "-f", "qcow2", f"{stem}.qcow2", "2M"],
        cwd=node.folder,
        check=True,
    )
    ended = run("image", "convert", "n1", f"{stem}.qcow2", f"{stem}_tpl_1.img")
    assert ended.code == 0, ended.err
    assert (node.folder / f"{stem}_tpl_1.img").stat().st_size == 2 * MIB
    master = run("image", "delete", "n1", f"{stem}_tpl_1.img", "--yes")
    assert (master.code, "master" in master.err) == (1, True)
    assert (
        run("image", "delete", "n1", f"{stem}_tpl_1.img", "--master", "--yes").code == 0
    )


def test_what_is_no_file_is_a_wrong_call(source: Path) -> None:
    ended = run("image", "upload", "n1", str(source.parent))
    assert (ended.code, "is not a file" in ended.err) == (2, True)
    ended = run("image", "upload", "n1", f"{source}.gone")
    assert (ended.code, "does not exist" in ended.err) == (2, True)
    assert run("image", "upload", "n1", str(source), "--name", "x.exe").code == 1


def test_a_conversion_is_followed_over_the_nodes_job(
    source: Path, node: RealNode
) -> None:
    stem = node.name()
    subprocess.run(
        ["qemu-img", "create", "-q", "-f", "qcow2", f"{stem}.qcow2", "2M"],
        cwd=node.folder,
        check=True,
    )
    run("image", "convert", "n1", f"{stem}.qcow2", f"{stem}_tpl_1.img")
    (job,) = (
        each
        for each in run("jobs", "list", "--json").json
        if each["kind"] == "image.convert"
    )
    assert job["state"] == "done"
