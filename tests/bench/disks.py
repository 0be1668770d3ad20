"""Many disks at once: the control plane against the bare loop on the storage node."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.agents.node import node_lab
from tests.bench.data import BASE, NODE_TOKEN, name
from tests.bench.processes import Server
from tests.processes import free_port

#: Thin and small: what is measured is our work, not the disk's.
SIZE = 1 << 20


@dataclass(frozen=True)
class Figures:
    """Seconds for the same number of disks; None where it could not be measured."""

    loop: float
    one_by_one: float
    batch: float | None


@contextlib.contextmanager
def node(folder: Path) -> Iterator[Server]:
    """A storage node of the bench's own: over a tgtd where there is one, else without targets (`files`)."""
    with contextlib.ExitStack() as stack:
        port = free_port()
        environ = {
            "IPXE_MODE": "agent",
            "IPXE_ROOT": str(folder),
            "IPXE_AGENT_BIND": f"127.0.0.1:{port}",
            "IPXE_AGENT_TOKEN": NODE_TOKEN,
            "IPXE_AGENT_BACKEND": "files",
        }
        if shutil.which("tgtd") and shutil.which("tgtadm"):
            daemon = stack.enter_context(node_lab.tgtd())
            environ |= {
                "IPXE_AGENT_BACKEND": "stgt",
                "IPXE_STGT_SOCKET": str(daemon.socket),
                "IPXE_STGT_CONTROL_PORT": str(daemon.control_port),
                "IPXE_ISCSI_PORTAL": f"127.0.0.1:{daemon.port}",
            }
        folder.mkdir(parents=True)
        server = Server(
            ["manage.py", "serve"], environ, port=port, log=folder / "agent.log"
        )
        stack.callback(server.stop)
        server.start()
        yield server


def measure(product: Server, agent: Server, workers: int, number: int) -> Figures:
    """First the loop on the node, then one by one, then as a batch; the node starts empty each time."""
    names = [name(at) for at in range(1, min(number, workers) + 1)]
    loop = _timed(agent, names, "esxi", lambda: _loop(agent, names))
    one_by_one = _timed(agent, names, "debian", lambda: _one_by_one(product, names))
    batch = None
    if _has_batch():
        batch = _timed(agent, names, "centos", lambda: _batch(product, names))
    return Figures(loop, one_by_one, batch)


def _timed(
    agent: Server, names: list[str], system: str, make: Callable[[], None]
) -> float:
    begin = time.perf_counter()
    make()
    seconds = time.perf_counter() - begin
    for each in names:
        iqn = f"{BASE}:{each}.{system}"
        agent.ask("DELETE", f"/lun?iqn={iqn}&delete_file=true", token=NODE_TOKEN)
    return seconds


def _loop(agent: Server, names: list[str]) -> None:
    for each in names:
        body = {
            "iqn": f"{BASE}:{each}.esxi",
            "size": SIZE,
            "filename": f"{each}.esxi.img",
        }
        agent.ask("POST", "/lun/disk", body, token=NODE_TOKEN)


def _one_by_one(product: Server, names: list[str]) -> None:
    body = {"type": "empty", "os": "debian", "size": SIZE, "disk_agent": "node-1"}
    for each in names:
        product.ask("POST", f"/workers/{each}/luns/disk", body)


def _batch(product: Server, names: list[str]) -> None:
    targets = [{"worker_id": each, "agent": "node-1"} for each in names]
    body = {"type": "empty", "os": "centos", "size": SIZE, "targets": targets}
    answer = json.loads(product.ask("POST", "/workers/luns/disk/batch", body))
    if len(answer["succeeded"]) != len(names):
        raise RuntimeError(f"the batch left some out: {str(answer['failed'])[:500]}")


def _has_batch() -> bool:
    return importlib.util.find_spec("workers.batches") is not None
