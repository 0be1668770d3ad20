"""Disks of many workers before they are made: masters on every chosen node, nodes in turn, who is skipped."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents.masters import masters_offered
from ipxeready.actors import Actor
from ipxeready.errors import ApplicationError, Conflict, Forbidden, Invalid, Unavailable
from ipxeready.storage.paths import Layout
from tests.nodes import RealNode
from tests.processes import free_port
from workers import planning
from workers.batches import batch_spec

MASTER = "batch_tpl_a.img"


@pytest.fixture
def nodes(layout: Layout, node: RealNode, other_node: RealNode) -> list[RealNode]:
    """Two nodes, `a` with two masters, `b` with one of them."""
    for each, name in ((node, "a"), (other_node, "b")):
        each.register(name)
        _master(each, MASTER)
    _master(node, "batch_tpl_only_a.img")
    return [node, other_node]


def _master(node: RealNode, name: str) -> Path:
    path = node.folder / name
    if not path.exists():
        node.image(name)
    return path


@pytest.fixture
def gone(layout: Layout, nodes: list[RealNode]) -> str:
    """A node that does not answer."""
    from agents.services import agent_register
    from ipxeready.actors import SYSTEM

    address = f"http://127.0.0.1:{free_port()}"
    agent_register(actor=SYSTEM, agent_id="gone", base_url=address, token="t")
    return "gone"


def _workers(layout: Layout, *names: str, disk: str = "") -> None:
    lines = ["workers:"]
    for name in names:
        lines += [f"  {name}:", f"    hostname: {name}"]
        if name == disk:
            lines += [
                "    disks:",
                f"      - {{agent: b, os: debian, iqn: 'iqn.2026-07.com.controller:{name}.debian',"
                f" filename: {name}.debian.img, backing: /x}}",
            ]
    layout.workers_yml.write_text("\n".join(lines) + "\n")
    from ipxeready.index import ensure_fresh

    ensure_fresh(wait=True)


def _why(error: ApplicationError | None) -> str:
    assert error is not None
    return error.message


def test_only_masters_that_every_named_node_has_are_offered(
    nodes: list[RealNode], viewer: Actor
) -> None:
    offer = masters_offered(actor=viewer, nodes=["B", "a"])
    assert MASTER in offer.masters
    assert "batch_tpl_only_a.img" not in offer.masters
    assert offer.lacking["batch_tpl_only_a.img"] == ["b"]
    with pytest.raises(Invalid, match="is not on b: choose one that every chosen"):
        offer.check("batch_tpl_only_a.img")
    with pytest.raises(Invalid, match="'none_tpl_.img' is not on a, b"):
        offer.check("none_tpl_.img")
    offer.check(MASTER)


def test_a_master_that_one_of_the_named_nodes_cannot_clone_is_not_offered(
    nodes: list[RealNode], viewer: Actor
) -> None:
    name = f"{nodes[0].name()}_tpl_1.img"
    nodes[0].image(name)
    nodes[1].image(name, content=b"QFI\xfb")
    offer = masters_offered(actor=viewer, nodes=["a", "b"])
    assert name not in offer.masters
    with pytest.raises(Conflict, match=f"^b: {name} is qcow2 inside") as raised:
        offer.check(name)
    assert (raised.value.code, raised.value.field) == ("master.unusable", "name")
    # Whoever names no node gets one that can.
    assert name in masters_offered(actor=viewer).masters
    assert name in masters_offered(actor=viewer, nodes=["a"]).masters


def test_without_nodes_whatever_some_node_has_is_offered(
    nodes: list[RealNode], gone: str, viewer: Actor
) -> None:
    offer = masters_offered(actor=viewer)
    assert {MASTER, "batch_tpl_only_a.img"} <= set(offer.masters)
    assert list(offer.silent) == [gone]


def test_a_chosen_node_that_is_dead_is_named_and_nothing_is_offered(
    nodes: list[RealNode], gone: str, viewer: Actor
) -> None:
    offer = masters_offered(actor=viewer, nodes=["a", gone])
    assert not offer.masters
    assert list(offer.silent) == [gone]
    assert not offer.lacking
    with pytest.raises(Unavailable, match="on every node: gone: "):
        offer.check(MASTER)


def test_the_plan_says_what_becomes_of_each(
    layout: Layout, nodes: list[RealNode], operator: Actor
) -> None:
    _workers(layout, "pc1", "pc2", "pc3", "pc4", disk="pc3")
    spec = batch_spec(type="master", os="debian", name=MASTER)
    chosen = {"pc4": "", "pc2": "b", "pc1": "a", "pc3": "a", "pc9": "a"}
    plan = planning.plan_disks(actor=operator, spec=spec, chosen=chosen)
    assert plan.problem is None
    told = [(step.worker_id, step.node, step.fate) for step in plan.steps]
    assert told[:3] == [
        ("pc1", "a", "make"),
        ("pc2", "b", "make"),
        ("pc3", "b", "skip"),
    ]
    assert told[3][0] == "pc4"
    assert told[3][1] in ("a", "b")
    assert told[4] == ("pc9", "a", "refuse")
    assert plan.number("make") == 3
    # The batch is told of all of them, so that its result is.
    assert [name for name, _ in plan.targets()] == ["pc1", "pc2", "pc3", "pc4", "pc9"]


def test_a_plan_with_a_master_that_a_chosen_node_lacks_has_a_problem(
    layout: Layout, nodes: list[RealNode], operator: Actor
) -> None:
    _workers(layout, "pc1", "pc2")
    spec = batch_spec(type="master", os="debian", name="batch_tpl_only_a.img")
    chosen = {"pc1": "a", "pc2": "b"}
    plan = planning.plan_disks(actor=operator, spec=spec, chosen=chosen)
    assert "is not on b" in _why(plan.problem)
    # A worker that will be skipped needs no master.
    _workers(layout, "pc1", "pc2", disk="pc2")
    plan = planning.plan_disks(actor=operator, spec=spec, chosen=chosen)
    assert plan.problem is None


def test_kept_images_need_their_node_named(
    layout: Layout, nodes: list[RealNode], operator: Actor
) -> None:
    _workers(layout, "pc1")
    spec = batch_spec(type="existing", os="debian")
    plan = planning.plan_disks(actor=operator, spec=spec, chosen={"pc1": ""})
    assert "where the images lie" in _why(plan.problem)


def test_nodes_take_turns_or_one_takes_all(
    layout: Layout, nodes: list[RealNode]
) -> None:
    chosen = {"pc3": "a", "pc1": "", "pc2": "b"}
    shared = planning.shared_out(chosen, ["b", "a"])
    assert shared == {"pc1": "b", "pc2": "a", "pc3": "b"}
    assert set(planning.shared_out(chosen, ["a"]).values()) == {"a"}
    with pytest.raises(Invalid, match="choose the nodes"):
        planning.shared_out(chosen, [])


def test_a_choice_is_counted_by_node_and_by_who_has_such_a_disk(
    layout: Layout, nodes: list[RealNode]
) -> None:
    _workers(layout, "pc1", "pc2", "pc3", disk="pc3")
    chosen = {"pc1": "a", "pc2": "b", "pc3": "b"}
    count = planning.count_chosen(chosen, "debian")
    assert (count.chosen, count.on, count.present) == (3, {"a": 1, "b": 2}, 1)
    assert planning.count_chosen(chosen, "ubuntu").present == 0


def test_a_disabled_node_is_said_before_anything_begins(
    layout: Layout, nodes: list[RealNode], operator: Actor, administrator: Actor
) -> None:
    from agents.services import agent_update

    agent_update(actor=administrator, agent_id="b", enabled=False)
    _workers(layout, "pc1")
    spec = batch_spec(type="empty", os="debian", size="1M")
    plan = planning.plan_disks(actor=operator, spec=spec, chosen={"pc1": "b"})
    (step,) = plan.steps
    assert (step.fate, "is disabled" in step.why) == ("refuse", True)
    with pytest.raises(Conflict):
        planning.shared_out({"pc1": ""}, ["b"])


def test_a_viewer_plans_nothing(layout: Layout, viewer: Actor) -> None:
    spec = batch_spec(type="empty", os="debian", size="1M")
    with pytest.raises(Forbidden):
        planning.plan_disks(actor=viewer, spec=spec, chosen={"pc1": ""})
