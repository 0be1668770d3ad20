"""Which node takes a disk, and the reasons when none does."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest

from agents.models import Agent
from agents.scheduler import check_named_node, pick_disk_node
from ipxeready.errors import Conflict, Invalid, Unavailable
from tests.agents.fakes import node_like
from tests.nodes import RealNode

pytestmark = pytest.mark.usefixtures("layout")

GIB = 1 << 30
MASTER = "ubuntu_tpl_v1.img"


@contextlib.contextmanager
def _nodes(**given: dict[str, Any]) -> Iterator[list[Agent]]:
    """Fakes by name: `capabilities`, `masters`, `size`, and fields of the row."""
    with contextlib.ExitStack() as stack:
        found = []
        for name, about in given.items():
            about = dict(about)
            fake = stack.enter_context(
                node_like(
                    about.pop("capabilities", None),
                    about.pop("masters", None),
                    about.pop("size", 1 << 20),
                )
            )
            found.append(
                Agent(id=name, base_url=about.pop("base_url", fake.base_url), **about)
            )
        yield found


def _pick(nodes: list[Agent], **wishes: Any) -> str:
    wishes = {"own_nodes": set(), "disk_counts": {}, **wishes}
    return str(pick_disk_node(nodes=nodes, **wishes).id)


def test_the_smallest_id_when_nothing_tells_them_apart() -> None:
    with _nodes(c={}, a={}, b={}) as nodes:
        assert _pick(nodes) == "a"


def test_the_fewest_disks_go_before_the_id() -> None:
    with _nodes(a={}, b={}, c={}) as nodes:
        assert _pick(nodes, disk_counts={"a": 2, "b": 1, "c": 1}) == "b"


def test_the_workers_other_disks_go_before_the_fewest() -> None:
    with _nodes(a={}, b={}) as nodes:
        assert _pick(nodes, disk_counts={"b": 9}, own_nodes={"b"}) == "b"


def test_only_who_holds_the_master_can_clone_it() -> None:
    with _nodes(a={}, b={"masters": [MASTER]}) as nodes:
        assert _pick(nodes, master=MASTER, own_nodes={"a"}) == "b"


def test_room_for_the_whole_disk_goes_before_the_rest() -> None:
    with _nodes(a={"capabilities": {"free_bytes": 10 * GIB}}, b={}) as nodes:
        assert _pick(nodes, need_bytes=40 * GIB, own_nodes={"a"}) == "b"
        assert _pick(nodes, need_bytes=5 * GIB, own_nodes={"a"}) == "a"


@pytest.mark.case(71)
def test_sparse_disks_may_be_promised_more_than_there_is() -> None:
    with _nodes(a={"capabilities": {"free_bytes": 10 * GIB}}) as nodes:
        assert _pick(nodes, need_bytes=40 * GIB) == "a"


def test_a_clone_that_shares_blocks_needs_no_room_of_its_own() -> None:
    small = {"free_bytes": 10 * GIB}
    with _nodes(
        a={"capabilities": small, "masters": [MASTER], "size": 40 * GIB},
        b={"capabilities": {"reflink": False}, "masters": [MASTER], "size": 40 * GIB},
    ) as nodes:
        assert _pick(nodes, master=MASTER) == "a"
    with _nodes(
        a={
            "capabilities": {**small, "reflink": False},
            "masters": [MASTER],
            "size": 40 * GIB,
        },
        b={"masters": [MASTER], "size": 40 * GIB},
    ) as nodes:
        assert _pick(nodes, master=MASTER) == "b"


def test_nodes_out_of_the_question_are_passed_over(nobody: str) -> None:
    with _nodes(
        a={"enabled": False},
        b={"role_disk": False},
        c={"base_url": nobody},
        d={"capabilities": {"free_bytes": 1000}},
        e={},
    ) as nodes:
        assert _pick(nodes) == "e"


def test_a_refusal_names_each_node_and_why() -> None:
    with (
        _nodes(
            a={"enabled": False},
            b={"role_disk": False},
            c={"capabilities": {"free_bytes": 1000}, "masters": [MASTER]},
            d={},
            e={"capabilities": {"clone": False}, "masters": [MASTER]},
        ) as nodes,
        pytest.raises(Conflict) as caught,
    ):
        _pick(nodes, master=MASTER)
    words = caught.value.message
    assert "a is disabled" in words
    assert "b takes no disks" in words
    assert "c is full" in words
    assert f"d has no master {MASTER}" in words
    assert "e cannot clone" in words
    assert set(caught.value.extra["passed_over"]) == set("abcde")


def test_when_one_that_might_have_done_is_unreachable_it_is_503(nobody: str) -> None:
    with (
        _nodes(a={}, b={"base_url": nobody}) as nodes,
        pytest.raises(Unavailable) as caught,
    ):
        _pick(nodes, master=MASTER)
    assert "a has no master" in caught.value.message
    assert "b is unreachable" in caught.value.message


def test_no_node_at_all_says_what_to_do() -> None:
    with pytest.raises(Conflict, match="register one"):
        _pick([])


def test_real_nodes_are_asked(node: RealNode, other_node: RealNode) -> None:
    master = f"{other_node.name()}_tpl_v1.img"
    other_node.image(master)
    agents = [
        Agent(id="a", base_url=node.base_url, token=node.token),
        Agent(id="b", base_url=other_node.base_url, token=other_node.token),
    ]
    assert _pick(agents, need_bytes=1 << 20) == "a"
    assert _pick(agents, master=master) == "b"


def test_a_master_that_is_no_raw_disk_is_on_no_node(
    node: RealNode, other_node: RealNode
) -> None:
    master = f"{node.name('raw')}_tpl_v1.img"
    node.image(master, content=b"QFI\xfb\0\0\0\3")
    other_node.image(master)
    agents = [
        Agent(id="a", base_url=node.base_url, token=node.token),
        Agent(id="b", base_url=other_node.base_url, token=other_node.token),
    ]
    assert _pick(agents, master=master) == "b"
    with pytest.raises(Conflict, match="qcow2 inside"):
        _pick(agents[:1], master=master)


def test_a_named_node_must_be_enabled_and_have_the_role() -> None:
    agent = Agent(id="n", base_url="http://192.0.2.1")
    check_named_node(agent, "disk")
    with pytest.raises(Invalid, match="role.cd") as caught:
        check_named_node(agent, "cd", field="agent")
    assert caught.value.field == "agent"
    agent.role_disk = False
    with pytest.raises(Invalid):
        check_named_node(agent, "disk")
    agent.enabled = False
    with pytest.raises(Conflict, match="disabled"):
        check_named_node(agent, "disk")
