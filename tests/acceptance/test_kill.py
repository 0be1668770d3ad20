"""kill -9 of the whole service while it writes, again and again: what was answered is there, and the files agree."""

from __future__ import annotations

import os
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.room import Answer, Files, Room, read_files, room

ROUNDS = int(os.environ.get("IPXE_TEST_KILL_ROUNDS", "20"))
WRITES = 200
CALLERS = 8


class Writer:
    """One caller with machines of its own; it remembers what it was told and what it had asked last."""

    def __init__(self, service: Room, number: int, chance: random.Random) -> None:
        self.service = service
        self.number = number
        self.chance = chance
        self.count = 0
        #: What must be true: worker -> (mac, timeout), None where it must be gone.
        self.known: dict[str, tuple[str, int | None] | None] = {}
        #: Not answered: either way is right.
        self.open: dict[str, tuple[str, int | None] | None] = {}
        #: MACs that booted, with the name that they were told; None when no answer came.
        self.booted: dict[str, str | None] = {}

    def mac(self) -> str:
        self.count += 1
        return (
            f"52:54:{self.number:02x}:00:{self.count // 256:02x}:{self.count % 256:02x}"
        )

    def write(self) -> bool:
        """One write; False when the service did not answer."""
        there = [name for name, state in self.known.items() if state]
        kind = self.chance.choice(["create", "boot", "mac", "default", "delete"])
        if kind == "boot":
            return self._boot()
        if kind == "create" or not there:
            name = f"w{self.number}-{self.count}"
            mac = self.mac()
            body: Any = {"worker_id": name, "mac": mac}
            return self._send("POST", "/workers", body, name, (mac, None))
        name = self.chance.choice(there)
        state = self.known[name]
        assert state is not None
        path = f"/workers/{name}"
        if kind == "mac":
            mac = self.mac()
            return self._send("PUT", f"{path}/mac", {"mac": mac}, name, (mac, state[1]))
        if kind == "default":
            timeout = self.chance.randrange(1, 10**6)
            body = {"menu_timeout": timeout}
            return self._send(
                "PUT", f"{path}/default-os", body, name, (state[0], timeout)
            )
        return self._send("DELETE", path, None, name, None)

    def _send(
        self,
        method: str,
        path: str,
        body: Any,
        name: str,
        wanted: tuple[str, int | None] | None,
    ) -> bool:
        answer: Answer = self.service.ask(method, path, body)
        if answer.status == 0:
            self.open[name] = wanted
            return False
        assert answer.status in (200, 201), (method, path, body, answer)
        self.known[name] = wanted
        return True

    def _boot(self) -> bool:
        mac = self.mac()
        answer = self.service.boot(mac)
        if answer.status == 0:
            self.booted[mac] = None
            return False
        assert answer.status == 200
        name = [w for w in answer.body.split("\n") if w.startswith("set hostname ")]
        assert name, answer.body
        self.booted[mac] = name[0].removeprefix("set hostname ")
        return True

    def settle(self, files: Files) -> None:
        """Everything that was answered is there; what was not answered is one of both; then it is known."""
        by_name = {name: mac for mac, name in files.bound.items()}
        for name, state in list(self.known.items()):
            record = files.workers.get(name)
            found = None
            if record is not None:
                timeout = (record.get("boot") or {}).get("menu_timeout")
                found = (by_name.get(name), timeout)
            right = [state]
            if name in self.open:
                right.append(self.open[name])
            assert found in right, (name, found, right)
            self.known[name] = found  # type: ignore[assignment]
        for name, wanted in self.open.items():
            if name not in self.known and name in files.workers:
                assert wanted is not None
                assert by_name.get(name) == wanted[0]
                self.known[name] = wanted
        self.open.clear()
        for mac, name in self.booted.items():
            if name is not None:
                assert files.bound.get(mac) == name
                assert name in files.workers


def write_on(writer: Writer, stop: threading.Event) -> int:
    """Write until the service is gone; how many were answered."""
    written = 0
    while not stop.is_set() and written < WRITES // CALLERS:
        if not writer.write():
            break
        written += 1
    return written


def agree(files: Files) -> None:
    """Every worker has its binding and every binding its worker: all of them are ours here."""
    assert set(files.bound.values()) == {r["hostname"] for r in files.workers.values()}


@pytest.mark.case(93)
@pytest.mark.case(28)
def test_what_was_answered_survives_a_kill_at_any_moment(tmp_path: Path) -> None:
    seed = random.SystemRandom().randrange(10**9)
    sys.stdout.write(f"seed {seed}\n")
    chance = random.Random(seed)
    root = tmp_path / "root"
    with room(root, IPXE_SERVE_WORKERS="2", IPXE_SERVE_THREADS="8") as service:
        writers = [
            Writer(service, n, random.Random(chance.random())) for n in range(CALLERS)
        ]
        answered = 0
        for number in range(ROUNDS):
            stop = threading.Event()
            with ThreadPoolExecutor(CALLERS) as pool:
                running = [pool.submit(write_on, each, stop) for each in writers]
                time.sleep(chance.uniform(0.02, 1.2))
                service.kill()
                stop.set()
                answered += sum(future.result() for future in running)
            service.start()
            files = read_files(root)
            agree(files)
            for writer in writers:
                writer.settle(files)
            listed = service.ask("GET", "/workers").body
            assert {w["worker_id"]: w["mac"] for w in listed} == {
                key: next(
                    (m for m, n in files.bound.items() if n == record["hostname"]), None
                )
                for key, record in files.workers.items()
            }, number
        sys.stdout.write(f"{answered} answered writes in {ROUNDS} rounds\n")
        assert answered > ROUNDS
        health = service.ask("GET", "/healthz?verbose=1").body
        assert [file["problems"] for file in health["files"]] == [
            [] for _ in health["files"]
        ]
    left = [path.name for path in (root / "state").glob(".*.tmp")]
    assert not left
