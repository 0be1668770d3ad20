"""`scan_luns`: nodes export what has no target."""

from __future__ import annotations

from ipxeready.storage.paths import Layout
from tests.agents.helpers import trail
from tests.nodes import BASE, RealNode
from tests.shell import run


def test_an_image_without_a_target_is_exported(layout: Layout, node: RealNode) -> None:
    node.register("n1")
    name = node.name()
    node.image(f"{name}.ubuntu.img")
    ended = run("scan_luns", "N1", "--json")
    assert (ended.code, ended.err) == (0, "")
    (result,) = ended.json
    assert result["agent"] == "n1"
    iqn = f"{BASE}:{name}.ubuntu"
    assert iqn in [made["iqn"] for made in result["created"]]
    assert iqn in node.targets()
    assert trail("lun.scan")[-1]["user"].startswith("shell:")
    assert run("scan_luns", "n1").out.startswith("n1: 0 exported, ")


def test_all_enabled_nodes_and_a_dead_one_stops_nobody(
    layout: Layout, node: RealNode, nobody: str, impatient: None
) -> None:
    run("agents", "add", "dead", nobody)
    run("agents", "add", "off", nobody, "--no-enabled")
    node.register("n1")
    ended = run("scan_luns", "--json")
    assert ended.code == 3
    assert [result["agent"] for result in ended.json] == ["dead", "n1"]
    assert "error" in ended.json[0] and "created" in ended.json[1]
    assert "dead: " in ended.err
    assert ended.err.splitlines()[-1] == "Partly: 1 of 2 nodes failed"
    assert run("scan_luns", "dead").code == 1


def test_no_such_node_scans_nothing(layout: Layout, node: RealNode) -> None:
    node.register("n1")
    ended = run("scan_luns", "n1", "x")
    assert (ended.code, "there is no node 'x'" in ended.err) == (1, True)
    assert trail("lun.scan") == []


def test_without_nodes_there_is_nothing_to_do(layout: Layout) -> None:
    ended = run("scan_luns")
    assert (ended.code, ended.out) == (0, "no node is enabled\n")
    assert run("scan_luns", "--json").json == []
