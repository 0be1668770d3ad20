"""kill -9 of the storage node's agent, and of its tgtd, while disks come and go: nothing is half there, and nothing is lost.

Two machines work on their disks all the time; a killed agent never disturbs them.
"""

from __future__ import annotations

import http.client
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from agents.node.backends.tgtlisting import Shown, parse
from agents.protocol.systems import LUN_NUMBER, STGT
from ipxeready.storage.iqn import initiator_of
from tests.agents.node import node_lab
from tests.agents.node.behaviour.initiator import Unit
from tests.agents.node.behaviour.kills import (
    Bystander,
    Caller,
    check_folder,
    make_masters,
)
from tests.agents.node.behaviour.rig import MIB, iqn_of
from tests.agents.node.node_lab import Tgtd
from tests.agents.node.test_node_serve import Agent, agent
from tests.processes import eventually, free_port

ROUNDS = int(os.environ.get("IPXE_TEST_KILL_STORAGE_ROUNDS", "100"))
CALLERS = 4
OTHERS = ["machine-01.debian", "machine-02.debian"]
#: Whom a round kills, and how often of 20.
_KILLS = {"agent": 5, "tgtd": 14, "both": 1}


class Node:
    """An agent process over a tgtd, each of which is started again on the same port after its kill."""

    def __init__(self, tmp_path: Path, daemon: Tgtd) -> None:
        self.folder = tmp_path / "root" / "images"
        self.folder.mkdir(parents=True)
        self.daemon = daemon
        self._tmp_path = tmp_path
        self._port = free_port()
        self._running: Agent
        self._stack = ExitStack()

    def start(self) -> None:
        """The agent is up at the end."""
        portal = f"127.0.0.1:{self.daemon.port}"
        self._running = self._stack.enter_context(
            agent(
                self._tmp_path,
                self.daemon,
                slow=True,
                port=self._port,
                SLOW="0.02",
                WATCH="0.2",
                IPXE_ISCSI_PORTAL=portal,
            )
        )

    def kill(self) -> None:
        """SIGKILL to the agent."""
        self._running.kill()
        self._stack.close()

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """One request; status 0 when the agent died."""
        try:
            return self._running.call(method, path, body)
        except (OSError, http.client.HTTPException):
            return 0, None

    def shown(self) -> list[Shown]:
        """What tgtd has, past the agent."""
        return parse(self.daemon.listing())

    def exported(self) -> dict[str, str]:
        """The path behind each target that lets somebody in."""
        return {t.iqn: t.luns[0]["backing"] for t in self.shown() if t.luns and t.acl}

    def inside(self) -> dict[str, list[str]]:
        """Who is logged in to the bystanders' targets, by the number of the session."""
        return {
            t.iqn: [s.get("id", "") for s in t.sessions]
            for t in self.shown()
            if t.iqn in map(iqn_of, OTHERS)
        }

    def missing(self) -> list[str]:
        """Images that have no target and were not taken off on purpose: those that a scan exports."""
        status, result = self.ask("POST", "/lun/scan", {})
        assert status == 200, result
        return [each["iqn"] for each in result["created"]]

    @property
    def said(self) -> str:
        """The last words of the agent."""
        return self._running.output[-3000:]

    def end(self) -> None:
        """End it."""
        self._stack.close()


@contextmanager
def _bystanders(node: Node) -> Iterator[list[Bystander]]:
    """Two machines at work for the length of a block."""
    lun = LUN_NUMBER[STGT]
    found = [
        Bystander(Unit(node.daemon.port, iqn, lun), initiator_of(iqn))
        for iqn in map(iqn_of, OTHERS)
    ]
    try:
        eventually(lambda: all(each.worked for each in found), 30)
        yield found
    finally:
        for each in found:
            each.end()


def _read_over_iscsi(node: Node, callers: list[Caller], into: Path) -> None:
    """A machine that boots now sees all of its disk."""
    for caller in callers:
        for name, disk in caller.known.items():
            if disk is not None and disk.on:
                done = node_lab.read_lun(node.daemon, iqn_of(name), into)
                assert done.returncode == 0, done.stderr
                assert into.read_bytes() == caller.content(disk), (name, disk)
                return


@pytest.mark.case(58)
@pytest.mark.case(74)
@pytest.mark.case(75)
@pytest.mark.tgtd
def test_kills_of_agent_and_tgtd_leave_nothing_half_and_lose_nothing(
    tmp_path: Path,
) -> None:
    seed = random.SystemRandom().randrange(10**9)
    sys.stdout.write(f"seed {seed}\n")
    chance = random.Random(seed)
    kills: Counter[str] = Counter()
    with ExitStack() as stack:
        tgtd = stack.enter_context(node_lab.tgtd())
        node = Node(tmp_path, tgtd)
        masters = make_masters(node.folder)
        stack.callback(node.end)
        node.start()
        for name in OTHERS:
            body = {"iqn": iqn_of(name), "size": MIB}
            assert node.ask("POST", "/lun/disk", body)[0] == 201
        callers = [
            Caller(node.ask, node.folder, masters, random.Random(chance.random()), stem)
            for stem in (f"worker-{number}" for number in range(CALLERS))
        ]
        machines = stack.enter_context(ExitStack())
        at_work = machines.enter_context(_bystanders(node))
        for number in range(ROUNDS):
            (whom,) = chance.choices([*_KILLS], [*_KILLS.values()])
            kills[whom] += 1
            before = node.inside()
            stop, broken = threading.Event(), threading.Event()
            with ThreadPoolExecutor(CALLERS) as pool:
                running = [
                    pool.submit(each.work, stop, broken=broken.is_set)
                    for each in callers
                ]
                time.sleep(chance.uniform(0.02, 0.6))
                broken.set()
                if whom != "tgtd":
                    node.kill()
                if whom != "agent":
                    tgtd.kill()
                    machines.close()
                    tgtd.again()
                stop.set()
                for future in running:
                    future.result()
            if whom != "tgtd":
                node.start()
            try:
                if whom == "agent":
                    for each in at_work:
                        each.check()
                    assert node.inside() == before
                else:
                    eventually(lambda: set(map(iqn_of, OTHERS)) <= set(node.exported()))
                    at_work = machines.enter_context(_bystanders(node))
                # The agent has done it by itself.
                assert not (left := node.missing()), left
                check_folder(node.folder, node.exported(), callers, set(OTHERS))
                _read_over_iscsi(node, callers, tmp_path / "read")
            except AssertionError as error:
                raise AssertionError(
                    f"round {number}, {whom} killed: {error}\n{node.exported()}\n{node.said}"
                ) from error
    done = Counter(kind for caller in callers for kind in caller.done)
    sys.stdout.write(f"{dict(kills)} killed; {dict(done)} answered\n")
    assert set(done) == {"create", "export", "delete", "keep", "grow", "reset"}
