"""Who may log in: off, ACL and CHAP, over a real tgtd and real initiators; what is remembered, and what is never told."""

from __future__ import annotations

import json
import os
import stat
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agents.node import creating
from agents.node.backends import tgtadm
from agents.protocol.access import Access, Chap
from agents.protocol.requests import DiskRequest
from ipxeready.errors import Unavailable, UpstreamFailed
from tests.agents.node import node_lab
from tests.agents.node.node_lab import BASE, SIZE, Lab, Tgtd

tgtd_only = pytest.mark.tgtd
ONE = f"{BASE}:worker-01"
TWO = f"{BASE}:worker-02"
DISK = f"{ONE}.debian"
SECRET = {"username": "worker-01", "secret": "Abcdefghijkl0123"}
OTHER = {"username": "worker-01", "secret": "Zyxwvutsrqpo9876"}


def _set(lab: Lab, access: str, name: str = "worker-01.debian", **more: Any) -> Any:
    return lab.post("/lun/access", iqn=f"{BASE}:{name}", access=access, **more)


def _listed(lab: Lab, name: str = "worker-01.debian") -> Any:
    found = lab.client.get("/lun").json()
    return next(t for t in found if t["iqn"] == f"{BASE}:{name}")


def _may(lab: Lab, initiator: str, chap: dict[str, str] | None = None) -> bool:
    assert lab.tgtd
    return node_lab.may_log_in(lab.tgtd, DISK, initiator, chap)


def _daemon(lab: Lab) -> Tgtd:
    assert lab.tgtd
    return lab.tgtd


# -- the modes, as initiators meet them ------------------------------------


@tgtd_only
def test_a_new_node_lets_only_the_machine_itself_log_in(stgt: Lab) -> None:
    assert stgt.disk("worker-01.debian", size=SIZE).status_code == 201
    assert (_listed(stgt)["access"], _listed(stgt)["initiators"]) == ("acl", [ONE])
    assert _may(stgt, ONE)
    assert not _may(stgt, TWO)


@tgtd_only
def test_a_node_that_was_there_keeps_letting_everybody_in(
    stgt: Lab, tmp_path: Path
) -> None:
    stgt.image("worker-09.debian.img")
    stgt.restart()
    assert stgt.disk("worker-01.debian", size=SIZE).status_code == 201
    assert _listed(stgt)["access"] == "off"
    assert _may(stgt, ONE)
    assert _may(stgt, TWO)
    assert stgt.remembered()["default_access"] == "off"


@tgtd_only
def test_chap_wants_the_name_and_the_secret_beside_the_initiator(stgt: Lab) -> None:
    answer = stgt.disk("worker-01.debian", size=SIZE, access="chap", chap=SECRET)
    assert answer.status_code == 201, answer.content
    assert (_listed(stgt)["access"], _listed(stgt)["initiators"]) == ("chap", [ONE])
    assert _may(stgt, ONE, SECRET)
    assert not _may(stgt, ONE)
    assert not _may(stgt, ONE, OTHER)
    assert not _may(stgt, TWO, SECRET)


@tgtd_only
@pytest.mark.parametrize("first", ["off", "acl", "chap"])
@pytest.mark.parametrize("then", ["off", "acl", "chap"])
def test_every_mode_becomes_every_other(stgt: Lab, first: str, then: str) -> None:
    more = {"off": {}, "acl": {}, "chap": {"chap": SECRET}}
    stgt.disk("worker-01.debian", size=SIZE, access=first, **more[first])
    answer = _set(stgt, then, **more[then])
    assert answer.status_code == 200, answer.content
    assert answer.json()["access"] == then
    assert (
        _may(stgt, ONE),
        _may(stgt, ONE, SECRET),
        _may(stgt, TWO),
        _may(stgt, TWO, SECRET),
    ) == {
        "off": (True, True, True, True),
        "acl": (True, True, False, False),
        "chap": (False, True, False, False),
    }[then]


@tgtd_only
def test_nobody_is_let_in_on_the_way_from_one_mode_to_another(stgt: Lab) -> None:
    stgt.disk("worker-01.debian", size=SIZE, access="chap", chap=SECRET)
    real = stgt.node.backend._tgtadm.run  # type: ignore[attr-defined]
    seen: list[tuple[bool, bool, bool]] = []

    def step(*words: str) -> str:
        done = str(real(*words))
        if words[0] != "show":
            seen.append((_may(stgt, TWO), _may(stgt, TWO, OTHER), _may(stgt, ONE)))
        return done

    stgt.node.backend._tgtadm.run = step  # type: ignore[attr-defined]
    assert _set(stgt, "chap", chap=OTHER).status_code == 200
    assert len(seen) >= 5
    assert set(seen) == {(False, False, False)}
    seen.clear()
    assert _set(stgt, "acl").status_code == 200
    assert {(two, other) for two, other, _ in seen} == {(False, False)}


@tgtd_only
def test_changing_access_never_cuts_a_session(stgt: Lab) -> None:
    stgt.disk("worker-01.debian", size=SIZE)
    with node_lab.session(_daemon(stgt), DISK) as held:
        number = _listed(stgt)["sessions"][0]["id"]
        for mode, more in (
            ("off", {}),
            ("chap", {"chap": SECRET}),
            ("chap", {"chap": OTHER}),
            ("acl", {}),
            ("off", {}),
        ):
            assert _set(stgt, mode, force=True, **more).status_code == 200
            assert [s["id"] for s in _listed(stgt)["sessions"]] == [number]
        assert held.running
        held.reads()


# -- CHAP accounts of tgtd --------------------------------------------------


@tgtd_only
def test_a_new_secret_counts_for_all_targets_of_the_initiator(stgt: Lab) -> None:
    stgt.disk("worker-01.debian", size=SIZE, access="chap", chap=SECRET)
    stgt.disk("worker-01.windows", size=SIZE, access="chap", chap=SECRET)
    stgt.disk("worker-01.ubuntu", size=SIZE)
    assert _set(stgt, "chap", "worker-01.windows", chap=OTHER).status_code == 200
    for name in ("worker-01.debian", "worker-01.windows"):
        iqn = f"{BASE}:{name}"
        assert node_lab.may_log_in(_daemon(stgt), iqn, ONE, OTHER)
        assert not node_lab.may_log_in(_daemon(stgt), iqn, ONE, SECRET)
    assert _listed(stgt, "worker-01.ubuntu")["access"] == "acl"
    assert node_lab.accounts(_daemon(stgt)) == ["worker-01"]


@tgtd_only
def test_an_account_goes_with_its_last_target_and_others_stay(stgt: Lab) -> None:
    daemon = _daemon(stgt)
    new = ("--op", "new", "--mode", "account", "--password", "somebodyelses")
    daemon.adm(*new, "--user", "somebody")
    daemon.adm("--op", "new", "--mode", "target", "--tid", "99", "-T", "iqn.2001-01.org.else:x")  # fmt: skip
    daemon.adm(*new, "--user", "worker-02")
    daemon.adm("--op", "bind", "--mode", "account", "--tid", "99", "--user", "worker-02")  # fmt: skip
    for name in ("worker-01.debian", "worker-01.windows"):
        assert stgt.disk(name, size=SIZE, access="chap", chap=SECRET).status_code == 201
    # The name of somebody else's account is refused, and nothing of it is left.
    theirs = {"username": "worker-02", "secret": SECRET["secret"]}
    answer = stgt.disk("worker-02.debian", size=SIZE, access="chap", chap=theirs)
    assert answer.status_code == 409
    assert "iqn.2001-01.org.else:x" in answer.json()["detail"]
    assert "worker-02.debian" not in stgt.targets()
    assert not (stgt.folder / "worker-02.debian.img").exists()
    stgt.delete("worker-01.debian", delete_file="true")
    assert node_lab.accounts(daemon) == ["somebody", "worker-01", "worker-02"]
    stgt.delete("worker-01.windows")
    assert node_lab.accounts(daemon) == ["somebody", "worker-02"]
    assert stgt.disk("worker-01.windows", existing=True).status_code == 201
    assert _listed(stgt, "worker-01.windows")["access"] == "chap"
    stgt.delete("worker-01.windows", force="true")
    assert node_lab.accounts(daemon) == ["somebody", "worker-02"]


@tgtd_only
def test_a_secret_that_another_process_gave_is_given_again(stgt: Lab) -> None:
    stgt.disk("worker-01.debian", size=SIZE, access="chap", chap=SECRET)
    stgt.disk("worker-01.windows", size=SIZE, access="chap", chap=SECRET)
    _daemon(stgt).adm("--op", "delete", "--mode", "account", "--user", "worker-01")
    _daemon(stgt).adm("--op", "new", "--mode", "account", "--user", "worker-01", "--password", "Wrongwrong123")  # fmt: skip
    stgt.restart()
    assert _may(stgt, ONE, SECRET)
    assert not _may(stgt, ONE)


# -- repair ------------------------------------------------------------------


@tgtd_only
@pytest.mark.parametrize(
    ("add", "remove"),
    [
        (("-I", "ALL"), ()),
        (("-I", "10.0.0.0/8"), ()),
        (("-Q", TWO), ("-Q", ONE)),
        ((), ("-Q", ONE)),
    ],
)
def test_wrong_rules_are_put_right_by_the_next_scan(
    stgt: Lab, add: tuple[str, ...], remove: tuple[str, ...]
) -> None:
    stgt.disk("worker-01.debian", size=SIZE)
    where = ("--mode", "target", "--tid", str(_listed(stgt)["tid"]))
    if add:
        _daemon(stgt).adm("--op", "bind", *where, *add)
    if remove:
        _daemon(stgt).adm("--op", "unbind", *where, *remove)
    assert _listed(stgt)["access"] == ("other" if (add, remove) else "")
    stgt.scan()
    assert (_listed(stgt)["access"], _listed(stgt)["initiators"]) == ("acl", [ONE])


@tgtd_only
def test_a_scan_leaves_a_target_alone_while_a_stranger_is_in_it(stgt: Lab) -> None:
    stgt.disk("worker-01.debian", size=SIZE)
    where = ("--mode", "target", "--tid", str(_listed(stgt)["tid"]))
    _daemon(stgt).adm("--op", "bind", *where, "-I", "ALL")
    with node_lab.session(_daemon(stgt), DISK, initiator=TWO):
        stgt.scan()
        assert _listed(stgt)["access"] == "other"
    with node_lab.session(_daemon(stgt), DISK):
        stgt.scan()
        assert _listed(stgt)["access"] == "acl"
        assert _listed(stgt)["sessions"]


@tgtd_only
def test_rules_of_somebodys_hand_stay_on_a_node_that_lets_everybody_in(
    stgt: Lab,
) -> None:
    stgt.image("worker-01.debian.img")
    stgt.restart()
    where = ("--mode", "target", "--tid", str(_listed(stgt)["tid"]))
    _daemon(stgt).adm("--op", "bind", *where, "-I", "127.0.0.1")
    _daemon(stgt).adm("--op", "unbind", *where, "-I", "ALL")
    stgt.scan()
    stgt.restart()
    assert _listed(stgt)["initiators"] == ["127.0.0.1"]
    assert _may(stgt, TWO)


# -- the call and its refusals ------------------------------------------------


@tgtd_only
def test_a_change_that_locks_a_connected_machine_out_is_refused_and_names_it(
    stgt: Lab,
) -> None:
    stgt.disk("worker-01.debian", size=SIZE, access="off")
    with node_lab.session(_daemon(stgt), DISK, initiator=TWO):
        answer = _set(stgt, "acl")
        assert answer.status_code == 409
        assert f"{TWO} from 127.0.0.1" in answer.json()["detail"]
        assert "force=true" in answer.json()["detail"]
        assert _listed(stgt)["access"] == "off"
        assert stgt.remembered()["access"] == {DISK: "off"}
        assert _set(stgt, "acl", force=True).status_code == 200
        assert len(_listed(stgt)["sessions"]) == 1
        assert _set(stgt, "acl").status_code == 200  # nothing changes any more
    with node_lab.session(_daemon(stgt), DISK):
        # A machine learns its secret at its boot: the running one could not come back.
        answer = _set(stgt, "chap", chap=SECRET)
        assert answer.status_code == 409
        assert f"{ONE} from" in answer.json()["detail"]
        assert not (stgt.folder / ".chap.json").exists()
        assert _set(stgt, "off").status_code == 200


def test_a_target_that_is_not_there_is_said(lab: Lab) -> None:
    assert _set(lab, "acl").status_code == 404
    assert lab.post("/lun/access", iqn="iqn.2001-01.org.else:x", access="acl").status_code == 400  # fmt: skip


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"access": "open"}, "off, acl, chap"),
        ({"access": "chap"}, "no secret for"),
        ({"access": "acl", "chap": SECRET}, "chap is given and access is acl"),
        ({"access": "chap", "chap": "x"}, "username and secret"),
        ({"access": "chap", "chap": {"username": "a"}}, "username and secret"),
        ({"access": "chap", "chap": {**SECRET, "secret": "Tooshort123"}}, "Windows"),
        ({"access": "chap", "chap": {**SECRET, "secret": "T" * 17}}, "Windows"),
        ({"access": "chap", "chap": {**SECRET, "secret": "Twelve,Twelve"}}, "letters"),
        ({"access": "chap", "chap": {**SECRET, "username": "a,b"}}, "'a,b'"),
        ({"access": "chap", "chap": {**SECRET, "username": "a" * 256}}, "255"),
        ({"access": "chap", "chap": {**SECRET, "more": "x"}}, "nothing else"),
        (
            {"access": "chap", "chap": {**SECRET, "secret": "NULLtwelve12"}},
            "chap.secret must not begin with NULL",
        ),
        (
            {"access": "chap", "chap": {**SECRET, "username": "NULL"}},
            "chap.username must not begin with NULL",
        ),
    ],
)
@pytest.mark.parametrize("path", ["/lun/access", "/lun/disk"])
def test_what_is_wrong_with_an_access_is_said_and_no_secret_is_repeated(
    files: Lab, path: str, body: dict[str, Any], words: str
) -> None:
    files.disk("worker-01.debian", size=SIZE)
    if path == "/lun/disk":
        answer = files.disk("worker-01.windows", size=SIZE, **body)
    else:
        answer = files.post(path, iqn=DISK, **body)
    assert answer.status_code == 400, answer.content
    assert words in str(answer.json()["detail"])
    given = body.get("chap")
    if isinstance(given, dict) and "secret" in given:
        assert given["secret"] not in answer.content.decode()
    assert "worker-01.windows" not in files.targets()
    assert _listed(files)["access"] == "acl"


def test_two_initiators_have_no_username_in_common(files: Lab) -> None:
    files.disk("worker-01.debian", size=SIZE, access="chap", chap=SECRET)
    answer = files.disk("worker-02.debian", size=SIZE, access="chap", chap=SECRET)
    assert answer.status_code == 409
    assert ONE in answer.json()["detail"]
    assert SECRET["secret"] not in answer.content.decode()
    assert not (files.folder / "worker-02.debian.img").exists()


# -- memory --------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["off", "acl", "chap"])
def test_access_outlives_a_restart_and_a_kept_image(lab: Lab, mode: str) -> None:
    more = {"chap": SECRET} if mode == "chap" else {}
    lab.disk("worker-01.debian", size=SIZE, access=mode, **more)
    if lab.tgtd:
        lab.tgtd.kill()
        lab.tgtd.again()
    lab.restart()
    assert _listed(lab)["access"] == mode
    lab.delete("worker-01.debian")
    assert lab.disk("worker-01.debian", existing=True).status_code == 201
    assert _listed(lab)["access"] == mode
    if mode == "chap" and lab.tgtd:
        assert _may(lab, ONE, SECRET)
        assert not _may(lab, ONE)


def test_a_deleted_image_is_forgotten_and_the_secret_with_the_last_target(
    lab: Lab,
) -> None:
    for name in ("worker-01.debian", "worker-01.windows"):
        lab.disk(name, size=SIZE, access="chap", chap=SECRET)
    lab.delete("worker-01.debian", delete_file="true")
    assert list(lab.remembered()["access"]) == [f"{ONE}.windows"]
    assert ONE in (lab.folder / ".chap.json").read_text()
    lab.delete("worker-01.windows")
    assert ONE in (lab.folder / ".chap.json").read_text()
    lab.delete("worker-01.windows", delete_file="true")
    assert lab.remembered()["access"] == {}
    assert json.loads((lab.folder / ".chap.json").read_text())["secrets"] == {}


@pytest.mark.parametrize("mode", ["acl", "chap"])
@pytest.mark.parametrize("kind", ["empty", "import"])
def test_a_kill_before_the_export_of_a_new_disk_opens_it_to_nobody_else(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, mode: str, kind: str
) -> None:
    """What the next start finds between the image's name and its export."""
    lab.image("my_disk.img")
    lab.image("worker-09.debian.img")
    killed = lab.restart()  # a folder that was there: open to all
    assert lab.remembered()["default_access"] == "off"
    found: list[tuple[str, list[str]]] = []

    def killed_here(*_: object, **__: object) -> str:
        lab.restart()
        target = _listed(lab)
        found.append((target["access"], target["initiators"]))
        if lab.tgtd and mode == "chap":
            assert _may(lab, ONE, SECRET)
            assert not _may(lab, ONE)
        raise SystemExit

    monkeypatch.setattr(creating, "_export", killed_here)
    body = {"size": SIZE} if kind == "empty" else {"import_": "my_disk.img"}
    chap = Chap(**SECRET) if mode == "chap" else None
    request = DiskRequest(DISK, access=mode, chap=chap, **body)  # type: ignore[arg-type]
    with pytest.raises(SystemExit):
        creating.disk_create(killed, request)
    assert found == [(mode, [ONE])]


def test_a_disk_that_does_not_come_leaves_no_access_and_no_secret(
    files: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise Unavailable("the disk fails")

    with monkeypatch.context() as patch:
        patch.setattr(files.node.images, "create_empty", fail)
        new = {"size": SIZE, "access": "chap", "chap": SECRET}
        assert files.disk("worker-01.debian", **new).status_code == 503
        assert files.remembered()["access"] == {}
        assert json.loads((files.folder / ".chap.json").read_text())["secrets"] == {}
        patch.undo()
        assert files.disk("worker-01.windows", **new).status_code == 201
        patch.setattr(files.node.images, "create_empty", fail)
        assert files.disk("worker-01.debian", **new).status_code == 503
    assert files.remembered()["access"] == {f"{ONE}.windows": "chap"}
    assert ONE in (files.folder / ".chap.json").read_text()


def test_secrets_lie_in_a_file_for_its_owner_only_and_nowhere_else(
    lab: Lab, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG")
    answers = [
        lab.disk("worker-01.debian", size=SIZE, access="chap", chap=SECRET),
        _set(lab, "chap", chap=OTHER),
        lab.disk("worker-01.debian", size=SIZE, access="chap", chap=OTHER),
        lab.client.get("/lun"),
        lab.client.get("/logs"),
        lab.client.get("/capabilities"),
    ]
    file = lab.folder / ".chap.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert OTHER["secret"] in file.read_text()
    told = b"".join(a.content for a in answers).decode() + caplog.text
    told += repr(lab.node.secrets.read()) + repr(Access("chap", ONE, Chap(**OTHER)))
    told += (lab.folder / ".targets.json").read_text()
    assert "lun.access" in told
    for secret in (SECRET["secret"], OTHER["secret"]):
        assert secret not in told


@pytest.mark.parametrize(
    ("content", "mode", "words"),
    [
        ('{"secrets": {\n "x": "Topsecret123', 0o600, "line 2"),
        ('{"secrets": []}', 0o600, "must map"),
        ('{"secrets": {"x": {"username": "a", "secret": "Sh0rt"}}}', 0o600, "Windows"),
        ('{"version": 1, "secrets": {}}', 0o644, "chmod 0600"),
        ('{"version": 1, "secrets": {}}', 0o640, "chmod 0600"),
    ],
)
def test_a_secrets_file_that_cannot_be_trusted_is_said_and_never_overwritten(
    lab: Lab, content: str, mode: int, words: str
) -> None:
    lab.disk("worker-01.debian", size=SIZE, access="chap", chap=SECRET)
    lab.disk("worker-02.debian", size=SIZE)
    file = lab.folder / ".chap.json"
    file.write_text(content)
    file.chmod(mode)
    answer = _set(lab, "chap", chap=OTHER)
    assert answer.status_code == 503
    assert ".chap.json" in answer.json()["detail"]
    assert words in answer.json()["detail"]
    assert "Topsecret" not in answer.content.decode()
    if lab.tgtd:
        lab.tgtd.kill()
        lab.tgtd.again()
    lab.restart()
    # What needs no secret is there; what needs one is not there, rather than open.
    assert list(lab.targets()) == ["worker-02.debian"]
    assert ".chap.json" in lab.skipped()["worker-01.debian.img"]
    assert file.read_text() == content
    assert lab.disk("worker-03.debian", size=SIZE).status_code == 201
    file.unlink()
    assert "no secret for" in lab.skipped()["worker-01.debian.img"]
    assert "worker-01.debian" not in lab.targets()


@pytest.mark.parametrize("name", [".chap.json", ".targets.json"])
@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_a_pipe_or_a_folder_in_the_place_of_our_files_is_said_and_holds_up_nobody(
    files: Lab, name: str, make: Callable[..., None]
) -> None:
    files.disk("worker-01.debian", size=SIZE)
    (files.folder / name).unlink(missing_ok=True)
    make(files.folder / name, 0o600)
    answer = _set(files, "chap", chap=SECRET)
    assert answer.status_code == 503
    assert f"{name} cannot be read: it is not a regular file" in answer.json()["detail"]


@tgtd_only
def test_a_node_that_had_secrets_does_not_open_when_its_memory_is_lost(
    stgt: Lab,
) -> None:
    iqn = f"{BASE}:worker-01.debian"
    stgt.disk("worker-01.debian", size=SIZE, access="chap", chap=SECRET)
    assert stgt.tgtd
    stgt.tgtd.kill()
    stgt.tgtd.again()
    (stgt.folder / ".targets.json").unlink()
    stgt.restart()
    assert stgt.targets() == {"worker-01.debian": "worker-01.debian.img"}
    assert node_lab.may_log_in(stgt.tgtd, iqn, f"{BASE}:worker-01")
    assert not node_lab.may_log_in(stgt.tgtd, iqn, f"{BASE}:worker-02")


@tgtd_only
def test_a_target_whose_secret_is_lost_stays_shut_while_tgtd_lives(stgt: Lab) -> None:
    stgt.disk("worker-01.debian", size=SIZE, access="chap", chap=SECRET)
    (stgt.folder / ".chap.json").unlink()
    stgt.restart()
    assert _listed(stgt)["access"] == "chap"
    assert not _may(stgt, ONE)
    assert "no secret for" in stgt.skipped()["worker-01.debian.img"]


def test_a_failed_change_is_forgotten(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab.disk("worker-01.debian", size=SIZE, access="chap", chap=SECRET)
    before = (lab.folder / ".chap.json").read_text()

    def fail(exports: Any) -> Any:
        return {export.iqn: UpstreamFailed("no") for export in exports}

    monkeypatch.setattr(lab.node.backend, "export_all", fail)
    assert _set(lab, "acl").status_code == 502
    assert _set(lab, "chap", chap=OTHER).status_code == 502
    assert lab.remembered()["access"] == {DISK: "chap"}
    assert (lab.folder / ".chap.json").read_text() == before


# -- CDs and scans ---------------------------------------------------------------


@tgtd_only
def test_a_workers_cd_is_its_own_and_a_shared_iso_is_everybodys(stgt: Lab) -> None:
    stgt.image("win11.iso")
    name = "worker-01.windows.iso"
    made = stgt.post("/lun/cd", iso="win11.iso", iqn=f"{BASE}:{name}")
    assert made.status_code == 201
    stgt.scan()
    assert _listed(stgt, name)["access"] == "acl"
    assert _listed(stgt, "win11.iso")["access"] == "off"
    assert _set(stgt, "acl", "win11.iso").status_code == 400
    answer = stgt.post("/lun/cd", iso="win11.iso", access="acl")
    assert "no worker's alone" in str(answer.json()["detail"])
    assert _set(stgt, "chap", name, chap=SECRET).status_code == 200
    stgt.tgtd.kill()  # type: ignore[union-attr]
    stgt.tgtd.again()  # type: ignore[union-attr]
    stgt.restart()
    assert _listed(stgt, name)["access"] == "chap"
    assert _listed(stgt, "win11.iso")["access"] == "off"
    stgt.delete(name)
    assert name not in str(stgt.remembered()["access"])
    assert ONE not in (stgt.folder / ".chap.json").read_text()


def test_a_scan_says_who_may_log_in_where_nothing_is_remembered(lab: Lab) -> None:
    lab.disk("worker-01.debian", size=SIZE, access="off")
    lab.delete("worker-01.debian")
    lab.image("worker-02.debian.img")
    lab.disk("worker-01.debian", existing=True)
    answer = lab.post("/lun/scan", access="off")
    assert [e["iqn"] for e in answer.json()["created"]] == [f"{TWO}.debian"]
    lab.image("worker-03.debian.img")
    lab.scan()
    assert {t["iqn"]: t["access"] for t in lab.client.get("/lun").json()} == {
        DISK: "off",
        f"{TWO}.debian": "off",
        f"{BASE}:worker-03.debian": "acl",
    }
    lab.restart()
    assert lab.remembered()["access"] == {DISK: "off", f"{TWO}.debian": "off"}
    lab.image("worker-04.debian.img")
    answer = lab.post("/lun/scan", access="chap")
    assert "no secret" in answer.json()["skipped"][-1]["reason"]
    assert lab.post("/lun/scan", access="x").status_code == 400


def test_two_first_disks_at_once_do_not_make_a_new_node_an_old_one(
    files: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = files.node.images.create_empty
    gate = threading.Barrier(2)

    def together(name: str, size: int) -> Any:
        made = real(name, size)
        gate.wait(10)
        return made

    monkeypatch.setattr(files.node.images, "create_empty", together)
    threads = [
        threading.Thread(target=files.disk, args=(name,), kwargs={"size": SIZE})
        for name in ("worker-01.debian", "worker-02.debian")
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert files.remembered()["default_access"] == "acl"
    assert len(files.targets()) == 2


# -- what tgtadm's failures say -----------------------------------------------


@tgtd_only
def test_a_secret_is_in_no_error_of_tgtadm(
    stgt: Lab, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    adm = stgt.node.backend._tgtadm  # type: ignore[attr-defined]
    words = ("new", "account", "--user", "w", "--password", "Topsecret123")
    adm.run(*words)
    said = []
    try:
        adm.run(*words)
    except tgtadm.TgtError:
        said.append(traceback.format_exc())
    hangs = tmp_path / "bin" / "tgtadm"
    hangs.parent.mkdir()
    hangs.write_text("#!/bin/sh\nexec /bin/sleep 5\n")
    hangs.chmod(0o755)
    monkeypatch.setattr(tgtadm, "TIMEOUT", 0.2)
    monkeypatch.setitem(adm._environment, "PATH", str(hangs.parent))
    try:
        adm.run(*words)
    except Unavailable:
        said.append(traceback.format_exc())
    assert len(said) == 2
    assert "already exists" in said[0]
    assert "did not answer" in said[1]
    assert "Topsecret" not in "".join(said)
