"""`delete_workers`: says what goes, asks, deletes; what is in use or cannot be asked stays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ipxeready.storage.paths import Layout
from tests.nodes import BASE, RealNode
from tests.shell import asked, run
from tests.workers.helpers import ledger, live_hosts, snapshot, trail

Room = Callable[[int], list[str]]


@pytest.fixture
def pcs(layout: Layout, node: RealNode, room: Room) -> list[str]:
    """Three workers with a disk each."""
    node.register("n1")
    names = room(3)
    words = ("--type", "empty", "--os", "debian", "--size", "1M")
    assert run("create_disks", *names, *words).code == 0
    return names


def image(node: RealNode, name: str) -> Path:
    return node.folder / f"{name}.debian.img"


def test_they_go_with_all_that_is_theirs(
    layout: Layout, node: RealNode, pcs: list[str]
) -> None:
    ended = run("delete_workers", *pcs[:2], "--yes", "--json")
    assert (ended.code, ended.err) == (0, "")
    assert ended.json == {
        "succeeded": [{"worker_id": name, "hostname": name} for name in pcs[:2]],
        "failed": [],
    }
    assert list(ledger(layout)) == pcs[2:]
    assert [line.split(",")[1] for line in live_hosts(layout)] == pcs[2:]
    assert f"{BASE}:{pcs[0]}.debian" not in node.targets()
    assert f"{BASE}:{pcs[2]}.debian" in node.targets()
    assert image(node, pcs[0]).exists()
    assert run("delete_workers", "--all", "--delete-disk", "--yes").out == "1 deleted\n"
    assert not image(node, pcs[2]).exists()
    assert ledger(layout) == {}


@pytest.mark.case(98)
def test_what_goes_and_what_stays_is_told_first(
    layout: Layout, pcs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = layout.dhcp_hosts.read_text().replace(
        f",{pcs[0]}\n", f",set:lab,{pcs[0]},127.0.0.51\n"
    )
    layout.dhcp_hosts.write_text(text)
    before = snapshot(layout)
    for words, fate in (((), "stays"), (("--delete-disk",), "deleted")):
        ended = run("delete_workers", *pcs[:2], "--dry-run", *words)
        first, second = ended.out.splitlines()
        assert first == (
            f"{pcs[0]}: hostname {pcs[0]}; 52:54:00:00:09:00 (127.0.0.51, tag lab); "
            f"debian disk {BASE}:{pcs[0]}.debian on n1 (image {pcs[0]}.debian.img {fate})"
        )
        assert second.startswith(f"{pcs[1]}: ")
        (entry, _) = run(
            "delete_workers", *pcs[:2], "--dry-run", "--json", *words
        ).json["would_delete"]
        assert entry["bindings"] == [
            {"mac": "52:54:00:00:09:00", "ip": "127.0.0.51", "tags": ["lab"]}
        ]
        assert entry["disks"][0]["image_deleted"] == (fate == "deleted")
    assert snapshot(layout) == before


def test_a_terminal_is_asked(
    layout: Layout, pcs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    before = snapshot(layout)
    for answer in ("", "\n", "n\n", "yup\n"):
        code, shown = asked(monkeypatch, "delete_workers", answer, *pcs)
        assert code == 1
        assert shown.index(f"{pcs[0]}: hostname") < shown.index(
            "Delete 3 workers? [y/N]"
        )
        assert "not confirmed; nothing was changed" in shown
    assert snapshot(layout) == before
    code, shown = asked(monkeypatch, "delete_workers", "Y\n", *pcs)
    assert (code, ledger(layout)) == (0, {})
    assert "deleting [##############################] 3/3" in shown


def test_without_a_terminal_yes_is_needed(layout: Layout, pcs: list[str]) -> None:
    before = snapshot(layout)
    ended = run("delete_workers", *pcs, stdin="y\n")
    assert (ended.code, "give --yes" in ended.err) == (2, True)
    assert snapshot(layout) == before


def test_an_id_that_is_not_there_stops_all(layout: Layout, pcs: list[str]) -> None:
    before = snapshot(layout)
    ended = run("delete_workers", *pcs, "pc-99", "--yes")
    assert (ended.code, "there is no worker 'pc-99'" in ended.err) == (1, True)
    assert snapshot(layout) == before


def test_a_missing_target_is_named_and_can_be_ignored(
    layout: Layout, node: RealNode, pcs: list[str]
) -> None:
    from agents.nodes import lun_delete
    from ipxeready.actors import SYSTEM

    lun_delete(actor=SYSTEM, agent_id="n1", iqn=f"{BASE}:{pcs[1]}.debian")
    ended = run("delete_workers", *pcs, "--yes", "--json")
    assert ended.code == 3
    assert [item["worker_id"] for item in ended.json["failed"]] == [pcs[1]]
    assert f"{pcs[1]}: node n1 has no target" in ended.err
    assert ended.err.splitlines()[-1] == "Partly: 1 of 3 workers failed"
    assert list(ledger(layout)) == [pcs[1]]
    words = ("delete_workers", pcs[1], "--yes")
    assert run(*words).code == 1
    assert run(*words, "--ignore-missing-target").code == 0
    assert ledger(layout) == {}


def test_a_node_that_is_gone_is_forgotten_only_when_asked(
    layout: Layout, node: RealNode, pcs: list[str], impatient: None
) -> None:
    text = layout.agents_yml.read_text()
    layout.agents_yml.write_text(text.replace(node.base_url, "http://127.0.0.1:9"))
    ended = run("delete_workers", *pcs, "--yes")
    assert ended.code == 1
    assert "node n1 of the debian disk" in ended.err
    assert list(ledger(layout)) == pcs
    ended = run("delete_workers", pcs[0], "--yes", "--forget")
    assert (ended.code, ended.out) == (0, "1 deleted\n")
    # Nor does it have to be registered any more.
    layout.agents_yml.write_text("agents: {}\n")
    assert run("delete_workers", *pcs[1:], "--yes").code == 1
    ended = run("delete_workers", *pcs[1:], "--yes", "--forget", "--json")
    assert (ended.code, len(ended.json["succeeded"])) == (0, 2)
    assert (ledger(layout), live_hosts(layout)) == ({}, [])
    assert f"{BASE}:{pcs[0]}.debian" in node.targets()
    done = [
        line for line in trail(layout, "worker.disk.delete") if line["status"] == "ok"
    ]
    assert [line["forgotten"] for line in done] == [True] * 3


def test_a_session_is_cut_only_by_force(
    layout: Layout, pcs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from agents.client import NodeClient

    real = NodeClient.targets
    iqn = f"{BASE}:{pcs[0]}.debian"

    def with_session(self: NodeClient) -> Any:
        found = real(self)
        for target in found:
            if target["iqn"] == iqn:
                target["sessions"] = [{"initiator": "iqn.x:pc", "address": "127.0.0.7"}]
        return found

    monkeypatch.setattr(NodeClient, "targets", with_session)
    ended = run("delete_workers", *pcs, "--yes", "--json")
    assert ended.code == 3
    assert "is in use by iqn.x:pc" in ended.json["failed"][0]["error"]
    assert list(ledger(layout)) == [pcs[0]]
    assert run("delete_workers", pcs[0], "--yes", "--force").code == 0
    assert ledger(layout) == {}


def test_nobody_selected_is_nothing_to_do(layout: Layout) -> None:
    assert run("delete_workers", "--all").out == "0 deleted\n"
    ended = run("delete_workers", "--where", "state=ready", "--json")
    assert ended.json == {"succeeded": [], "failed": []}
    assert run("delete_workers").code == 2
