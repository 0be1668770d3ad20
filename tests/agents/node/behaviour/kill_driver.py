"""Kills a node over LIO again and again, in a guest: one JSON object a line for each round, `{case, ok, error, seconds}`.

`python -m tests.agents.node.behaviour.kill_driver ROUNDS SEED`. The node is a process of its own, forked for each of its
lives from one that has everything imported: in a guest an agent takes ten seconds to start. Its calls are the services'.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from agents.node import creating, deleting, growing, rebuild, resetting, startup
from agents.node.runtime import Node
from agents.protocol.requests import DiskRequest
from ipxeready import conf
from ipxeready.errors import ApplicationError
from ipxeready.storage.iqn import initiator_of
from tests.agents.node.behaviour.initiator import PATIENCE
from tests.agents.node.behaviour.kills import (
    Bystander,
    Caller,
    check_folder,
    make_masters,
)
from tests.agents.node.behaviour.lio_rig import LioRig
from tests.agents.node.behaviour.rig import MIB, iqn_of
from tests.processes import eventually

PLACE = Path("/data/node")
CALLERS = 3
OTHERS = ["machine-01.debian", "machine-02.debian"]
#: Seconds that a disk takes for a mebibyte: copies are slow enough to be hit.
_SLOW = 0.05


class Life:
    """One process of the node, from its rebuild to its kill."""

    def __init__(self, environment: dict[str, str]) -> None:
        ours, theirs = socket.socketpair()
        self._pid = os.fork()
        if not self._pid:
            ours.close()
            _live(environment, theirs)
        theirs.close()
        self._wire = ours
        self._lines = ours.makefile("rb")
        self._lock = threading.Lock()
        self._waiting: dict[int, tuple[threading.Event, list[Any]]] = {}
        self._serial = 0
        self.dead = False
        assert self._lines.readline(), "the node does not start"
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """One request; status 0 when the node died."""
        event, answer = threading.Event(), []
        with self._lock:
            self._serial += 1
            self._waiting[self._serial] = (event, answer)
            with contextlib.suppress(OSError):
                line = json.dumps([self._serial, method, path, body])
                self._wire.sendall(line.encode() + b"\n")
        while not event.wait(0.05):
            if self.dead:
                return 0, None
        return answer[0], answer[1]

    def _read(self) -> None:
        # A life that is killed with requests unread resets the socket, and its last word may be cut.
        with contextlib.suppress(ConnectionError):
            for line in self._lines:
                if not line.endswith(b"\n"):
                    break
                serial, status, answer = json.loads(line)
                event, into = self._waiting.pop(serial)
                into += [status, answer]
                event.set()
        self.dead = True

    def kill(self) -> None:
        """SIGKILL."""
        os.kill(self._pid, signal.SIGKILL)
        os.waitpid(self._pid, 0)
        self._reader.join()
        self._lines.close()
        self._wire.close()


def _live(environment: dict[str, str], wire: socket.socket) -> None:
    """In the child: build the node and answer until killed."""
    real = os.pwrite

    def slow(*words: Any) -> int:
        time.sleep(_SLOW)
        return real(*words)

    os.pwrite = slow  # type: ignore[assignment]
    # Without reflinks: a full copy can be hit.
    environment = environment | {"IPXE_AGENT_REFLINK": "never"}
    try:
        node = startup.build(conf.load(environment))
        wire.sendall(b"up\n")
        lock = threading.Lock()
        with ThreadPoolExecutor(CALLERS + 1) as pool:
            for line in wire.makefile("rb"):
                pool.submit(_answer, node, wire, lock, json.loads(line))
    finally:
        os._exit(1)


def _answer(node: Node, wire: socket.socket, lock: Any, asked: list[Any]) -> None:
    serial, method, path, body = asked
    try:
        answer = [serial, 200, _call(node, method, path, body or {})]
    except ApplicationError as error:
        answer = [serial, error.status, error.message]
    except Exception:  # noqa: BLE001 - it is the answer
        answer = [serial, 500, traceback.format_exc()]
    with lock:
        wire.sendall(json.dumps(answer).encode() + b"\n")


def _call(node: Node, method: str, path: str, body: dict[str, Any]) -> Any:
    """What the API does with a request."""
    parts = urlsplit(path)
    match method, parts.path:
        case "POST", "/lun/disk":
            return creating.disk_create(node, DiskRequest(**body))
        case "POST", "/lun/grow":
            return growing.disk_grow(node, body["iqn"], body["size"])
        case "POST", "/lun/reset":
            return resetting.disk_reset(node, body["iqn"], body["master"])
        case "POST", "/lun/scan":
            return rebuild.scan(node)
        case _:
            query = parse_qs(parts.query)
            file = "delete_file" in query
            return deleting.target_delete(node, query["iqn"][0], delete_file=file)


def main() -> None:
    """So many rounds."""
    logging.basicConfig(level=logging.WARNING, stream=sys.stderr)
    rounds, seed = map(int, sys.argv[1:])
    chance = random.Random(seed)
    rig = LioRig(PLACE)  # for its listing; its own node does nothing
    masters = make_masters(rig.folder)
    lives = [Life(rig.environment)]

    def ask(method: str, path: str, body: Any = None) -> tuple[int, Any]:
        return lives[-1].ask(method, path, body)

    for name in OTHERS:
        status, answer = ask("POST", "/lun/disk", {"iqn": iqn_of(name), "size": MIB})
        assert status == 200, answer
    callers = [
        Caller(ask, rig.folder, masters, random.Random(chance.random()), f"worker-{n}")
        for n in range(CALLERS)
    ]
    with _bystanders(rig) as at_work:
        for number in range(rounds):
            began = time.monotonic()
            before = _inside(rig)
            stop = threading.Event()
            with ThreadPoolExecutor(CALLERS) as pool:
                life = lives[-1]
                running = [
                    pool.submit(each.work, stop, broken=lambda life=life: life.dead)
                    for each in callers
                ]
                time.sleep(chance.uniform(0.05, 4.0))
                life.kill()
                stop.set()
                for future in running:
                    future.result()
            lives.append(Life(rig.environment))
            error = ""
            try:
                for each in at_work:
                    each.check()
                assert _inside(rig) == before
                _check(rig, callers)
            except Exception:  # noqa: BLE001 - reported
                error = traceback.format_exc()
            seconds = round(time.monotonic() - began, 2)
            done = sorted(kind for caller in callers for kind in caller.done)
            said = {"case": number, "ok": not error, "error": error, "done": done}
            sys.stdout.write(f"{json.dumps(said | {'seconds': seconds})}\n")
            sys.stdout.flush()
            for caller in callers:
                caller.done.clear()
            if error:
                break
    lives[-1].kill()
    rig.stop()  # or the kernel keeps all targets, for the next test in this guest


@contextlib.contextmanager
def _bystanders(rig: LioRig) -> Iterator[list[Bystander]]:
    found = [
        Bystander(rig.unit(name), initiator_of(iqn_of(name)), pause=0.3)
        for name in OTHERS
    ]
    try:
        eventually(lambda: all(each.worked for each in found), PATIENCE)
        yield found
    finally:
        for each in found:
            each.end()


def _inside(rig: LioRig) -> dict[str, list[str]]:
    """Who is logged in to the bystanders' targets, by the number of the session."""
    return {
        name: [s.get("id", "") for s in (rig.target(name) or {})["sessions"]]  # type: ignore[typeddict-item]
        for name in OTHERS
    }


def _check(rig: LioRig, callers: list[Caller]) -> None:
    shown = [rig.tree.shown(iqn) for iqn in rig.tree.names()]
    exported = {
        s.iqn: s.luns[0].path for s in shown if s and s.enabled and s.luns.get(0)
    }
    assert len(exported) == len(shown), "a target is left that is not whole"
    used = {s.luns[0].place for s in shown if s and s.luns.get(0)}
    assert used == set(rig.tree.stores()), "a storage object is left without a target"
    assert not rig.tree.empty_adapters()
    check_folder(rig.folder, exported, callers, set(OTHERS))


if __name__ == "__main__":
    main()
