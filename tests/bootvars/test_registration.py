"""Zero-touch registration of unknown machines."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from rest_framework.test import APIClient

from bootvars import registration
from bootvars.registration import Arrival
from ipxeready.actors import firmware
from ipxeready.index import writing
from ipxeready.storage import faults
from ipxeready.storage.paths import Layout
from tests.processes import eventually
from tests.workers.helpers import M1, M2, M3, ledger, live_hosts, snapshot, trail

Ask = Callable[[str], str]


def test_an_unknown_machine_gets_name_record_and_binding(
    layout: Layout, boot: Ask
) -> None:
    assert boot(f"mac={M1}") == (
        "#!ipxe\n# boot vars for worker-01\nset hostname worker-01\n"
        "set menu-default reboot\nset menu-timeout 1000\n"
    )
    assert ledger(layout) == {
        "worker-01": {
            "hostname": "worker-01",
            "arch": "x86_64",
            "state": "registered",
            "disks": [],
            "cd": None,
        }
    }
    assert live_hosts(layout) == [f"{M1},worker-01"]
    (line,) = trail(layout, "auto_register")
    assert (line["worker_id"], line["mac"], line["client"]) == (
        "worker-01",
        M1,
        "127.0.0.1",
    )
    boot(f"mac={M1}")
    assert len(trail(layout, "auto_register")) == 1


@pytest.mark.parametrize(
    ("workers", "hosts", "expected"),
    [
        ("{worker-07: {hostname: worker-07}}", "", "worker-08"),
        ("{a: {hostname: worker-12}}", "", "worker-13"),
        ("{worker-3: {hostname: other}}", "", "worker-04"),
        ("{}", "52:54:00:00:00:77,worker-41\n", "worker-42"),
        ("{worker-99: {hostname: worker-99}}", "", "worker-100"),
        ("{worker-05: {hostname: a_b}}", "", "worker-06"),
        ("{worker-02: just a word}", "", "worker-03"),
        ("{pc: {hostname: worker-08, disks: oops}}", "", "worker-09"),
        ("{worker-: {hostname: x}}", "", "worker-01"),
        ("{}", "#52:54:00:00:00:77,worker-41\n", "worker-01"),
    ],
)
def test_the_next_number_is_the_highest_plus_one(
    layout: Layout, boot: Ask, workers: str, hosts: str, expected: str
) -> None:
    layout.workers_yml.write_text(f"workers: {workers}\n")
    layout.dhcp_hosts.write_text(hosts)
    assert f"set hostname {expected}\n" in boot(f"mac={M1}")
    assert layout.dhcp_hosts.read_text() == f"{hosts}{M1},{expected}\n"


def test_gaps_are_not_refilled(layout: Layout, boot: Ask, api: APIClient) -> None:
    for mac in (M1, M2, M3):
        boot(f"mac={mac}")
    api.delete("/workers/worker-02")
    assert "set hostname worker-04\n" in boot(f"mac={M2}")


def test_a_mac_bound_by_hand_gets_its_record_and_keeps_its_line(
    layout: Layout, boot: Ask
) -> None:
    layout.dhcp_hosts.write_text(f"# mine\n{M1} , seat-7 , 10.0.0.7 # window\n")
    before = snapshot(layout)["dhcp-hosts.conf"]
    assert "set hostname seat-7\n" in boot(f"mac={M1}")
    assert list(ledger(layout)) == ["seat-7"]
    assert snapshot(layout)["dhcp-hosts.conf"] == before
    assert trail(layout, "auto_register")[0]["worker_id"] == "seat-7"


def test_a_hand_binding_never_overwrites_another_workers_record(
    layout: Layout, boot: Ask
) -> None:
    layout.workers_yml.write_text("workers:\n  a: {hostname: b, note: keep}\n")
    layout.dhcp_hosts.write_text(f"{M1},a\n")
    before = snapshot(layout)
    script = boot(f"mac={M1}")
    assert "id of a worker with another hostname" in script
    assert snapshot(layout) == before


@pytest.mark.case(33)
def test_a_hand_binding_to_a_broken_record_makes_no_second_one(
    layout: Layout, boot: Ask, api: APIClient
) -> None:
    layout.workers_yml.write_text("workers:\n  pc1: {hostname: seat, disks: oops}\n")
    layout.dhcp_hosts.write_text(f"{M1},seat\n")
    before = snapshot(layout)
    assert "the record pc1" in boot(f"mac={M1}")
    answer = api.post("/workers", {"worker_id": "x", "hostname": "seat", "mac": M1})
    assert answer.status_code == 503
    assert snapshot(layout) == before


@pytest.mark.case(49)
def test_a_hand_binding_that_is_no_hostname_is_told(layout: Layout, boot: Ask) -> None:
    layout.dhcp_hosts.write_text(f"{M1},worker_01\n")
    before = snapshot(layout)
    assert "underscore" in boot(f"mac={M1}")
    assert snapshot(layout) == before


@pytest.mark.case(96)
def test_head_changes_nothing(layout: Layout) -> None:
    before = snapshot(layout)
    operations = layout.operations.read_bytes()
    layout.dhcp_hosts.read_text()
    for query in (f"mac={M1}", f"mac={M1}&hostname=x", "mac=zz", ""):
        answer = Client().head(f"/boot-vars?{query}")
        assert answer.status_code == 200
    assert snapshot(layout) == before
    assert layout.operations.read_bytes() == operations


@pytest.mark.case(96)
def test_above_the_limit_nothing_more_is_written(
    layout: Layout, boot: Ask, configured: Callable[..., None], api: APIClient
) -> None:
    configured(auto_register_max=3)
    for number in range(3):
        boot(f"mac=52:54:00:00:01:{number:02x}")
    before = snapshot(layout)
    for number in range(20):
        script = boot(f"mac=52:54:00:00:02:{number:02x}")
        assert "no more are registered" in script
        assert "IPXE_CP_AUTO_REGISTER_MAX" not in script.splitlines()[0]
    assert snapshot(layout) == before
    assert len(trail(layout, "boot.refused")) == 1
    # Those that are known go on, and a deletion makes room.
    assert "set hostname worker-01\n" in boot("mac=52:54:00:00:01:00")
    api.delete("/workers/worker-01")
    assert "set hostname worker-04\n" in boot(f"mac={M1}")


@pytest.mark.case(96)
def test_invented_addresses_do_not_fill_the_trail(
    layout: Layout, boot: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bootvars import notes

    monkeypatch.setattr(notes, "MOST", 5)
    layout.dhcp_hosts.write_text(f"{M1},seat\n")
    for number in range(12):
        assert "bound to another" in boot(
            f"mac=52:54:00:00:02:{number:02x}&hostname=seat"
        )
    assert len(trail(layout, "boot.refused")) == 5


def test_a_failure_leaves_the_files_as_they_were(layout: Layout, boot: Ask) -> None:
    before = snapshot(layout)

    def full(point: str) -> None:
        if point == "file":
            raise OSError(28, "No space left on device", str(layout.workers_yml))

    faults.install(full)
    try:
        script = boot(f"mac={M1}")
    finally:
        faults.install(None)
    assert "nothing was changed" in script
    assert {name: seen[2] for name, seen in snapshot(layout).items()} == {
        name: seen[2] for name, seen in before.items()
    }
    assert "set hostname worker-01\n" in boot(f"mac={M1}")


def in_threads(calls: list[Callable[[], Any]]) -> list[Any]:
    ready = threading.Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        ready.wait(20)
        try:
            return call()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def test_two_requests_of_one_machine_make_one_worker(layout: Layout, boot: Ask) -> None:
    scripts = in_threads([lambda: boot(f"mac={M1}")] * 8)
    assert len(set(scripts)) == 1
    assert list(ledger(layout)) == ["worker-01"]


def test_two_machines_that_claim_one_name_do_not_both_get_it(
    layout: Layout, boot: Ask
) -> None:
    layout.workers_yml.write_text("workers:\n  seat: {hostname: seat}\n")
    macs = [f"52:54:00:00:03:{n:02x}" for n in range(6)]
    scripts = in_threads(
        [lambda mac=mac: boot(f"mac={mac}&hostname=seat") for mac in macs]
    )
    assert sum("set hostname seat\n" in script for script in scripts) == 1
    assert sum("bound to another machine" in script for script in scripts) == 5, scripts
    assert len(live_hosts(layout)) == 1
    assert list(ledger(layout)) == ["seat"]


def test_a_name_that_was_bound_meanwhile_is_refused(layout: Layout) -> None:
    layout.workers_yml.write_text("workers:\n  seat: {hostname: seat}\n")
    layout.dhcp_hosts.write_text(f"{M1},seat\n")
    with writing(actor=firmware("192.0.2.9"), op="auto_register") as tx:
        (result,) = registration._handle(tx, [Arrival(M2, "seat")])
    assert "bound to another machine" in str(result)
    assert live_hosts(layout) == [f"{M1},seat"]


def test_one_that_cannot_be_served_costs_the_others_nothing(layout: Layout) -> None:
    layout.workers_yml.write_text("workers:\n  seat: {hostname: seat}\n")
    # The name stands on a line that does not count for its MAC: dnsmasq uses the later one.
    layout.dhcp_hosts.write_text(f"{M1},seat\n{M1},other\n")
    with writing(actor=firmware(None), op="auto_register") as tx:
        results = registration._handle(
            tx,
            [
                Arrival(M2, "seat", "192.0.2.2"),
                Arrival(M3, None, "192.0.2.3"),
                Arrival(M3, None, "192.0.2.3"),
            ],
        )
    assert "bound to another machine" in str(results[0])
    assert results[1:] == ["worker-01", "worker-01"]
    (line,) = trail(layout, "auto_register")
    # Each line names the address of its own machine, not of the request that led the write.
    assert (line["mac"], line["client"]) == (M3, "192.0.2.3")


@pytest.mark.case(102)
def test_a_dnsmasq_that_is_down_does_not_stop_a_registration(
    layout: Layout, boot: Ask, configured: Callable[..., None], tmp_path: Path
) -> None:
    configured(dnsmasq_reload_set=("pidfile", str(tmp_path / "none")))
    assert "set hostname worker-01\n" in boot(f"mac={M1}")
    (line,) = trail(layout, "dnsmasq.reload")
    assert line["status"] == "failed"


@pytest.mark.case(102)
def test_a_reload_that_hangs_does_not_keep_a_machine_waiting(
    layout: Layout,
    boot: Ask,
    configured: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from workers import reload

    configured(dnsmasq_reload_set=("command", "sleep 30"))
    monkeypatch.setattr(reload, "COMMAND_LIMIT_S", 6.0)
    monkeypatch.setattr(registration, "PATIENCE", 0.2)
    assert "set hostname worker-01\n" in boot(f"mac={M1}")
    # The machine has its answer while the command still hangs.
    assert trail(layout, "dnsmasq.reload") == []
    eventually(lambda: trail(layout, "dnsmasq.reload"))
    (line,) = trail(layout, "dnsmasq.reload")
    assert line["status"] == "failed" and "took more than" in line["error"]


def test_a_room_of_a_thousand_is_served_in_one_write(layout: Layout) -> None:
    arrivals = [
        Arrival(f"52:54:00:10:{n // 256:02x}:{n % 256:02x}") for n in range(1000)
    ]
    with writing(actor=firmware(None), op="auto_register") as tx:
        results = registration._handle(tx, arrivals)
    assert results == [f"worker-{n:02d}" for n in range(1, 1001)]
    assert len(ledger(layout)) == 1000
    lines = live_hosts(layout)
    assert len(lines) == 1000
    assert lines[999] == "52:54:00:10:03:e7,worker-1000"


def test_an_edit_in_the_middle_does_not_cost_a_registration(
    layout: Layout, boot: Ask
) -> None:
    edits = [f"{M2},worker-07\n", f"{M3},worker-08\n"]

    def edit(point: str) -> None:
        if point == "prepared" and edits:
            with layout.dhcp_hosts.open("a") as hosts:
                hosts.write(edits.pop())

    faults.install(edit)
    try:
        script = boot(f"mac={M1}")
    finally:
        faults.install(None)
    assert "set hostname worker-09\n" in script
    assert edits == []
    assert live_hosts(layout) == [
        f"{M3},worker-08",
        f"{M2},worker-07",
        f"{M1},worker-09",
    ]
