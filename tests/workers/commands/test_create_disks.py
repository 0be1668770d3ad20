"""`create_disks`: a disk for each of many workers, on named nodes in turn or where the scheduler says."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from ipxeready.storage.paths import Layout
from tests.nodes import BASE, RealNode
from tests.shell import run
from tests.workers.helpers import ledger, snapshot
from workers.disks import disk_spec
from workers.placing import place_disks
from workers.selectors import worker_get

Room = Callable[[int], list[str]]
EMPTY = ("--type", "empty", "--os", "debian", "--size", "1M")


def test_named_nodes_take_turns(
    layout: Layout, node: RealNode, other_node: RealNode, room: Room
) -> None:
    node.register("n1")
    other_node.register("n2")
    names = room(5)
    words = ("create_disks", *names, *EMPTY, "--node", "n2", "--node", "n1")
    ended = run(*words, "--json")
    assert (ended.code, ended.err) == (0, ""), ended
    assert ended.json["succeeded"] == [
        {"worker_id": name, "agent": agent, "iqn": f"{BASE}:{name}.debian"}
        for name, agent in zip(names, ["n2", "n1", "n2", "n1", "n2"], strict=True)
    ]
    assert {
        f"{BASE}:{name}.debian" for name in names[::2]
    } <= other_node.targets().keys()
    for name in names:
        record = ledger(layout)[name]
        assert record["default_os"] == "debian"
        assert "status" not in record["disks"][0]
    again = run(*words)
    assert (again.code, again.err) == (0, "")
    assert again.out.splitlines()[-1] == "0 created, 5 skipped"
    assert f"{names[0]}: skipped: {names[0]} has a debian disk already" in again.out


def test_clones_go_where_the_master_is(
    layout: Layout, node: RealNode, other_node: RealNode, room: Room
) -> None:
    node.register("n1")
    other_node.register("n2")
    master = f"{other_node.name('m')}_tpl_.img"
    other_node.image(master, content=b"boot me")
    names = room(3)
    ended = run(
        "create_disks",
        *names,
        "--type",
        "master",
        "--os",
        "Ubuntu",
        "--name",
        master,
        "--json",
    )
    assert ended.code == 0, ended
    assert {item["agent"] for item in ended.json["succeeded"]} == {"n2"}
    content = (other_node.folder / f"{names[0]}.ubuntu.img").read_bytes()
    assert content.startswith(b"boot me")


def test_the_scheduler_spreads_evenly(
    layout: Layout, node: RealNode, other_node: RealNode, room: Room
) -> None:
    node.register("n1")
    other_node.register("n2")
    names = room(6)
    run("create_disks", names[0], *EMPTY, "--node", "n2")
    ended = run("create_disks", "--all", *EMPTY, "--json")
    assert [item["worker_id"] for item in ended.json["skipped"]] == [names[0]]
    used = Counter(d["agent"] for r in ledger(layout).values() for d in r["disks"])
    assert used == {"n1": 3, "n2": 3}
    # A second disk goes where the first one is.
    spec = disk_spec(type="empty", os="centos", size="1M")
    workers = [worker_get(name) for name in names]
    assert place_disks(workers=workers, spec=spec) == [
        (name, ledger(layout)[name]["disks"][0]["agent"]) for name in names
    ]


def test_one_that_fails_does_not_hold_up_the_others(
    layout: Layout, node: RealNode, room: Room
) -> None:
    node.register("n1")
    names = room(3)
    node.image(f"{names[1]}.debian.img")
    ended = run("create_disks", *names, *EMPTY, "--json")
    assert ended.code == 3
    assert [item["worker_id"] for item in ended.json["succeeded"]] == names[::2]
    (failed,) = ended.json["failed"]
    assert failed["worker_id"] == names[1]
    assert f"{names[1]}: " in ended.err
    assert ended.err.splitlines()[-1] == "Partly: 1 of 3 disks failed"
    assert ledger(layout)[names[1]]["disks"] == []
    # The image that lies there is attached by its own name.
    ended = run(
        "create_disks", *names, "--type", "existing", "--os", "debian", "--node", "n1"
    )
    assert (ended.code, ended.out.splitlines()[-1]) == (0, "1 created, 2 skipped")


def test_a_dead_node_fails_all_of_its_own(
    layout: Layout, room: Room, impatient: None
) -> None:
    run("agents", "add", "dead", "http://127.0.0.1:9")
    names = room(2)
    ended = run("create_disks", *names, *EMPTY, "--node", "dead", "--json")
    assert ended.code == 1
    assert len(ended.json["failed"]) == 2
    assert "all 2 disks failed" in ended.err
    ended = run("create_disks", *names, *EMPTY)
    assert ended.code == 1
    assert "no storage node can take the disk: dead is unreachable" in ended.err
    assert len(ended.err.splitlines()) == 1
    assert all(record["disks"] == [] for record in ledger(layout).values())


@pytest.mark.parametrize(
    ("words", "code", "rule"),
    [
        (["--all", *EMPTY, "--node", "x"], 1, "there is no node 'x'"),
        (["x", *EMPTY], 1, "there is no worker 'x'"),
        ([*EMPTY], 2, "give worker ids"),
        (["--all", "--type", "empty", "--os", "debian"], 2, "size: is needed"),
        (["--all", *EMPTY, "--size", "1"], 2, "size: "),
        (["--all", *EMPTY, "--os", "beos"], 2, "os: 'beos' must be one of"),
        (["--all", *EMPTY, "--name", "x"], 2, "name: does not go with type empty"),
        (["--all", "--type", "master", "--os", "debian"], 2, "name: is needed"),
        (
            ["--all", "--type", "master", "--os", "debian", "--name", "../x"],
            2,
            "name: ",
        ),
        (["--all", "--type", "existing", "--os", "debian"], 2, "--node is needed"),
        (["--all", *EMPTY, "--node", "off"], 1, "node off is disabled"),
        (["--all", *EMPTY, "--node", "cd"], 1, "node cd takes no disks"),
        (
            ["--all", *EMPTY],
            1,
            "cd takes no disks (role.disk is false); off is disabled",
        ),
    ],
)
def test_a_refusal_is_one_line_and_changes_nothing(
    layout: Layout, words: list[str], code: int, rule: str
) -> None:
    run("register_workers", "-", stdin="worker_id,mac\na,52:54:00:00:09:01\n")
    run("agents", "add", "off", "http://127.0.0.1:9", "--no-enabled")
    run("agents", "add", "cd", "http://127.0.0.1:9", "--no-disk")
    before = snapshot(layout)
    ended = run("create_disks", *words)
    assert (ended.code, rule in ended.err) == (code, True), ended.err
    assert len(ended.err.splitlines()) == 1
    assert ended.out == ""
    assert snapshot(layout) == before


def test_nobody_selected_is_nothing_to_do(layout: Layout) -> None:
    ended = run("create_disks", "--all", *EMPTY)
    assert (ended.code, ended.out) == (0, "0 created, 0 skipped\n")
