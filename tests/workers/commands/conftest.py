"""A room of workers, made by the command."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ipxeready.storage.paths import Layout
from tests.nodes import RealNode
from tests.shell import run


@pytest.fixture
def room(layout: Layout, node: RealNode) -> Callable[[int], list[str]]:
    """Registers so many workers with names that no other test has on the nodes."""

    def make(number: int) -> list[str]:
        names = [node.name() for _ in range(number)]
        rows = [f"{n},52:54:00:00:09:{at:02x}\n" for at, n in enumerate(names)]
        ended = run("register_workers", "-", stdin="worker_id,mac\n" + "".join(rows))
        assert ended.code == 0, ended
        return names

    return make
