"""A disk made larger: refused while somebody is logged in, seen by the next login, undone when it cannot be exported."""

from __future__ import annotations

import subprocess

import pytest

from agents.node.backends.base import Export
from ipxeready.errors import UpstreamFailed
from tests.agents.node import node_lab
from tests.agents.node.node_lab import BASE, SIZE, Lab

DISK = "worker-01.windows"
IQN = f"{BASE}:{DISK}"


def test_a_larger_disk_is_what_the_next_login_sees(lab: Lab) -> None:
    lab.disk(DISK, size=SIZE)
    grown = lab.post("/lun/grow", iqn=IQN, size="4M")
    assert grown.status_code == 200, grown.content
    assert grown.json() == {
        "iqn": IQN,
        "backing": str(lab.folder / f"{DISK}.img"),
        "size": 4 << 20,
        "was": SIZE,
    }
    image = (lab.folder / f"{DISK}.img").stat()
    assert image.st_size == 4 << 20
    assert image.st_blocks * 512 < SIZE
    assert lab.targets() == {DISK: f"{DISK}.img"}
    (target,) = lab.client.get("/lun").json()
    assert target["luns"][0]["size"] == 4 << 20
    if lab.tgtd:
        told = subprocess.run(
            [
                "iscsi-readcapacity16",
                "-i",
                f"{BASE}:worker-01",
                f"iscsi://127.0.0.1:{lab.tgtd.port}/{IQN}/1",
            ],
            capture_output=True,
            text=True,
            timeout=20,
        )
        assert f"Total size:{4 << 20}\n" in told.stdout, told


def test_growing_keeps_who_may_log_in(lab: Lab) -> None:
    chap = {"username": "worker-01", "secret": "a1b2c3d4e5f6g7h8"}
    lab.disk(DISK, size=SIZE, access="chap", chap=chap)
    assert lab.post("/lun/grow", iqn=IQN, size="4M").status_code == 200
    (target,) = lab.client.get("/lun").json()
    assert (target["access"], target["initiators"]) == ("chap", [f"{BASE}:worker-01"])


@pytest.mark.tgtd
def test_a_disk_in_use_is_left_as_it_is(stgt: Lab) -> None:
    assert stgt.tgtd
    stgt.disk(DISK, size=SIZE)
    with node_lab.session(stgt.tgtd, IQN, initiator=f"{BASE}:worker-01"):
        listing, files = stgt.tgtd.listing(), stgt.files()
        refused = stgt.post("/lun/grow", iqn=IQN, size="4M")
        assert refused.status_code == 409
        assert f"{BASE}:worker-01 from 127.0.0.1" in refused.json()["detail"]
        assert stgt.tgtd.listing() == listing
        assert stgt.files() == files


@pytest.mark.parametrize(
    ("size", "words"),
    [("1M", "only made larger"), ("512K", "only made larger")],
)
def test_a_disk_is_never_cut(files: Lab, size: str, words: str) -> None:
    files.disk(DISK, size=SIZE)
    refused = files.post("/lun/grow", iqn=IQN, size=size)
    assert refused.status_code == 409
    assert words in refused.json()["detail"]
    assert (files.folder / f"{DISK}.img").stat().st_size == SIZE


@pytest.mark.parametrize(
    "body",
    [
        {"iqn": IQN},
        {"size": "4M"},
        {"iqn": IQN, "size": 5 << 19 | 1},
        {"iqn": IQN, "size": "0"},
        {"iqn": IQN, "size": [1]},
        {"iqn": IQN, "size": True},
        {"iqn": "iqn.2020-01.org.other:x", "size": "4M"},
        {"iqn": IQN, "size": "4M", "force": True},
    ],
)
def test_a_malformed_wish_is_refused(files: Lab, body: dict[str, object]) -> None:
    files.disk(DISK, size=SIZE)
    assert files.post("/lun/grow", **body).status_code == 400
    assert (files.folder / f"{DISK}.img").stat().st_size == SIZE


def test_no_such_target_is_404(files: Lab) -> None:
    assert files.post("/lun/grow", iqn=IQN, size="4M").status_code == 404


@pytest.mark.tgtd
def test_a_cd_does_not_grow(stgt: Lab) -> None:
    stgt.image("win.iso", 4096)
    stgt.post("/lun/cd", iso="win.iso")
    refused = stgt.post("/lun/grow", iqn=f"{BASE}:win.iso", size="4M")
    assert refused.status_code == 400
    assert "is a CD" in refused.json()["detail"]


def test_what_cannot_be_exported_again_is_as_it_was(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.disk(DISK, size=SIZE)
    real, failed = lab.node.backend.export, []

    def once(export: Export) -> None:
        if not failed:
            failed.append(export)
            raise UpstreamFailed("no")
        real(export)

    monkeypatch.setattr(lab.node.backend, "export", once)
    assert lab.post("/lun/grow", iqn=IQN, size="4M").status_code == 502
    assert (lab.folder / f"{DISK}.img").stat().st_size == SIZE
    assert lab.targets() == {DISK: f"{DISK}.img"}
