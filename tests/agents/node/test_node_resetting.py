"""A disk back to its master: never under a running machine, and never without one whole image, whatever happens."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agents.node import resetting, swapping
from agents.node.backends.base import Export
from agents.node.images import Images
from ipxeready.errors import Conflict, UpstreamFailed
from tests.agents.node import node_lab
from tests.agents.node.node_lab import BASE, SIZE, Lab

DISK = "worker-01.windows"
IMAGE = f"{DISK}.img"
IQN = f"{BASE}:{DISK}"
MASTER = "win_tpl_v1.img"
FRESH = b"as the master has it"


@pytest.fixture
def worn(lab: Lab) -> Lab:
    """A node with a disk that its machine has written to."""
    return _worn(lab)


def _worn(lab: Lab) -> Lab:
    lab.image(MASTER, SIZE, FRESH)
    assert lab.disk(DISK, master=MASTER).status_code == 201
    (lab.folder / IMAGE).write_bytes(b"worn".ljust(SIZE, b"\1"))
    return lab


def _content(lab: Lab) -> bytes:
    return (lab.folder / IMAGE).read_bytes()[: len(FRESH)]


def _beside(lab: Lab) -> list[str]:
    return sorted(p.name for p in lab.folder.glob(".reset*"))


def _reset(lab: Lab, **body: object) -> object:
    return lab.post("/lun/reset", **{"iqn": IQN, "master": MASTER, **body})


def test_a_reset_disk_is_its_master_again(worn: Lab) -> None:
    before = (worn.folder / IMAGE).stat().st_ino
    answer = _reset(worn)
    assert answer.status_code == 200, answer.content  # type: ignore[attr-defined]
    body = answer.json()  # type: ignore[attr-defined]
    assert (body["iqn"], body["backing"]) == (IQN, str(worn.folder / IMAGE))
    assert body["how"]
    entry = worn.client.get("/logs").json()["entries"][-1]
    assert [entry[key] for key in ("master", "how", "bytes", "seconds")] == [
        MASTER,
        *(body[key] for key in ("how", "bytes", "seconds")),
    ]
    assert _content(worn) == FRESH
    assert (worn.folder / IMAGE).stat().st_ino != before
    assert worn.targets() == {DISK: IMAGE}
    assert _beside(worn) == []


@pytest.mark.tgtd
def test_the_next_login_reads_the_fresh_content(stgt: Lab, tmp_path: Path) -> None:
    worn = _worn(stgt)
    assert worn.tgtd
    worn.post("/lun/access", iqn=IQN, access="off")
    _reset(worn)
    assert node_lab.read_lun(worn.tgtd, IQN, tmp_path / "read").returncode == 0
    assert (tmp_path / "read").read_bytes()[: len(FRESH)] == FRESH


@pytest.mark.tgtd
def test_a_disk_in_use_is_left_as_it_is(stgt: Lab) -> None:
    worn = _worn(stgt)
    assert worn.tgtd
    with node_lab.session(worn.tgtd, IQN, initiator=f"{BASE}:worker-01"):
        listing = worn.tgtd.listing()
        refused = _reset(worn)
        assert refused.status_code == 409  # type: ignore[attr-defined]
        assert f"{BASE}:worker-01 from" in refused.json()["detail"]  # type: ignore[attr-defined]
        assert worn.tgtd.listing() == listing
    assert _content(worn).startswith(b"worn")
    assert _beside(worn) == []


@pytest.mark.tgtd
def test_a_machine_that_starts_during_the_copy_keeps_its_disk(
    stgt: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    worn = _worn(stgt)
    assert worn.tgtd
    real = worn.node.images.clone
    opened = []

    def slow(*args: object, **kwargs: object) -> object:
        made = real(*args, **kwargs)  # type: ignore[arg-type]
        context = node_lab.session(worn.tgtd, IQN, initiator=f"{BASE}:worker-01")  # type: ignore[arg-type]
        context.__enter__()
        opened.append(context)
        return made

    monkeypatch.setattr(worn.node.images, "clone", slow)
    try:
        assert _reset(worn).status_code == 409  # type: ignore[attr-defined]
        assert worn.targets() == {DISK: IMAGE}
        assert _content(worn).startswith(b"worn")
        assert _beside(worn) == []
    finally:
        opened[0].__exit__(None, None, None)


def test_a_master_that_is_exported_resets_nothing(worn: Lab) -> None:
    path = worn.node.images.path(MASTER)
    worn.node.backend.export(Export(f"{BASE}:by-hand", path))
    answer = _reset(worn)
    assert answer.status_code == 409  # type: ignore[attr-defined]
    assert "by-hand" in answer.json()["detail"]  # type: ignore[attr-defined]
    assert _content(worn) != FRESH


def test_another_size_of_the_master_is_the_disks_new_size(worn: Lab) -> None:
    worn.image("large_tpl_v2.img", 2 * SIZE, FRESH)
    assert _reset(worn, master="large_tpl_v2.img").status_code == 200  # type: ignore[attr-defined]
    (target,) = worn.client.get("/lun").json()
    assert target["luns"][0]["size"] == 2 * SIZE


def test_a_clone_that_cannot_be_exported_gives_the_old_disk_back(
    worn: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, failed = worn.node.backend.export, []

    def once(export: Export) -> None:
        if not failed:
            failed.append(export)
            raise UpstreamFailed("no")
        real(export)

    monkeypatch.setattr(worn.node.backend, "export", once)
    assert _reset(worn).status_code == 502  # type: ignore[attr-defined]
    assert _content(worn).startswith(b"worn")
    assert worn.targets() == {DISK: IMAGE}
    assert _beside(worn) == []


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"master": "nothing_tpl_.img"}, 404),
        ({"master": "no-master.img"}, 400),
        ({"master": ""}, 400),
        ({"iqn": f"{BASE}:worker-09.windows"}, 404),
        ({"iqn": "iqn.2020-01.org.other:x"}, 400),
        ({"force": True}, 400),
    ],
)
def test_a_wrong_wish_changes_nothing(
    worn: Lab, body: dict[str, object], status: int
) -> None:
    assert _reset(worn, **body).status_code == status  # type: ignore[attr-defined]
    assert _content(worn).startswith(b"worn")
    assert worn.targets() == {DISK: IMAGE}


class Killed(BaseException):
    """Stands for a kill: nothing that the product catches."""


@pytest.mark.parametrize("step", range(8))
def test_a_kill_at_any_step_of_the_swap_leaves_one_whole_disk(
    make_lab: Callable[..., Lab], monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    """The steps are the changes of the directory; after a restart the disk is the old or the fresh one, exported."""
    lab = _worn(make_lab())
    calls = []

    def dying(real: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **kwargs: object) -> object:
            if len(calls) >= step:
                raise Killed
            calls.append(args)
            return real(*args, **kwargs)

        return call

    with monkeypatch.context() as patch:
        patch.setattr(swapping.os, "link", dying(os.link))
        patch.setattr(swapping.os, "unlink", dying(os.unlink))
        with contextlib.suppress(Killed):
            resetting.disk_reset(lab.node, IQN, MASTER)
    lab.restart()
    assert lab.targets() == {DISK: IMAGE}
    assert _content(lab) in (FRESH, b"worn".ljust(len(FRESH), b"\1"))
    assert _beside(lab) == []
    assert (lab.folder / IMAGE).stat().st_nlink == 1


def test_the_old_image_stays_until_the_clone_is_exported(
    make_lab: Callable[..., Lab],
) -> None:
    lab = _worn(make_lab())
    swap = swapping.Swap(Images(lab.folder), IMAGE)
    (lab.folder / swap.new).write_bytes(FRESH + b"odd")  # no image: an odd size
    swap.turn()
    lab.restart()
    assert lab.targets() == {}
    assert _beside(lab) == [swap.old]
    assert (lab.folder / swap.old).read_bytes().startswith(b"worn")


def test_what_an_earlier_reset_left_never_takes_the_place_of_the_disk(
    worn: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = worn.folder / f".reset-old.{IMAGE}.kept"
    left.write_bytes(b"ancient".ljust(SIZE, b"\2"))
    with monkeypatch.context() as patch:

        def failing(name: str, *words: object, **where: object) -> None:
            if name == left.name:
                raise OSError(5, "Input/output error")
            unlink(name, *words, **where)

        unlink = os.unlink
        patch.setattr(swapping.os, "unlink", failing)
        refused = _reset(worn)
    assert refused.status_code == 503  # type: ignore[attr-defined]
    assert _content(worn).startswith(b"worn")
    assert worn.targets() == {DISK: IMAGE}
    assert _reset(worn).status_code == 200  # type: ignore[attr-defined]
    assert _content(worn) == FRESH
    assert _beside(worn) == []


def test_a_turn_that_fails_at_its_first_step_undoes_nothing(
    make_lab: Callable[..., Lab],
) -> None:
    lab = _worn(make_lab())
    swap = swapping.Swap(Images(lab.folder), IMAGE)
    (lab.folder / swap.old).write_bytes(b"ancient")
    (lab.folder / swap.new).write_bytes(FRESH)
    with pytest.raises(Conflict):
        swap.turn()
    swap.turn_back()
    assert _content(lab).startswith(b"worn")
    assert (lab.folder / swap.old).read_bytes() == b"ancient"


def test_a_clone_that_somebody_removes_before_the_swap_costs_nobody_his_disk(
    worn: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = worn.node.images.clone

    def gone(master: str, name: str, **options: object) -> object:
        made = real(master, name, **options)  # type: ignore[arg-type]
        (worn.folder / name).unlink()
        return made

    monkeypatch.setattr(worn.node.images, "clone", gone)
    assert _reset(worn).status_code == 409  # type: ignore[attr-defined]
    assert _content(worn).startswith(b"worn")
    assert worn.targets() == {DISK: IMAGE}
    assert _beside(worn) == []


def test_a_disk_is_reset_although_its_old_image_cannot_be_removed(
    worn: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, unlink = f".reset-old.{IMAGE}.kept", os.unlink

    def failing(name: str, *words: object, **where: object) -> None:
        # The name that a link has just given it still goes, at the end only it stays.
        if name == old and (worn.folder / IMAGE).exists() and _content(worn) == FRESH:
            raise OSError(5, "Input/output error")
        unlink(name, *words, **where)

    with monkeypatch.context() as patch:
        patch.setattr(swapping.os, "unlink", failing)
        assert _reset(worn).status_code == 200  # type: ignore[attr-defined]
    assert _content(worn) == FRESH
    assert _beside(worn) == [old]
    worn.restart()
    assert _content(worn) == FRESH
    assert _beside(worn) == []


@pytest.mark.parametrize("way", ["target", "rest", "image"])
def test_a_deleted_disk_does_not_come_back_from_what_a_reset_left(
    files: Lab, way: str
) -> None:
    worn = _worn(files)
    (worn.folder / f".reset-old.{IMAGE}.kept").write_bytes(b"ancient".ljust(SIZE))
    if way == "target":
        worn.delete(DISK, delete_file="true")
    else:
        worn.delete(DISK)
        if way == "rest":
            worn.delete(DISK, delete_file="true")
        else:
            assert worn.client.delete(f"/images?name={IMAGE}").status_code == 200
    worn.restart()
    assert worn.targets() == {}
    assert not (worn.folder / IMAGE).exists()
    assert _beside(worn) == []
