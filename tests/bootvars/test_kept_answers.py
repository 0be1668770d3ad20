"""Answers that a process keeps are never older than the files, the other processes or what was seen of the nodes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from agents import seen
from agents.models import Agent
from bootvars import runtime, views
from ipxeready import index
from ipxeready.actors import SYSTEM
from ipxeready.conf import REPOSITORY
from ipxeready.storage.paths import Layout
from tests.bootvars.test_who_is_asking import IQN
from tests.workers.helpers import M1, M2

Ask = Callable[[str], str]


@pytest.fixture
def kept(layout: Layout, boot: Ask, monkeypatch: pytest.MonkeyPatch) -> Ask:
    """Ask until the answer is a kept one, and prove that it is."""
    layout.agents_yml.write_text(
        "agents:\n  node-1: {base_url: 'http://192.168.80.3:4840', token: a}\n"
    )
    layout.workers_yml.write_text(
        "workers:\n  pc1:\n    hostname: pc1\n    disks:\n"
        f'      - {{agent: node-1, iqn: "{IQN}:pc1.ubuntu", os: ubuntu}}\n'
        "  pc2: {hostname: pc2}\n"
    )
    layout.dhcp_hosts.write_text(f"{M1},pc1\n")

    def ask(query: str) -> str:
        end = time.monotonic() + 10
        while True:
            first = boot(query)
            with monkeypatch.context() as patch:
                patch.setattr(views, "boot_vars", _fail)
                again = boot(query)
            if "internal error" not in again:
                assert again == first
                return first
            assert time.monotonic() < end, "no answer was ever kept"
            time.sleep(0.01)

    return ask


def _fail(**_: object) -> None:
    raise RuntimeError("the answer was not kept")


def test_a_hand_edit_of_the_ledger_counts_at_once(
    layout: Layout, kept: Ask, boot: Ask
) -> None:
    for number in range(1, 6):
        kept(f"mac={M1}")
        text = layout.workers_yml.read_text()
        layout.workers_yml.write_text(
            text.replace(
                "    hostname: pc1\n", f"    hostname: pc1\n    note: {number}\n"
            )
            if number == 1
            else text.replace(f"note: {number - 1}", f"note: {number}")
        )
        os.utime(layout.workers_yml, ns=(10**18, 10**18 + number))
        assert "menu-default reboot" in boot(f"mac={M1}")
    text = layout.workers_yml.read_text()
    kept(f"mac={M1}")
    layout.workers_yml.write_text(
        text.replace("note:", "default_os: ubuntu\n    note:")
    )
    assert "menu-default ubuntu" in boot(f"mac={M1}")


def test_an_edit_of_the_same_size_within_a_tick_counts(
    layout: Layout, kept: Ask, boot: Ask
) -> None:
    layout.workers_yml.write_text(
        "workers:\n  pc1: {hostname: pc1, boot: {menu_timeout: 1000}}\n"
    )
    kept(f"mac={M1}")
    for timeout in range(1001, 1060):
        layout.workers_yml.write_text(
            f"workers:\n  pc1: {{hostname: pc1, boot: {{menu_timeout: {timeout}}}}}\n"
        )
        assert f"menu-timeout {timeout}\n" in boot(f"mac={M1}")


def test_a_hand_edit_of_the_hosts_file_counts_at_once(
    layout: Layout, kept: Ask, boot: Ask
) -> None:
    assert "hostname pc1\n" in kept(f"mac={M1}")
    layout.dhcp_hosts.write_text(f"{M1},pc2\n")
    assert "hostname pc2\n" in boot(f"mac={M1}")
    kept(f"mac={M1}")
    layout.dhcp_hosts.write_text(f"{M1},pc2\n{M2},pc2\n")
    assert "two machines" in boot(f"mac={M1}")


def test_a_hand_edit_of_the_registry_counts_at_once(
    layout: Layout, kept: Ask, boot: Ask
) -> None:
    assert "iscsi-server 192.168.80.3\n" in kept(f"mac={M1}")
    layout.agents_yml.write_text(
        "agents:\n  node-1: {base_url: 'http://192.168.80.9:4840', token: a}\n"
    )
    assert "iscsi-server 192.168.80.9\n" in boot(f"mac={M1}")


def test_the_switch_counts_at_once(layout: Layout, kept: Ask, boot: Ask) -> None:
    # A hostname alone: nothing to say, and that is kept as well.
    assert "no per-worker" in kept("hostname=pc3")
    layout.settings_json.write_text('{"auto_register": false}')
    assert "no per-worker" in boot("mac=52:54:00:00:00:09")
    runtime.auto_register_set(actor=SYSTEM, enabled=True)
    assert "hostname worker-01\n" in boot("mac=52:54:00:00:00:09")


def test_what_is_learnt_of_a_node_counts_at_once(
    layout: Layout, kept: Ask, boot: Ask
) -> None:
    agent = Agent.objects.get(pk="node-1") if kept(f"mac={M1}") else None
    assert agent is not None
    assert "iscsi-sep :::1:\n" in boot(f"mac={M1}")
    seen.note_backend(agent, "lio")
    assert "iscsi-sep ::::\n" in boot(f"mac={M1}")
    kept(f"mac={M1}")
    seen.note_backend(agent, "stgt")
    assert "iscsi-sep :::1:\n" in boot(f"mac={M1}")


def test_our_own_writes_count_at_once(
    layout: Layout, kept: Ask, api: APIClient
) -> None:
    for timeout in (11, 22, 33):
        kept(f"mac={M1}")
        api.put("/workers/pc1/default-os", {"os": "ubuntu", "menu_timeout": timeout})
        answer = api.get(f"/boot-vars?mac={M1}")
        assert f"menu-timeout {timeout}\n" in answer.content.decode()
    api.delete("/workers/pc2")
    assert "no per-worker" in api.get("/boot-vars?hostname=pc2").content.decode()


def test_a_write_of_another_process_counts_at_once(
    layout: Layout, kept: Ask, boot: Ask, settings: Any
) -> None:
    from django.db import connections

    other = subprocess.Popen(
        [sys.executable, "-c", _OTHER],
        cwd=REPOSITORY,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "ipxeready.settings",
            "IPXE_ROOT": str(layout.root),
            "IPXE_CP_DNSMASQ_RELOAD": "none",
            "INDEX_OF_THE_TEST": str(connections["default"].settings_dict["NAME"]),
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert other.stdin and other.stdout
    try:
        for timeout in range(100, 115):
            kept(f"mac={M1}")
            other.stdin.write(f"{timeout}\n")
            other.stdin.flush()
            assert other.stdout.readline() == f"{timeout}\n"
            assert f"menu-timeout {timeout}\n" in boot(f"mac={M1}")
    finally:
        other.stdin.close()
        other.wait(20)
        other.stdout.close()


_OTHER = """
import os, sys, django
django.setup()
from django.db import connections
connections["default"].settings_dict["NAME"] = os.environ["INDEX_OF_THE_TEST"]
from ipxeready import index
from ipxeready.actors import SYSTEM
from workers.services import worker_boot_set
for line in sys.stdin:
    worker_boot_set(actor=SYSTEM, worker_id="pc1", menu_timeout=int(line))
    print(line, end="", flush=True)
"""


def test_an_index_that_cannot_be_refreshed_stops_no_boot(
    kept: Ask, boot: Ask, layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = kept(f"mac={M1}")

    def broken(wait: bool = False) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(index, "ensure_fresh", broken)
    layout.workers_yml.write_text(layout.workers_yml.read_text() + "# edited\n")
    assert boot(f"mac={M1}") == known
