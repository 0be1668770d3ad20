"""`grow_disks` and `reset_disks`: a room's disks, each on its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ipxeready.storage.paths import Layout
from tests.nodes import MIB, RealNode
from tests.shell import asked, run
from tests.workers.helpers import ledger

FRESH = b"as the master has it"


@pytest.fixture
def room(layout: Layout, node: RealNode) -> list[str]:
    """Two workers with debian disks that they have written to, and one without."""
    node.register("n")
    stem = node.name()
    names = [f"{stem}-{number}" for number in (1, 2, 3)]
    node.image(f"{stem}_tpl_v1.img", MIB, FRESH)
    lines = ["workers:"] + [f"  {name}: {{hostname: {name}}}" for name in names]
    layout.workers_yml.write_text("\n".join(lines) + "\n")
    made = run(
        *("create_disks", *names[:2], "--type", "master", "--os", "debian"),
        *("--name", f"{stem}_tpl_v1.img", "--node", "n"),
    )
    assert made.code == 0, made.err
    for name in names[:2]:
        image(node, name).write_bytes(b"worn".ljust(MIB, b"\1"))
    return names


def image(node: RealNode, name: str) -> Path:
    return node.folder / f"{name}.debian.img"


def test_a_room_is_reset_and_the_one_without_a_disk_is_told(
    node: RealNode, room: list[str]
) -> None:
    ended = run("reset_disks", *room, "--os", "debian", "--yes", "--json")
    assert ended.code == 3
    assert [each["worker_id"] for each in ended.json["succeeded"]] == room[:2]
    (failed,) = ended.json["failed"]
    assert failed["worker_id"] == room[2]
    assert "has no debian disk" in failed["error"]["message"]
    assert ended.err.splitlines()[-1] == "Partly: 1 of 3 disks failed"
    for name in room[:2]:
        assert image(node, name).read_bytes().startswith(FRESH)


def test_what_is_reset_is_told_first(
    node: RealNode, room: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ("reset_disks", *room, "--os", "debian")
    ended = run(*words, "--dry-run")
    first, _, third = ended.out.splitlines()
    assert (ended.code, ended.err) == (0, "")
    assert first.startswith(f"{room[0]}: debian disk ")
    assert f"(image {room[0]}.debian.img) becomes " in first
    assert first.endswith("_tpl_v1.img, with that one's size")
    assert third == f"{room[2]}: has no debian disk: is refused"
    told = run(*words, "--dry-run", "--json").json["would_reset"]
    assert [each["worker_id"] for each in told] == room
    assert told[2] == {"worker_id": room[2], "os": "debian"}

    iqn = told[0]["iqn"]
    session: Any = {"initiator": "iqn.x:pc", "address": "127.0.0.7"}
    monkeypatch.setattr("workers.goes.sessions_of", lambda things: {iqn: [session]})
    first = run(*words, "--dry-run").out.splitlines()[0]
    assert "IN USE by iqn.x:pc" in first
    assert first.endswith(": is refused")
    assert image(node, room[0]).read_bytes().startswith(b"worn")


def test_a_reset_asks_or_wants_yes(
    node: RealNode, room: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for words in (room, ["--all"]):
        ended = run("reset_disks", *words, "--os", "debian", stdin="y\n")
        assert (ended.code, "give --yes" in ended.err) == (2, True)
    words = [*room[:2], "--os", "debian"]
    code, shown = asked(monkeypatch, "reset_disks", "n\n", *words)
    assert code == 1
    assert shown.index(f"{room[0]}: debian disk") < shown.index(
        "Reset the debian disks of 2 workers?"
    )
    assert "not confirmed; nothing was changed" in shown
    assert image(node, room[0]).read_bytes().startswith(b"worn")
    assert asked(monkeypatch, "reset_disks", "y\n", *words)[0] == 0
    assert image(node, room[0]).read_bytes().startswith(FRESH)


def test_nobody_selected_is_nothing_to_reset(layout: Layout) -> None:
    assert run("reset_disks", "--all", "--os", "debian").out == "0 reset\n"


def test_a_room_is_grown(layout: Layout, node: RealNode, room: list[str]) -> None:
    before = ledger(layout)
    ended = run("grow_disks", *room[:2], "--os", "debian", "--size", "3M")
    assert (ended.code, ended.out, ended.err) == (0, "2 grown\n", "")
    assert [image(node, name).stat().st_size for name in room[:2]] == [3 * MIB] * 2
    assert ledger(layout) == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("grow_disks", "x", "--os", "debian", "--size", "much"), "is not a size"),
        (("grow_disks", "x", "--os", "dos", "--size", "1G"), "os"),
        (("reset_disks", "x", "--os", "debian", "--master", "x.img"), "not a master"),
        (("reset_disks", "--os", "debian"), "give worker ids"),
    ],
)
def test_wrong_words_change_nothing(
    layout: Layout, words: tuple[str, ...], said: str
) -> None:
    ended = run(*words)
    assert ended.code == 2
    assert said in ended.err
