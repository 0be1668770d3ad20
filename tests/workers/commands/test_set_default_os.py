"""`set_default_os`: what many workers boot, each on its own."""

from __future__ import annotations

import pytest

from ipxeready.actors import Actor
from ipxeready.errors import Forbidden
from ipxeready.storage.paths import Layout
from tests.shell import run
from tests.workers.helpers import ledger, snapshot, trail
from workers.boots import workers_boot_set


@pytest.fixture
def room(layout: Layout) -> Layout:
    """lab-01 and lab-02 with ubuntu, lab-03 with windows, lab-04 without a disk."""
    lines = ["workers:"]
    for number, os in ((1, "ubuntu"), (2, "ubuntu"), (3, "windows"), (4, "")):
        name = f"lab-{number:02d}"
        lines += [f"  {name}:", f"    hostname: {name}"]
        if os:
            iqn = f"iqn.2026-07.com.controller:{name}.{os}"
            lines.append(f'    disks: [{{agent: n, os: {os}, iqn: "{iqn}"}}]')
    layout.workers_yml.write_text("\n".join(lines) + "\n")
    return layout


def test_a_range_is_set_and_cleared(room: Layout) -> None:
    words = ("set_default_os", "lab-[01-02]")
    values = ("--os", "Ubuntu", "--menu-default", "shell", "--menu-timeout", "0")
    ended = run(*words, *values)
    assert (ended.code, ended.out, ended.err) == (0, "2 set\n", "")
    for name in ("lab-01", "lab-02"):
        record = ledger(room)[name]
        assert record["default_os"] == "ubuntu"
        assert record["boot"] == {"menu_default": "shell", "menu_timeout": 0}
    assert [line["worker_id"] for line in trail(room, "worker.boot.set")] == [
        "lab-01",
        "lab-02",
    ]
    assert run(*words, "--clear", "os", "--clear", "menu_default").code == 0
    assert "default_os" not in ledger(room)["lab-01"]
    assert ledger(room)["lab-01"]["boot"] == {"menu_timeout": 0}


def test_one_that_cannot_does_not_hold_up_the_others(room: Layout) -> None:
    ended = run("set_default_os", "--all", "--os", "ubuntu", "--json")
    assert ended.code == 3
    assert ended.json["succeeded"] == [{"worker_id": "lab-01"}, {"worker_id": "lab-02"}]
    failed = {each["worker_id"]: each["error"] for each in ended.json["failed"]}
    assert "its disks are: windows" in failed["lab-03"]["message"]
    assert failed["lab-03"]["field"] == "os"
    assert "has no disk" in failed["lab-04"]["message"]
    assert "lab-03: os: lab-03 has no ubuntu disk" in ended.err
    assert ended.err.splitlines()[-1] == "Partly: 2 of 4 workers failed"
    assert "default_os" not in ledger(room)["lab-03"]


def test_nothing_done_is_exit_code_1(room: Layout) -> None:
    before = snapshot(room)
    ended = run("set_default_os", "lab-03", "lab-04", "--os", "debian")
    assert ended.code == 1
    assert "all 2 workers failed; nothing was changed" in ended.err
    assert snapshot(room) == before


def test_filters_choose(room: Layout) -> None:
    ended = run(
        "set_default_os", "--where", "os=windows", "--menu-default", "config", "--json"
    )
    assert ended.json["succeeded"] == [{"worker_id": "lab-03"}]
    ended = run(
        "set_default_os",
        "lab-[01-03]",
        "--where",
        "has-disk=true",
        "--where",
        "search=02",
        "--menu-timeout=1",
        "--json",
    )
    assert ended.json["succeeded"] == [{"worker_id": "lab-02"}]


def test_an_id_that_is_not_there_stops_all(room: Layout) -> None:
    before = snapshot(room)
    ended = run("set_default_os", "lab-[03-06]", "--menu-default", "shell", "--json")
    assert ended.code == 1
    assert "there is no worker 'lab-05', 'lab-06'; nothing was changed" in ended.err
    assert ended.json["error"]["code"] == "not_found"
    assert snapshot(room) == before


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        ([], "give --os, --menu-default"),
        (["--os", "ubuntu"], "give worker ids, --where or --all"),
        (["lab-01", "--all", "--os", "ubuntu"], "--all (alone)"),
        (["lab-01", "--os", "ubuntu", "--clear", "os"], "os: give a value or --clear"),
        (["lab-01", "--os", "beos"], "os: 'beos' must be one of windows"),
        (["lab-01", "--menu-default", "x"], "menu_default: 'x' must be one of"),
        (["lab-01", "--menu-timeout", "-1"], "menu_timeout: '-1' must be whole"),
        (["lab-[1-", "--os", "ubuntu"], "must have one range"),
        (["--where", "mac=x", "--os", "ubuntu"], "must be NAME=VALUE of state"),
        (["--where", "state", "--os", "ubuntu"], "must be NAME=VALUE of state"),
        (["--where", "state=x", "--os", "ubuntu"], "state: x must be one of"),
        (["--where", "os=x", "--where", "os=y", "--os", "ubuntu"], "more than once"),
    ],
)
def test_a_wrong_call_is_one_line_and_exit_code_2(
    room: Layout, words: list[str], rule: str
) -> None:
    ended = run("set_default_os", *words)
    assert (ended.code, rule in ended.err) == (2, True), ended.err
    assert len(ended.err.splitlines()) == 1


def test_a_room_is_one_write_for_a_hundred(
    room: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ipxeready.index import writer

    writes = []
    commit = writer.intents.commit
    monkeypatch.setattr(
        writer.intents, "commit", lambda *w: (writes.append(w[3]), commit(*w))
    )
    names = [f"pc-{n}" for n in range(150)]
    room.workers_yml.write_text(
        "workers:\n" + "".join(f"  {name}: {{hostname: {name}}}\n" for name in names)
    )
    told: list[tuple[int, int]] = []
    done = workers_boot_set(
        actor=Actor("x", "operator"),
        worker_ids=names,
        menu_default="shell",
        progress=lambda at, total: told.append((at, total)),
    )
    assert done.succeeded == names
    assert writes == ["worker.boot.set"] * 2
    assert told == [(100, 150), (150, 150)]


def test_a_viewer_may_not(room: Layout, viewer: Actor) -> None:
    with pytest.raises(Forbidden):
        workers_boot_set(actor=viewer, worker_ids=["lab-01"], menu_default="shell")
