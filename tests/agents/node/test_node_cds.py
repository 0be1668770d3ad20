"""Install CDs: read-only on tgtd, back after a restart, refused where there is no CD drive."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from tests.agents.node import node_lab
from tests.agents.node.node_lab import BASE, SIZE, Lab

pytestmark = pytest.mark.tgtd
ISO = "Win11_24H2 English.iso"
CD = f"{BASE}:worker-01.windows.iso"


@pytest.mark.case(78)
def test_the_files_backend_has_no_cd(files: Lab) -> None:
    files.image(ISO)
    answer = files.post("/lun/cd", iso=ISO, iqn=CD)
    assert answer.status_code == 400
    assert "files" in answer.json()["detail"]
    assert files.client.get("/capabilities").json()["cd"] is False


@pytest.mark.case(78)
def test_a_cd_is_a_read_only_cd(stgt: Lab, tmp_path: Path) -> None:
    assert stgt.tgtd
    iso = stgt.image(ISO, content=os.urandom(SIZE))
    assert stgt.client.get("/capabilities").json()["cd"] is True
    answer = stgt.post("/lun/cd", iso=ISO, iqn=CD)
    assert answer.status_code == 201
    assert answer.json() == {"iqn": CD, "backing": str(iso)}
    assert stgt.client.get("/lun").json()[0]["luns"] == [
        {"lun": 1, "backing": str(iso), "size": SIZE, "type": "cd"}
    ]
    read = node_lab.read_lun(stgt.tgtd, CD, tmp_path / "read")
    assert read.returncode == 0
    assert (tmp_path / "read").read_bytes() == iso.read_bytes()
    before = iso.read_bytes()
    assert node_lab.write_lun(stgt.tgtd, CD).returncode != 0
    assert iso.read_bytes() == before


def test_one_iso_serves_many_machines(stgt: Lab) -> None:
    stgt.image(ISO)
    for number in range(3):
        iqn = f"{BASE}:worker-{number}.windows.iso"
        assert stgt.post("/lun/cd", iso=ISO, iqn=iqn).status_code == 201
    assert set(stgt.targets().values()) == {ISO}
    assert stgt.post("/lun/cd", iso=ISO, iqn=CD.replace("01", "1")).status_code == 409


def test_without_an_iqn_the_isos_own_name_is_taken(stgt: Lab) -> None:
    stgt.image("Debian-12.iso")
    assert (
        stgt.post("/lun/cd", iso="Debian-12.iso").json()["iqn"]
        == f"{BASE}:debian-12.iso"
    )
    stgt.image(ISO)
    answer = stgt.post("/lun/cd", iso=ISO)
    assert answer.status_code == 400
    assert "iso" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("iso", "status"),
    [
        ("none.iso", 404),
        ("../x.iso", 400),
        ("/etc/x.iso", 400),
        ("a,b.iso", 400),
        ("x.img", 400),
        (".iso", 400),
        ("", 400),
        ("a\0.iso", 400),
    ],
)
def test_isos_that_are_not_there_or_no_names(stgt: Lab, iso: str, status: int) -> None:
    answer = stgt.post("/lun/cd", iso=iso, iqn=CD)
    assert answer.status_code == status
    assert stgt.targets() == {}
    assert not (stgt.folder / ".targets.json").exists()


def test_symlinks_are_no_isos(stgt: Lab, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"s" * SIZE)
    (stgt.folder / "x.iso").symlink_to(tmp_path / "secret")
    assert stgt.post("/lun/cd", iso="x.iso", iqn=CD).status_code == 409
    assert "symlink" in stgt.skipped()["x.iso"]


def test_a_scan_exports_isos_under_their_whole_name(stgt: Lab) -> None:
    stgt.image("debian-12.iso")
    stgt.image("worker-01.debian.img")
    created = stgt.scan()["created"]
    assert {(c["iqn"].removeprefix(f"{BASE}:"), c["cd"]) for c in created} == {
        ("debian-12.iso", True),
        ("worker-01.debian", False),
    }
    stgt.delete("debian-12.iso")
    assert "on purpose" in stgt.skipped()["debian-12.iso"]


def test_cds_come_back_with_their_iso_after_tgtd_started_again(stgt: Lab) -> None:
    assert stgt.tgtd
    stgt.image(ISO)
    stgt.image("second.iso")
    stgt.post("/lun/cd", iso=ISO, iqn=CD)
    gone = CD.replace("01", "02")
    stgt.post("/lun/cd", iso=ISO, iqn=gone)
    assert stgt.delete("worker-02.windows.iso").status_code == 200
    memory = json.loads((stgt.folder / ".targets.json").read_text())
    assert memory["cds"] == {CD: ISO}
    for target in stgt.client.get("/lun").json():
        stgt.tgtd.adm("--op", "delete", "--mode", "target", "--tid", str(target["tid"]))
    stgt.restart()
    assert stgt.targets() == {"worker-01.windows.iso": ISO, "second.iso": "second.iso"}


def test_a_cd_whose_iso_is_gone_is_reported_and_stops_nothing(stgt: Lab) -> None:
    assert stgt.tgtd
    stgt.image(ISO)
    stgt.image("worker-01.windows.img")
    stgt.post("/lun/cd", iso=ISO, iqn=CD)
    stgt.tgtd.adm("--op", "delete", "--mode", "target", "--tid", "1")
    (stgt.folder / ISO).unlink()
    assert "does not come back" in stgt.skipped()[CD]
    assert stgt.targets() == {"worker-01.windows": "worker-01.windows.img"}


def test_an_iso_is_never_deleted_with_its_target(stgt: Lab) -> None:
    stgt.image(ISO)
    stgt.post("/lun/cd", iso=ISO, iqn=CD)
    answer = stgt.delete("worker-01.windows.iso", delete_file="true")
    assert answer.status_code == 400
    assert "delete_file" in answer.json()["detail"]
    assert stgt.delete("worker-01.windows.iso").status_code == 200
    assert (stgt.folder / ISO).exists()
    assert stgt.delete("worker-01.windows.iso").status_code == 404


def test_a_deletion_that_was_killed_before_it_began_does_not_come_true_later(
    stgt: Lab,
) -> None:
    assert stgt.tgtd
    stgt.image(ISO)
    assert stgt.post("/lun/cd", iso=ISO, iqn=CD).status_code == 201
    stgt.node.memory.set(CD, cd=False)  # as far as the killed agent came
    stgt.restart()
    assert stgt.remembered()["cds"] == {CD: ISO}
    stgt.tgtd.kill()
    stgt.tgtd.again()
    stgt.restart()
    assert stgt.targets() == {"worker-01.windows.iso": ISO}
