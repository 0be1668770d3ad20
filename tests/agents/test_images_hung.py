"""Who asks a node that hangs for its images gives up in time, and so does the thread that asks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from agents import http, intake, offers, overview
from agents.services import agent_register
from ipxeready.actors import SYSTEM
from ipxeready.errors import ApplicationError
from ipxeready.storage.paths import Layout
from tests.agents import fakes

LIMIT = 0.3
QUESTIONS: list[Callable[[], object]] = [
    lambda: intake.image_list(actor=SYSTEM, agent_id="n", timeout=LIMIT),
    lambda: intake.node_of_image(name="a.img", nodes=intake.selectors.agents_enabled_for_disks()),
    lambda: offers.offers(actor=SYSTEM),
    lambda: overview.choices_of(actor=SYSTEM, agent_id="n", timeout=LIMIT),
]  # fmt: skip


@pytest.mark.case(83)
@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("ask", QUESTIONS)
def test_a_question_is_given_up_by_its_thread_too(
    layout: Layout, monkeypatch: pytest.MonkeyPatch, ask: Callable[[], object]
) -> None:
    """Or the few calls that may be under way to a node would be taken for ten minutes."""
    limits: dict[str, float] = {}
    real = http.exchange

    def exchange(method: str, url: str, **words: Any) -> Any:
        limits[url.rpartition("/")[2]] = words["timeout"]
        if not url.endswith("/images"):
            return real(method, url, **words)
        raise http.Unreached("no answer", sent=True)

    monkeypatch.setattr(http, "exchange", exchange)
    with fakes.node_like() as fake:
        agent_register(actor=SYSTEM, agent_id="n", base_url=fake.base_url, token="t")
        with contextlib.suppress(ApplicationError):
            ask()
    assert 0 < limits["images"] <= 1.0
