"""Which target system a node takes, and how calls that never come back are given up.

LIO itself is tested in the guest: here it is a stand-in, or missing.
"""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from agents.node.backends import choose, configfs, limits
from agents.node.backends.configfs import Tree
from agents.node.backends.limits import GivenUp, Limited
from agents.node.backends.lio import LioBackend
from ipxeready import conf, lio
from ipxeready.errors import Unavailable
from tests.agents.node.node_lab import BASE, SIZE, Lab

ONE = f"{BASE}:worker-01.debian"


@pytest.fixture
def lio_works(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """A kernel with LIO, and the targets that it has."""
    targets: list[Any] = []
    monkeypatch.setattr(LioBackend, "check", lambda self: None)
    monkeypatch.setattr(LioBackend, "targets", lambda self: targets)
    return targets


def _chosen(environment: dict[str, str], wanted: str) -> str:
    return choose(conf.load({**environment, "IPXE_AGENT_BACKEND": wanted})).name


def test_auto_takes_lio_first_where_it_works(files: Lab, lio_works: list[Any]) -> None:
    assert _chosen(files.environment, "auto") == "lio"
    assert _chosen(files.environment, "lio") == "lio"
    assert _chosen(files.environment, "files") == "files"


@pytest.mark.tgtd
def test_auto_stays_with_a_tgtd_that_machines_may_run_from(
    stgt: Lab, lio_works: list[Any]
) -> None:
    assert _chosen(stgt.environment, "auto") == "lio"
    stgt.disk("worker-01.debian", size=SIZE)
    assert _chosen(stgt.environment, "auto") == "stgt"
    lio_works.append({"iqn": ONE})
    assert _chosen(stgt.environment, "auto") == "lio"


@pytest.mark.skipif(lio.problem() is None, reason="this kernel has LIO")
def test_lio_that_is_named_and_missing_says_why(files: Lab) -> None:
    with pytest.raises(conf.ConfigError, match="IPXE_AGENT_BACKEND.*LIO"):
        _chosen(files.environment, "lio")


# -- the time limit ----------------------------------------------------------------


@pytest.fixture
def limited(monkeypatch: pytest.MonkeyPatch) -> Limited:
    monkeypatch.setattr(limits, "TIMEOUT", 0.2)
    return Limited("it", "it.hung")


def test_a_call_gives_its_result_or_its_error(limited: Limited) -> None:
    assert limited.run(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        limited.run(lambda: 1 // 0)


@pytest.mark.case(83)
def test_a_call_that_hangs_makes_the_next_fail_at_once_until_it_comes_back(
    limited: Limited,
) -> None:
    release = threading.Event()
    with pytest.raises(Unavailable, match="did not answer within 0.2 s"):
        limited.run(release.wait)
    threads = threading.active_count()
    began = time.monotonic()
    for _ in range(50):
        with pytest.raises(Unavailable, match="did not come back"):
            limited.run(lambda: 7)
    assert time.monotonic() - began < 0.2
    assert threading.active_count() == threads
    release.set()
    until = time.monotonic() + 5
    while threading.active_count() == threads and time.monotonic() < until:
        time.sleep(0.01)
    assert limited.run(lambda: 7) == 7


def test_a_call_that_was_given_up_takes_no_further_step(limited: Limited) -> None:
    release, ended = threading.Event(), threading.Event()
    steps: list[str] = []

    def work() -> None:
        try:
            release.wait()
            limits.checkpoint()
            steps.append("went on")
        except GivenUp:
            steps.append("stopped")
            raise
        finally:
            ended.set()

    with pytest.raises(Unavailable):
        limited.run(work)
    release.set()
    assert ended.wait(5)
    assert steps == ["stopped"]


# -- reading configfs: additions to the guest's tests, over a folder ----------------


def test_sessions_are_read_from_both_places_of_the_kernel(tmp_path: Any) -> None:
    tree = Tree(BASE, tmp_path)
    group = tmp_path / "iscsi" / ONE / "tpgt_1"
    rule = group / "acls" / f"{BASE}:worker-01"
    for folder in (rule / "lun_0", group / "np" / "[::]:3260", group / "lun" / "lun_0", group / "attrib"):  # fmt: skip
        folder.mkdir(parents=True)
    (group / "enable").write_text("1\n")
    (group / "attrib" / "authentication").write_text("1\n")
    (group / "attrib" / "generate_node_acls").write_text("0\n")
    (group / "dynamic_sessions").write_bytes(
        b"iqn.2001-01.org:Two\n\0iqn.2001-01.org:three\n\0"
    )
    (rule / "info").write_text(
        f"InitiatorName: {BASE}:worker-01\nInitiatorAlias: \n"
        "LIO Session ID: 3   ISID: 0x80 00 00 00 00 01  TSIH: 9  SessionType: Normal\n"
        "Session State: TARG_SESS_STATE_LOGGED_IN\n"
        "CID: 0  Connection State: TARG_CONN_STATE_LOGGED_IN\n"
        "   Address [fd77::5] TCP  StatSN: 0x6\n"
    )
    (shown,) = tree.all()
    assert shown.portals == ["[::]:3260"]
    assert shown.luns == {0: None}
    assert shown.sessions == [
        {"initiator": f"{BASE}:worker-01", "address": "fd77::5", "id": "3"},
        {"initiator": "iqn.2001-01.org:two", "address": ""},
        {"initiator": "iqn.2001-01.org:three", "address": ""},
    ]
    assert shown.public()["access"] == "chap"
    (rule / "info").write_text("No active iSCSI Session for Initiator Endpoint\n")
    (shown,) = tree.all()
    assert len(shown.sessions) == 2


def test_a_path_with_the_kernels_own_words_in_it_is_read_as_it_is(
    tmp_path: Any,
) -> None:
    tree = Tree(BASE, tmp_path)
    place = tmp_path / "core" / "fileio_3" / "theirs"
    place.mkdir(parents=True)
    path = "/srv/a  Size: 5  Mode: x, b=c.img"
    (place / "enable").write_text("1\n")
    (place / "udev_path").write_text(f"{path}\n")
    (place / "info").write_text(
        "Status: ACTIVATED  Max Queue Depth: 0  SectorSize: 512  HwMaxSectors: 16384\n"
        f"        TCM FILEIO ID: 0        File: {path}  Size: 1048576  Mode: O_DSYNC Async: 0\n"
    )
    store = tree.read_store(str(place))
    assert store is not None
    assert (store.path, store.size, store.ours) == (path, 1048576, False)


def test_a_target_that_goes_while_it_is_read_is_not_there(tmp_path: Any) -> None:
    tree = Tree(BASE, tmp_path)
    assert tree.all() == []
    assert tree.shown(ONE) is None
    assert configfs.read(str(tmp_path / "none")) == ""
    configfs.rmdir(str(tmp_path / "none"))
    tree.strip(ONE)
