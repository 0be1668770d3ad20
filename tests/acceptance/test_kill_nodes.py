"""kill -9 of the control plane in batches, calls to a node and settings.

The rule: after the restart every answered write is there, no disk stays under way while the node answers, every disk of
the ledger has its target, and what the node has beside them was never answered for: the same request again converges.
"""

from __future__ import annotations

import json
import os
import random
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.room import Answer, Files, Room, read_files, room
from tests.nodes import BASE, RealNode, node
from tests.processes import eventually

__all__ = ["node"]

ROUNDS = int(os.environ.get("IPXE_TEST_KILL_ROUNDS", "12"))
MANY = 8
Targets = dict[str, Any]


@dataclass
class Caller:
    """Somebody with names of its own, one request after the other; it remembers what it was told."""

    service: Room
    node: RealNode
    chance: random.Random
    #: The request that was not answered: method, path, body.
    open: tuple[str, str, Any] | None = None
    answered: int = 0

    def ask(self, method: str, path: str, body: Any = None) -> Answer | None:
        """The answer, None when the service died."""
        answer = self.service.ask(method, path, body)
        if answer.status == 0:
            self.open = (method, path, body)
            return None
        self.answered += 1
        return answer

    def again(self) -> Answer | None:
        """The request that was not answered, once more."""
        if self.open is None:
            return None
        answer = self.service.ask(*self.open)
        assert answer.status, self.open
        self.open = None
        return answer

    def step(self) -> bool:
        """One request; False when it was not answered."""
        raise NotImplementedError

    def check(self, files: Files, targets: Targets) -> None:
        """What was answered is there."""

    def finish(self) -> None:
        """Repeat what was not answered; it converges."""
        raise NotImplementedError


def _disks(files: Files) -> dict[str, dict[str, Any]]:
    return {
        disk["iqn"]: disk
        for record in files.workers.values()
        for disk in record.get("disks") or []
    }


@dataclass
class Batches(Caller):
    """A room of machines: all registered, all given disks, all deleted, again and again."""

    names: list[str] = field(default_factory=list)
    #: What must be true of each name: `gone`, `bare`, `disk`.
    known: dict[str, str] = field(default_factory=dict)
    prefix: str = ""
    serial: int = 0

    def _iqn(self, name: str) -> str:
        return f"{BASE}:{name}.debian"

    def _body(self) -> dict[str, Any]:
        targets = [{"worker_id": name, "agent": "n"} for name in self.names]
        return {"type": "empty", "os": "debian", "size": "1M", "targets": targets}

    def step(self) -> bool:
        if not self.names:
            return self._register()
        if self.known[self.names[-1]] == "bare":
            answer = self.ask("POST", "/workers/luns/disk/batch", self._body())
            return answer is not None and self._made(answer)
        body = {"worker_ids": self.names, "delete_disk": True}
        answer = self.ask("POST", "/workers/delete/batch", body)
        return answer is not None and self._deleted(answer)

    def _register(self) -> bool:
        number = int(self.prefix[-1])
        for at in range(MANY):
            self.serial += 1
            name = f"{self.prefix}-{self.serial}"
            mac = f"52:54:{number:02x}:{at:02x}:{self.serial // 256:02x}:{self.serial % 256:02x}"
            # Names of an unfinished registration are left as they are.
            answer = self.ask("POST", "/workers", {"worker_id": name, "mac": mac})
            if answer is None:
                self.open = None
                return False
            assert answer.status == 201, answer
            self.names.append(name)
            self.known[name] = "bare"
        return True

    def _made(self, answer: Answer) -> bool:
        assert answer.status == 200, answer
        assert answer.body["failed"] == [], answer
        done = [
            e["worker_id"] for k in ("succeeded", "skipped") for e in answer.body[k]
        ]
        assert sorted(done) == sorted(self.names)
        self.known |= dict.fromkeys(self.names, "disk")
        return True

    def _deleted(self, answer: Answer) -> bool:
        assert answer.status == 200, answer
        failed = answer.body["failed"]
        # At the second time some are gone already.
        assert all("no worker" in each["error"] for each in failed), answer
        self.known |= dict.fromkeys(self.names, "gone")
        self.names = []
        return True

    def check(self, files: Files, targets: Targets) -> None:
        disks = _disks(files)
        under_way = self.names if self.open else []
        for name, state in self.known.items():
            if name in under_way:
                continue
            assert (name in files.workers) == (state != "gone"), (name, state)
            assert (self._iqn(name) in disks) == (state == "disk"), (name, state)
            assert (self._iqn(name) in targets) == (state == "disk"), (name, state)

    def finish(self) -> None:
        deletes = self.open is not None and self.open[1].endswith("delete/batch")
        answer = self.again()
        if answer is not None:
            (self._deleted if deletes else self._made)(answer)


@dataclass
class Single(Caller):
    """One machine whose disk comes and goes."""

    name: str = ""
    there: bool = False

    def _path(self) -> str:
        return f"/workers/{self.name}/luns/disk"

    def step(self) -> bool:
        if self.there:
            path = f"{self._path()}/debian?delete_file=true"
            answer = self.ask("DELETE", path)
            wanted = 200
        else:
            body = {"type": "empty", "os": "debian", "size": "1M"}
            answer = self.ask("POST", self._path(), body)
            wanted = 201
        if answer is None:
            return False
        assert answer.status == wanted, answer
        self.there = not self.there
        return True

    def check(self, files: Files, targets: Targets) -> None:
        iqn = f"{BASE}:{self.name}.debian"
        if self.open is None:
            assert (iqn in _disks(files)) == self.there
            assert (iqn in targets) == self.there

    def finish(self) -> None:
        deletes = self.open is not None and self.open[0] == "DELETE"
        answer = self.again()
        if answer is not None:
            # Done before the kill, or now.
            assert answer.status in ((200, 404) if deletes else (201, 409)), answer
            self.there = not deletes


@dataclass
class Luns(Caller):
    """Disks of no worker, straight on the node."""

    stem: str = ""
    serial: int = 0
    known: dict[str, bool] = field(default_factory=dict)
    now: str = ""

    def step(self) -> bool:
        there = [iqn for iqn, state in self.known.items() if state]
        if there and self.chance.random() < 0.5:
            self.now = self.chance.choice(there)
            path = f"/agents/n/luns?iqn={self.now}&delete_file=true"
            answer, wanted = self.ask("DELETE", path), 200
        else:
            self.serial += 1
            self.now = f"{BASE}:{self.stem}-{self.serial}.debian"
            body = {"iqn": self.now, "size": "1M"}
            answer, wanted = self.ask("POST", "/agents/n/luns/disk", body), 201
        if answer is None:
            return False
        assert answer.status == wanted, answer
        self.known[self.now] = wanted == 201
        return True

    def check(self, files: Files, targets: Targets) -> None:
        for iqn, state in self.known.items():
            if self.open is None or iqn != self.now:
                assert (iqn in targets) == state, iqn

    def finish(self) -> None:
        deletes = self.open is not None and self.open[0] == "DELETE"
        answer = self.again()
        if answer is not None:
            assert answer.status in ((200, 404) if deletes else (201, 409)), answer
            self.known[self.now] = not deletes


@dataclass
class Settings(Caller):
    """The switch of the room."""

    value: bool = True

    def step(self) -> bool:
        answer = self.ask("PUT", "/settings/auto-register", {"enabled": not self.value})
        if answer is None:
            return False
        assert answer == (200, {"enabled": not self.value})
        self.value = not self.value
        return True

    def check(self, files: Files, targets: Targets) -> None:
        path = self.service.root / "state/settings.json"
        kept = json.loads(path.read_bytes())
        found = self.service.ask("GET", "/settings/auto-register").body["enabled"]
        assert kept.get("auto_register", found) == found, kept
        if self.open is None:
            assert found == self.value

    def finish(self) -> None:
        if self.open is not None:
            self.value = self.open[2]["enabled"]
            answer = self.again()
            assert answer == (200, {"enabled": self.value})


def _work(caller: Caller, stop: threading.Event) -> None:
    while not stop.is_set() and caller.step():
        pass


@pytest.mark.case(93)
def test_batches_node_calls_and_settings_survive_a_kill(
    tmp_path: Path, node: RealNode
) -> None:
    seed = random.SystemRandom().randrange(10**9)
    sys.stdout.write(f"seed {seed}\n")
    chance = random.Random(seed)
    root = tmp_path / "root"
    with room(root, IPXE_SERVE_WORKERS="2", IPXE_SERVE_THREADS="8") as service:
        url, token = node.base_url, node.token
        made = service.ask(
            "POST", "/agents", {"id": "n", "base_url": url, "token": token}
        )
        assert made.status == 201
        given = (service, node)
        singles = [node.name("one") for _ in range(2)]
        for number, name in enumerate(singles):
            body = {"worker_id": name, "mac": f"52:54:ff:00:00:{number:02x}"}
            assert service.ask("POST", "/workers", body).status == 201
        callers: list[Caller] = [
            *(
                Batches(*given, chance, prefix=f"{node.name('room')}-{number}")
                for number in range(2)
            ),
            *(Single(*given, chance, name=name) for name in singles),
            Luns(*given, chance, stem=node.name("lun")),
            Settings(*given, chance),
        ]
        for _ in range(ROUNDS):
            stop = threading.Event()
            with ThreadPoolExecutor(len(callers)) as pool:
                running = [pool.submit(_work, each, stop) for each in callers]
                time.sleep(chance.uniform(0.05, 1.2))
                service.kill()
                stop.set()
                for future in running:
                    future.result()
            service.start()
            eventually(lambda: not _under_way(root), 20)
            files, targets = read_files(root), node.targets()
            assert set(_disks(files)) <= set(targets)
            for caller in callers:
                caller.check(files, targets)
            for caller in callers:
                caller.finish()
            files, targets = read_files(root), node.targets()
            for caller in callers:
                caller.check(files, targets)
        sys.stdout.write(f"{[caller.answered for caller in callers]} answered\n")
        assert all(caller.answered for caller in callers)
        files, targets = read_files(root), node.targets()
        ours = tuple(
            f"{BASE}:{stem}-"
            for stem in [c.prefix for c in callers if isinstance(c, Batches)]
        )
        assert {iqn for iqn in targets if iqn.startswith(ours)} == {
            iqn for iqn in _disks(files) if iqn.startswith(ours)
        }
        health = service.ask("GET", "/healthz?verbose=1").body
        assert [f["problems"] for f in health["files"]] == [[] for _ in health["files"]]
    assert not list((root / "state").glob(".*.tmp"))


def _under_way(root: Path) -> list[str]:
    return [iqn for iqn, disk in _disks(read_files(root)).items() if disk.get("status")]
