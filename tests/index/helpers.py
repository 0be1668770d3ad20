"""What the tests of the index share: workers written through the one writer, children that may be killed."""

from __future__ import annotations

import json
import os
import signal
import traceback
from collections.abc import Callable
from typing import Any

import yaml
from django.db import connection

from ipxeready import index
from ipxeready.actors import ADMINISTRATOR, Actor
from ipxeready.index import freshness
from ipxeready.storage import faults
from ipxeready.storage.paths import Layout
from workers.adapters import normalized

ALICE = Actor("alice", ADMINISTRATOR, "192.0.2.1")


def mac(number: int) -> str:
    return f"52:54:00:00:{number // 256:02x}:{number % 256:02x}"


def create(number: int, **fields: Any) -> None:
    """A worker and its binding in one write, as a service would."""
    name = f"worker-{number:02d}"
    with index.writing(actor=ALICE, op="create_worker") as tx:
        tx.yaml("workers").put(name, normalized({"hostname": name, **fields}))
        tx.hosts.bind(mac(number), name)
        tx.log(worker_id=name)


def ledger(layout: Layout) -> dict[str, Any]:
    return dict(yaml.safe_load(layout.workers_yml.read_text())["workers"] or {})


def lines(layout: Layout, op: str | None = None) -> list[dict[str, Any]]:
    """Audit lines of the file, damaged ones left out."""
    found = []
    for raw in layout.operations.read_bytes().split(b"\n"):
        try:
            line = json.loads(raw)
        except (ValueError, RecursionError):
            continue
        if isinstance(line, dict) and op in (None, line.get("op")):
            found.append(line)
    return found


def restart() -> None:
    """What a start of the host is to the index: it is gone, and the process knows nothing."""
    connection.close()
    name = str(connection.settings_dict["NAME"])
    for path in (name, f"{name}-wal", f"{name}-shm"):
        if os.path.exists(path):
            os.unlink(path)
    freshness.forget()
    index.ensure_fresh(wait=True)


def forked(work: Callable[[], Any]) -> int:
    """Run `work` in a child process; returns its wait status (0: done, 256: an exception)."""
    connection.close()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            connection.connection = None
            work()
            code = 0
        except BaseException:  # noqa: BLE001 - a child of a test ends here whatever happens
            traceback.print_exc()
        finally:
            os._exit(code)
    _, status = os.waitpid(pid, 0)
    return status


def killed_at(point: str, which: int, work: Callable[[], Any]) -> None:
    """Run `work` in a child that SIGKILLs itself when the write path reaches `point` for the `which`-th time."""
    reached = 0

    def hook(name: str) -> None:
        nonlocal reached
        if name == point:
            reached += 1
            if reached == which:
                os.kill(os.getpid(), signal.SIGKILL)

    def run() -> None:
        faults.install(hook)
        work()

    status = forked(run)
    assert os.WIFSIGNALED(status), f"the write never came to {point} ({status})"
    assert os.WTERMSIG(status) == signal.SIGKILL
