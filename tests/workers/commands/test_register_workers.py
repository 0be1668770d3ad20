"""`register_workers`: everything is checked first, then one write and one reload, or nothing."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ipxeready.actors import Actor
from ipxeready.conf import Reload
from ipxeready.errors import Forbidden
from ipxeready.storage.paths import Layout
from tests.shell import run
from tests.workers.helpers import ledger, live_hosts, snapshot, trail
from workers.imports import Row, workers_register

HEAD = "worker_id,mac,hostname\n"


def mac(number: int) -> str:
    return f"52:54:00:00:07:{number:02x}"


def room(**changed: str) -> str:
    """A CSV of thirty rows; `row17="..."` replaces one."""
    rows = {f"row{n}": f"lab-{n:02d},{mac(n)},seat-{n:02d}" for n in range(1, 31)}
    return HEAD + "\n".join({**rows, **changed}.values()) + "\n"


@pytest.fixture
def reloads(layout: Layout, settings: Any, tmp_path: Path) -> Callable[[], int]:
    """Counts the reloads of dnsmasq by a command that leaves a line each time."""
    script, log = tmp_path / "reload", tmp_path / "reloads"
    script.write_text(f"#!/bin/sh\necho x >> {log}\n")
    script.chmod(0o755)
    settings.IPXE = dataclasses.replace(
        settings.IPXE, dnsmasq_reload_set=Reload("command", str(script))
    )
    return lambda: len(log.read_text().splitlines()) if log.exists() else 0


@pytest.mark.case(99)
def test_half_an_import_is_none_and_a_second_one_changes_nothing(
    layout: Layout, reloads: Callable[[], int]
) -> None:
    before = snapshot(layout)
    wrong = room(
        row17=f"lab-17,{mac(5).upper().replace(':', '-')},seat-17",
        row22=f"lab-22,{mac(22)},101",
        row25=f"lab-03,{mac(3)},seat-03",
    )
    ended = run("register_workers", "-", "--json", stdin=wrong)
    assert ended.code == 1
    faults = {fault["row"]: fault for fault in ended.json["faults"]}
    assert list(faults) == [17, 22, 25]
    assert [fault["line"] for fault in faults.values()] == [18, 23, 26]
    assert faults[17]["field"] == "mac"
    assert "'52-54-00-00-07-05' stands on row 5 already" in faults[17]["message"]
    assert faults[22]["field"] == "hostname"
    assert "'101' is a lease time" in faults[22]["message"]
    assert "repeats row 3" in faults[25]["message"]
    for row in (17, 22, 25):
        assert f"row {row} (line {row + 1}): " in ended.err
    assert ended.err.splitlines()[-1].startswith("Refused: 3 of 30 rows")
    assert snapshot(layout) == before
    assert reloads() == 0

    right = room()
    ended = run("register_workers", "-", "--json", stdin=right)
    assert (ended.code, ended.err) == (0, "")
    assert ended.json == {
        "created": [f"lab-{n:02d}" for n in range(1, 31)],
        "unchanged": [],
        "dry_run": False,
    }
    assert reloads() == 1
    assert live_hosts(layout) == [f"{mac(n)},seat-{n:02d}" for n in range(1, 31)]
    assert list(ledger(layout)) == [f"lab-{n:02d}" for n in range(1, 31)]
    assert len(trail(layout, "create_worker")) == 30
    assert len(trail(layout, "dnsmasq.reload")) == 1

    before, lines = snapshot(layout), layout.operations.read_bytes()
    ended = run("register_workers", "-", "--json", stdin=right)
    assert ended.code == 0
    assert ended.json["created"] == []
    assert len(ended.json["unchanged"]) == 30
    assert snapshot(layout) == before
    assert layout.operations.read_bytes() == lines
    assert reloads() == 1


def test_it_is_one_write(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    from ipxeready.index import writer

    writes = []
    commit = writer.intents.commit

    def counted(*words: Any) -> None:
        writes.append([change.path.name for change in words[1]])
        commit(*words)

    monkeypatch.setattr(writer.intents, "commit", counted)
    assert run("register_workers", "-", stdin=room()).code == 0
    assert [files for files in writes if files] == [["workers.yml", "dhcp-hosts.conf"]]


def test_what_exists_is_left_and_what_is_new_is_added(layout: Layout) -> None:
    run("register_workers", "-", stdin=f"{HEAD}a,{mac(1)},seat-a\n")
    ended = run(
        "register_workers",
        "-",
        # The same MAC in another spelling; no hostname says nothing about it.
        stdin=f"worker_id,mac\nA,{mac(1).replace(':', '')}\nb,{mac(2)}\n",
    )
    assert (ended.code, ended.out) == (0, "1 registered, 1 unchanged\n")
    assert list(ledger(layout)) == ["a", "b"]


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ("a,52:54:00:00:07:09,seat-a", "worker_id: there is a worker a already"),
        ("b,52:54:00:00:07:09,seat-a", "hostname: seat-a belongs to worker a"),
        ("b,52:54:00:00:07:01,b", "mac: 52:54:00:00:07:01 is bound to seat-a"),
        (
            "b,52:54:00:00:07:09,printer",
            "hostname: printer is bound to 52:54:00:00:07:77",
        ),
        ("b,52:54:00:00:07:77,b", "mac: 52:54:00:00:07:77 is bound to printer"),
        ("-b,52:54:00:00:07:09,b", "worker_id: '-b' must be 1 to 63"),
        ("b_b,52:54:00:00:07:09,", "cannot be a hostname; give one"),
        ("b,52:54:00:00:07,b", "mac: '52:54:00:00:07' has 5 bytes"),
        ("b,,b", "mac: '' is not a MAC address"),
        (",52:54:00:00:07:09,b", "worker_id: '' must be 1 to 63"),
        ("b,52:54:00:00:07:09,b,b", "has 4 columns, the header has 3"),
        ("b,52:54:00:00:07:09", "has 2 columns, the header has 3"),
        ("b,ff:ff:ff:ff:ff:ff,b", "is the broadcast address"),
    ],
)
def test_a_row_that_cannot_be_is_named_with_field_and_rule(
    layout: Layout, row: str, words: str
) -> None:
    run("register_workers", "-", stdin=f"{HEAD}a,{mac(1)},seat-a\n")
    with layout.dhcp_hosts.open("a") as hosts:
        hosts.write(f"{mac(0x77)},printer\n")
    before = snapshot(layout)
    ended = run("register_workers", "-", stdin=f"{HEAD}c,{mac(3)},c\n{row}\n")
    assert ended.code == 1
    assert f"row 2 (line 3): {words}" in ended.err or words in ended.err
    assert "Refused: 1 of 2 rows cannot be registered" in ended.err
    assert snapshot(layout) == before


def test_all_faults_of_a_row_are_told(layout: Layout) -> None:
    ended = run("register_workers", "-", "--json", stdin=f"{HEAD}-,12,a_b\n")
    assert [fault["field"] for fault in ended.json["faults"]] == [
        "worker_id",
        "mac",
        "hostname",
    ]


def test_a_dry_run_checks_as_much_and_writes_nothing(layout: Layout) -> None:
    before = snapshot(layout)
    ended = run("register_workers", "-", "--dry-run", stdin=room())
    assert ended.out == "30 would be registered, 0 unchanged\n"
    wrong = room(row2=f"lab-02,{mac(1)},seat-02")
    ended = run("register_workers", "-", "--dry-run", stdin=wrong)
    assert (ended.code, "row 2 (line 3): mac" in ended.err) == (1, True)
    assert snapshot(layout) == before
    assert trail(layout, "create_worker") == []


def test_a_range_takes_its_macs_from_a_list(layout: Layout, tmp_path: Path) -> None:
    macs = tmp_path / "macs"
    macs.write_text(f"# rack 3\n{mac(8)}\n\n{mac(9)} # window\n{mac(10)}\n")
    words = ("register_workers", "--range", "lab-[08-10]", "--macs", str(macs))
    assert run(*words).out == "3 registered, 0 unchanged\n"
    assert live_hosts(layout) == [
        f"{mac(8)},lab-08",
        f"{mac(9)},lab-09",
        f"{mac(10)},lab-10",
    ]
    assert run(*words).out == "0 registered, 3 unchanged\n"


@pytest.mark.parametrize(
    ("words", "stdin", "rule"),
    [
        ([], "", "give either a CSV or --range"),
        (["-", "--range", "a[1-2]", "--macs", "-"], "", "give either a CSV or"),
        (["--range", "a[1-2]"], "", "--range and --macs go together"),
        (["-", "--macs", "-"], "", "--range and --macs go together"),
        (["--range", "a[2-1]", "--macs", "-"], "", "must count upwards"),
        (["--range", "a[1-", "--macs", "-"], "", "must have one range"),
        (["--range", "a[1-999999999]", "--macs", "-"], "", "at most 100000"),
        (
            ["--range", "a[1-3]", "--macs", "-"],
            "x\ny\n",
            "means 3 workers, but there are 2",
        ),
        (["/nowhere/rows.csv"], "", "/nowhere/rows.csv: cannot be read: No such file"),
        (["/"], "", "/: cannot be read"),
        (["-"], "", "the header worker_id,mac,hostname is missing"),
        (["-"], "worker_id,hostname\n", "must have the columns worker_id, mac"),
        (["-"], "worker_id;mac\n", "separated by commas"),
        (["-"], "worker_id,mac,mac\n", "each once"),
        (["-"], 'worker_id,mac\n"a', "line 2: is not CSV"),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_code_2(
    layout: Layout, words: list[str], stdin: str, rule: str
) -> None:
    before = snapshot(layout)
    ended = run("register_workers", *words, stdin=stdin)
    assert ended.code == 2
    assert rule in ended.err
    assert len(ended.err.splitlines()) == 1
    assert ended.out == ""
    assert snapshot(layout) == before


def test_what_spreadsheets_write_is_read(layout: Layout, tmp_path: Path) -> None:
    file = tmp_path / "rows.csv"
    file.write_bytes(
        f'\ufeffMAC , Worker_ID\r\n"{mac(1)}", "a"\r\n,\r\n{mac(2)},b\r\n'.encode().replace(
            b', "a"', b',"a"'
        )
    )
    assert run("register_workers", str(file)).out == "2 registered, 0 unchanged\n"
    file.write_bytes(b"worker_id,mac\n\xff,x\n")
    ended = run("register_workers", str(file))
    assert (ended.code, "line 2 is not UTF-8" in ended.err) == (2, True)


@pytest.mark.case(10)
def test_a_line_that_went_is_told(layout: Layout) -> None:
    layout.dhcp_hosts.write_text(f"{mac(1)},first\n{mac(1).upper()},second\n")
    ended = run("register_workers", "-", "--json", stdin=f"{HEAD}second,{mac(1)},\n")
    assert ended.code == 0
    assert ended.json["removed_lines"] == [f"{mac(1)},first"]
    assert f"removed from dhcp-hosts.conf: {mac(1)},first" in ended.err


def test_a_reload_that_fails_is_told_and_the_rows_are_written(
    layout: Layout, settings: Any
) -> None:
    settings.IPXE = dataclasses.replace(
        settings.IPXE, dnsmasq_reload_set=Reload("command", "false")
    )
    ended = run("register_workers", "-", "--json", stdin=f"{HEAD}a,{mac(1)},\n")
    assert ended.code == 0
    assert ended.json["dnsmasq"]["active"] is False
    assert "written, not active" in ended.err
    assert list(ledger(layout)) == ["a"]


def test_a_broken_file_takes_no_rows(layout: Layout) -> None:
    layout.workers_yml.write_text("workers: [\n")
    before = snapshot(layout)
    ended = run("register_workers", "-", "--json", stdin=room())
    assert ended.code == 1
    assert "workers.yml" in ended.json["error"]["message"]
    assert len(ended.err.splitlines()) == 1
    assert snapshot(layout) == before


def test_a_record_that_does_not_validate_is_not_overwritten(layout: Layout) -> None:
    layout.workers_yml.write_text("workers:\n  a:\n    hostname: a_b\n")
    before = snapshot(layout)
    ended = run("register_workers", "-", stdin=f"{HEAD}a,{mac(1)},\n")
    assert (ended.code, "mend this record" in ended.err) == (1, True)
    assert snapshot(layout) == before


def test_a_viewer_registers_nobody(layout: Layout, viewer: Actor) -> None:
    with pytest.raises(Forbidden):
        workers_register(actor=viewer, rows=[Row(1, "a", mac(1))])


def test_a_thousand_rows_take_seconds(layout: Layout) -> None:
    rows = [
        Row(n, f"pc-{n}", f"52:54:00:01:{n >> 8:02x}:{n & 255:02x}")
        for n in range(1, 1001)
    ]
    import time

    started = time.monotonic()
    done = workers_register(actor=Actor("x", "administrator"), rows=rows)
    assert len(done.created) == 1000
    assert time.monotonic() - started < 20
    assert len(ledger(layout)) == len(live_hosts(layout)) == 1000
