"""Whether a page may say that dnsmasq has a binding."""

from __future__ import annotations

import dataclasses
import os
import time
from typing import Any

import pytest
from django.utils import translation

from ipxeready.conf import Reload
from ipxeready.storage.paths import Layout
from workers.reload import Reloader
from workers.told import dnsmasq_told


@pytest.fixture
def command(layout: Layout, settings: Any) -> Any:
    """Sets the command that reloads dnsmasq."""

    def use(value: str) -> Reloader:
        way = Reload("command", value)
        settings.IPXE = dataclasses.replace(settings.IPXE, dnsmasq_reload_set=way)
        return Reloader("command", value, layout)

    with translation.override("en"):
        yield use


def test_nobody_knows_where_nobody_reloads(layout: Layout) -> None:
    told = dnsmasq_told()
    assert told.active is None
    assert "IPXE_CP_DNSMASQ_RELOAD" in told.words


def test_a_reload_after_the_last_change_makes_it_active(
    command: Any, layout: Layout
) -> None:
    reloader = command("true")
    assert dnsmasq_told().active is None
    before = time.time() - 100
    os.utime(layout.dhcp_hosts, (before, before))
    assert reloader.reload().active
    assert dnsmasq_told().active is True
    # Edited by hand, and nobody was told.
    after = time.time() + 100
    os.utime(layout.dhcp_hosts, (after, after))
    told = dnsmasq_told()
    assert told.active is False
    assert "changed since" in told.words


def test_a_reload_that_failed_says_why(command: Any) -> None:
    command("false").reload()
    told = dnsmasq_told()
    assert told.active is False
    assert "exit status 1" in told.words


def test_without_a_running_dnsmasq_nothing_is_active(
    layout: Layout, settings: Any
) -> None:
    way = Reload("pidfile", str(layout.root / "none.pid"))
    settings.IPXE = dataclasses.replace(settings.IPXE, dnsmasq_reload_set=way)
    told = dnsmasq_told()
    assert told.active is False
    assert "not running" in told.words
