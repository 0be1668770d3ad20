"""Real storage nodes for tests: an agent process with a folder of its own, gone with the test run."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest
import requests

from ipxeready.actors import SYSTEM
from ipxeready.conf import REPOSITORY
from tests.agents.node import node_lab
from tests.processes import WITH_US, free_port

TOKEN = "token-of-a-real-node"
BASE = "iqn.2026-07.com.controller"
MIB = 1 << 20


@dataclass
class RealNode:
    """An agent that serves: its address, its token and its image folder."""

    base_url: str
    token: str
    folder: Path
    process: subprocess.Popen[bytes]
    tgtd: node_lab.Tgtd | None = None
    _numbers: count[int] = field(default_factory=lambda: count(1))

    def name(self, stem: str = "pc") -> str:
        """A hostname that no other test has on this node."""
        return f"{stem}-{os.getpid()}-{next(self._numbers)}"

    def image(self, name: str, size: int = MIB, content: bytes = b"") -> Path:
        """Put a file into the image folder."""
        path = self.folder / name
        with path.open("xb") as stream:
            stream.write(content)
            stream.truncate(size)
        return path

    def targets(self) -> dict[str, dict[str, object]]:
        """The node's own list of targets, past the product's client."""
        answer = requests.get(
            f"{self.base_url}/lun",
            headers={"Authorization": f"Bearer {self.token}"},
            timeout=10,
        )
        return {target["iqn"]: target for target in answer.json()}

    def kill(self) -> None:
        """SIGKILL to the whole of it, as a power cut would; nothing of it lives when this returns."""
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        self.process.kill()
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)
        self.process.wait()
        while any(Path(f"/proc/{child}").exists() for child in children):
            time.sleep(0.005)

    def register(self, agent_id: str = "node-1", **fields: object) -> object:
        """Register it with the control plane of this test."""
        from agents.services import agent_register

        given = {"base_url": self.base_url, "token": self.token, **fields}
        return agent_register(actor=SYSTEM, agent_id=agent_id, **given)  # type: ignore[arg-type]


@contextlib.contextmanager
def serving(
    root: Path, backend: str, tgtd: node_lab.Tgtd | None = None
) -> Iterator[RealNode]:
    """An agent process for the length of a block."""
    root.mkdir(parents=True, exist_ok=True)
    folder = root / "images"
    for _attempt in range(3):
        port = free_port()
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("IPXE_", "DJANGO_"))
        } | {
            "IPXE_MODE": "agent",
            "IPXE_ROOT": str(root),
            "IPXE_AGENT_BIND": f"127.0.0.1:{port}",
            "IPXE_AGENT_TOKEN": TOKEN,
            "IPXE_AGENT_BACKEND": backend,
        }
        if tgtd:
            environment |= {
                "IPXE_STGT_SOCKET": str(tgtd.socket),
                "IPXE_STGT_CONTROL_PORT": str(tgtd.control_port),
                "IPXE_ISCSI_PORTAL": f"127.0.0.1:{tgtd.port}",
            }
        log = (root / "agent.log").open("ab")
        process = subprocess.Popen(
            [*WITH_US, sys.executable, "manage.py", "serve"],
            cwd=REPOSITORY,
            env=environment,
            stdout=log,
            stderr=log,
        )
        log.close()
        node = RealNode(f"http://127.0.0.1:{port}", TOKEN, folder, process, tgtd)
        try:
            if _answers(node):
                yield node
                return
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
    raise AssertionError((root / "agent.log").read_text())


def _answers(node: RealNode) -> bool:
    until = time.monotonic() + 60
    while node.process.poll() is None and time.monotonic() < until:
        with contextlib.suppress(requests.RequestException):
            if requests.get(f"{node.base_url}/healthz", timeout=2).ok:
                return True
        time.sleep(0.05)
    return False


@pytest.fixture(scope="session")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    """A node without a target daemon (`files`), shared: take names from `node.name()`."""
    with serving(tmp_path_factory.mktemp("node") / "root", "files") as found:
        yield found


@pytest.fixture(scope="session")
def other_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    """A second one."""
    with serving(tmp_path_factory.mktemp("other") / "root", "files") as found:
        yield found


@pytest.fixture(scope="session")
def stgt_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    """A node over a real tgtd."""
    with (
        node_lab.tgtd() as daemon,
        serving(tmp_path_factory.mktemp("stgt") / "root", "stgt", daemon) as found,
    ):
        yield found
