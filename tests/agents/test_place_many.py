"""Nodes for many like disks: each node is asked once, room and counts are kept account of."""

from __future__ import annotations

from collections import Counter

import pytest

from agents.scheduler import pick_disk_nodes
from agents.selectors import agents
from agents.services import agent_register
from ipxeready.actors import SYSTEM
from ipxeready.errors import Conflict
from ipxeready.storage.paths import Layout
from tests.agents.fakes import node_like

GIB = 1 << 30


def picked(number: int, need: int, **counts: int) -> list[str]:
    found = pick_disk_nodes(
        nodes=list(agents()),
        need_bytes=need,
        own_nodes=[set() for _ in range(number)],
        disk_counts=counts,
    )
    return [agent.id for agent in found]


def test_room_that_is_promised_counts(layout: Layout) -> None:
    small = {"free_bytes": 25 * GIB, "total_bytes": 100 * GIB}
    with node_like(small) as one, node_like() as other:
        agent_register(actor=SYSTEM, agent_id="a", base_url=one.base_url)
        agent_register(actor=SYSTEM, agent_id="b", base_url=other.base_url)
        # Two of ten GiB fit on the small one, then the other takes the rest.
        assert Counter(picked(10, 10 * GIB)) == {"a": 2, "b": 8}
        assert picked(3, 10 * GIB, a=5) == ["b", "b", "b"]
        # One question to each node for ten workers.
        asked = [path for _, path, _ in one.requests]
        assert asked == ["/capabilities"] * 2


def test_a_worker_stays_where_its_other_disks_are(layout: Layout) -> None:
    with node_like() as one, node_like() as other:
        agent_register(actor=SYSTEM, agent_id="a", base_url=one.base_url)
        agent_register(actor=SYSTEM, agent_id="b", base_url=other.base_url)
        found = pick_disk_nodes(
            nodes=list(agents()),
            own_nodes=[{"b"}, set(), {"b"}, set()],
            disk_counts={},
        )
        assert [agent.id for agent in found] == ["b", "a", "b", "a"]


def test_nowhere_is_said_with_reasons(layout: Layout) -> None:
    with pytest.raises(Conflict, match="there is no storage node for the disk"):
        picked(3, GIB)
