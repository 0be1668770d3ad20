"""What tgtd says, and what we make of it: each message, a daemon that is gone, one that hangs."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import Any

import pytest

from agents.node.backends import tgtadm
from agents.node.backends.tgtadm import (
    ACTIVE,
    EXISTS,
    MISSING,
    REFUSED,
    TgtError,
)
from agents.node.backends.tgtlisting import parse
from tests.agents.node import node_lab
from tests.agents.node.node_lab import BASE, SIZE, Lab

pytestmark = pytest.mark.tgtd


@pytest.mark.case(76)
def test_each_message_of_a_real_tgtd_is_told_apart(stgt: Lab) -> None:
    run = stgt.node.backend._tgtadm.run  # type: ignore[attr-defined]
    image = str(stgt.image("a.img"))
    run("new", "target", "--tid", "1", "-T", f"{BASE}:a")
    lun = ("--tid", "1", "--lun", "1", "-b", image)
    run("new", "logicalunit", *lun)
    run("bind", "target", "--tid", "1", "-I", "ALL")

    def kind(*words: str) -> str:
        with pytest.raises(TgtError) as caught:
            run(*words)
        return caught.value.kind

    assert kind("new", "target", "--tid", "2", "-T", f"{BASE}:a") == EXISTS
    assert kind("new", "target", "--tid", "1", "-T", f"{BASE}:b") == EXISTS
    assert kind("new", "logicalunit", *lun) == EXISTS
    assert kind("bind", "target", "--tid", "1", "-I", "ALL") == EXISTS
    assert kind("delete", "target", "--tid", "9") == MISSING
    assert kind("unbind", "target", "--tid", "1", "-I", "192.0.2.1") == MISSING
    assert kind("new", "target", "--tid", "3", "-T", f"{BASE}:a_b") == REFUSED
    assert (
        kind("new", "logicalunit", "--tid", "1", "--lun", "2", "-b", "/none") == REFUSED
    )
    account = ("--user", "w")
    run("new", "account", *account, "--password", "Abcdefghijkl")
    run("bind", "account", "--tid", "1", *account)
    assert kind("new", "account", *account, "--password", "Abcdefghijkm") == EXISTS
    assert kind("bind", "account", "--tid", "1", *account) == EXISTS
    assert kind("bind", "account", "--tid", "1", "--user", "nobody") == MISSING
    assert kind("unbind", "account", "--tid", "1", "--user", "nobody") == MISSING
    assert kind("delete", "account", "--user", "nobody") == MISSING
    run("delete", "account", *account)
    assert stgt.tgtd
    with node_lab.session(stgt.tgtd, f"{BASE}:a"):
        assert kind("delete", "target", "--tid", "1") == ACTIVE


@pytest.mark.case(76)
def test_a_target_that_somebody_deletes_first_is_done(
    stgt: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stgt.tgtd
    stgt.disk("worker-01.windows", size=SIZE)
    real = stgt.node.backend._tgtadm.run  # type: ignore[attr-defined]

    def late(operation: str, mode: str, *words: str) -> str:
        if operation == "delete":
            real(operation, mode, *words)
        return real(operation, mode, *words)

    monkeypatch.setattr(stgt.node.backend._tgtadm, "run", late)  # type: ignore[attr-defined]
    assert stgt.delete("worker-01.windows", delete_file="true").status_code == 200
    assert not (stgt.folder / "worker-01.windows.img").exists()


@pytest.mark.case(76)
def test_a_tgtd_that_is_gone_reports_nothing_as_done(stgt: Lab) -> None:
    assert stgt.tgtd
    stgt.disk("worker-01.windows", size=SIZE)
    stgt.image("debian_tpl_v1.img")
    before = stgt.files()
    stgt.tgtd.kill()
    calls: list[Callable[[], Any]] = [
        lambda: stgt.client.get("/lun"),
        lambda: stgt.client.get("/capabilities"),
        lambda: stgt.disk("worker-02.windows", size=SIZE),
        lambda: stgt.disk("worker-02.windows", master="debian_tpl_v1.img"),
        lambda: stgt.delete("worker-01.windows", delete_file="true"),
        lambda: stgt.client.post("/lun/scan"),
    ]
    for call in calls:
        answer = call()
        assert answer.status_code == 503
        assert "tgtd" in answer.json()["detail"]
    assert stgt.files() == before
    assert stgt.client.get("/healthz").status_code == 200
    assert stgt.client.get("/masters").status_code == 200


@pytest.mark.case(76)
def test_a_tgtd_that_goes_in_the_middle_takes_the_new_image_back(
    stgt: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stgt.tgtd
    daemon = stgt.tgtd
    real = stgt.node.images.create_empty

    def then_die(name: str, size: int) -> object:
        made = real(name, size)
        daemon.kill()
        return made

    monkeypatch.setattr(stgt.node.images, "create_empty", then_die)
    assert stgt.disk("worker-01.windows", size=SIZE).status_code == 503
    assert stgt.files() == {}


@pytest.mark.case(83)
def test_a_tgtd_that_hangs_costs_one_time_limit_and_not_one_for_each_call(
    stgt: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert stgt.tgtd
    monkeypatch.setattr(tgtadm, "TIMEOUT", 0.5)
    monkeypatch.setattr(tgtadm, "_PAUSE", 600.0)
    adm = stgt.node.backend._tgtadm  # type: ignore[attr-defined]
    began, begin = [], adm._begin

    def counted(call: object) -> float:
        began.append(begin(call))
        return float(began[-1])

    monkeypatch.setattr(adm, "_begin", counted)
    os.kill(stgt.tgtd.process.pid, signal.SIGSTOP)
    try:
        statuses = [stgt.client.get("/lun").status_code for _ in range(10)]
        assert statuses == [503] * 10
        assert began == [0.5]
        assert stgt.client.get("/masters").status_code == 200
    finally:
        os.kill(stgt.tgtd.process.pid, signal.SIGCONT)
    adm._until = 0
    assert stgt.client.get("/lun").status_code == 200


def test_auto_takes_tgtd_where_it_answers_and_files_elsewhere(stgt: Lab) -> None:
    assert stgt.restart(IPXE_AGENT_BACKEND="auto").backend.name == "stgt"
    assert stgt.restart(IPXE_STGT_SOCKET="/nonexistent/tgt").backend.name == "files"


def test_two_sessions_and_odd_names_are_read_from_a_listing() -> None:
    text = """Target 3: iqn.2026-07.com.controller:a
    System information:
        Driver: iscsi
        State: ready
    I_T nexus information:
        I_T nexus: 6
            Initiator: iqn.a:one alias: LUN: 9
            Connection: 0
                IP Address: 192.0.2.1
        I_T nexus: 7
            Initiator: iqn.a:two alias: none
            Connection: 1
                IP Address: fd77::1
    LUN information:
        LUN: 0
            Type: controller
            Size: 0 MB, Block size: 1
            Backing store path: None
        LUN: 1
            Type: disk
            Size: 64 MB, Block size: 512
            Readonly: Yes
            Backing store path: /srv/images/ACL information: Target 9: x.img
    Account information:
    ACL information:
        192.0.2.0/24
        iqn.a:one
"""
    (shown,) = parse(text)
    assert [s["address"] for s in shown.sessions] == ["192.0.2.1", "fd77::1"]
    assert [s["initiator"] for s in shown.sessions] == ["iqn.a:one", "iqn.a:two"]
    assert shown.luns == [
        {
            "lun": 1,
            "backing": "/srv/images/ACL information: Target 9: x.img",
            "size": 64 << 20,
            "type": "disk",
        }
    ]
    assert shown.readonly == {1: True}
    assert shown.acl == ["192.0.2.0/24", "iqn.a:one"]
    assert parse("") == []
