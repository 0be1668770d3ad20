"""A real tgtd, real initiators and real file systems of a test's own; all of it goes with the test, killed or not."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.test import Client

from agents.node import runtime, startup
from agents.node.runtime import Node
from agents.protocol.access import Chap
from agents.protocol.systems import LUN_NUMBER, STGT
from ipxeready import conf
from ipxeready.storage.iqn import initiator_of
from tests.agents.node.behaviour import initiator as initiators
from tests.agents.node.behaviour.initiator import Unit
from tests.processes import WITH_US, free_port

BASE = "iqn.2026-07.com.controller"
TOKEN = "token-of-the-node"
SIZE = 1 << 20
_CLONE_NEWNS = 0x00020000
_MS_REC_PRIVATE = (1 << 14) | (1 << 18)


@dataclass
class Tgtd:
    """One tgtd with its own socket and portal."""

    process: subprocess.Popen[bytes]
    folder: Path
    port: int
    control_port: int = 7

    @property
    def socket(self) -> Path:
        return self.folder / "tgt"

    def adm(self, *words: str, check: bool = True) -> str:
        """One tgtadm call, past the product."""
        done = subprocess.run(
            ["tgtadm", "-C", str(self.control_port), "--lld", "iscsi", *words],
            env={**os.environ, "TGT_IPC_SOCKET": str(self.socket)},
            capture_output=True,
            text=True,
            timeout=20,
        )
        assert not check or done.returncode == 0, done.stderr
        return done.stdout

    def listing(self) -> str:
        return self.adm("--op", "show", "--mode", "target")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def again(self) -> None:
        """Another tgtd in its place: same socket and port, no targets."""
        self.process = start_tgtd(self.folder, self.port).process


def start_tgtd(folder: Path, port: int | None = None) -> Tgtd:
    """Start one; its folder must be short enough for a socket's address."""
    # tgtd wants its usual lock folder to be there even with a socket elsewhere.
    Path("/var/run/tgtd").mkdir(exist_ok=True)
    wanted = port
    for _ in range(5):
        port = wanted or free_port()
        process = subprocess.Popen(
            [
                *WITH_US,
                "tgtd",
                "-f",
                "-t",
                "1",
                "-C",
                "7",
                "--iscsi",
                f"portal=127.0.0.1:{port}",
            ],
            env={**os.environ, "TGT_IPC_SOCKET": str(folder / "tgt")},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        daemon = Tgtd(process, folder, port)
        until = time.monotonic() + 10
        while process.poll() is None and time.monotonic() < until:
            with contextlib.suppress(AssertionError):
                daemon.adm("--op", "show", "--mode", "sys")
                return daemon
            time.sleep(0.03)
        daemon.kill()
    raise AssertionError("tgtd does not start")


@contextlib.contextmanager
def tgtd() -> Iterator[Tgtd]:
    """A tgtd for the length of a block."""
    folder = Path(tempfile.mkdtemp(prefix="tgt-"))
    daemon = start_tgtd(folder)
    try:
        yield daemon
    finally:
        daemon.kill()
        shutil.rmtree(folder)


@dataclass
class Lab:
    """A node, its folder, a client with its token, and its tgtd if it has one."""

    folder: Path
    environment: dict[str, str]
    client: Client
    stranger: Client
    tgtd: Tgtd | None
    use: Callable[[conf.Config], None]
    node: Node

    def restart(self, **environment: str) -> Node:
        """What a new process of the agent finds and does at its start."""
        self.environment.update(environment)
        config = conf.load(self.environment)
        self.use(config)
        self.node = startup.build(config)
        runtime.install(self.node)
        return self.node

    def image(self, name: str, size: int = SIZE, content: bytes = b"") -> Path:
        """A file put there by hand."""
        path = self.folder / name
        with path.open("xb") as stream:
            stream.write(content)
            stream.truncate(size)
        return path

    def post(self, path: str, **body: Any) -> Any:
        return self.client.post(path, body, content_type="application/json")

    def disk(self, name: str, **body: Any) -> Any:
        return self.post("/lun/disk", iqn=f"{BASE}:{name}", **body)

    def delete(self, name: str, **query: str) -> Any:
        words = "&".join(
            f"{k}={v}" for k, v in {"iqn": f"{BASE}:{name}", **query}.items()
        )
        return self.client.delete(f"/lun?{words}")

    def scan(self) -> Any:
        answer = self.client.post("/lun/scan")
        assert answer.status_code == 200, answer.content
        return answer.json()

    def targets(self) -> dict[str, str]:
        """Name behind the base -> file name, for every target."""
        found = self.client.get("/lun").json()
        return {
            t["iqn"].removeprefix(f"{BASE}:"): os.path.basename(t["luns"][0]["backing"])
            for t in found
        }

    def skipped(self) -> dict[str, str]:
        return {entry["name"]: entry["reason"] for entry in self.scan()["skipped"]}

    def files(self) -> dict[str, tuple[int, int, bytes]]:
        """Every file but the node's own memory: inode, size and content; to see that nothing changed."""
        return {
            p.name: (
                p.lstat().st_ino,
                p.lstat().st_size,
                b"" if p.is_symlink() else p.read_bytes(),
            )
            for p in self.folder.iterdir()
            if not p.is_dir() and p.name not in {".targets.json", ".pool"}
        }

    def remembered(self) -> Any:
        """What the node's memory says."""
        return json.loads((self.folder / ".targets.json").read_text())


def unit(daemon: Tgtd, iqn: str) -> Unit:
    """What a target of that tgtd serves."""
    return Unit(daemon.port, iqn, LUN_NUMBER[STGT])


@contextlib.contextmanager
def session(
    daemon: Tgtd, iqn: str, *, initiator: str | None = None
) -> Iterator[initiators.Session]:
    """A real initiator that is logged in for the length of the block; the target's own unless another is named."""
    name = initiator or initiator_of(iqn)

    def listed() -> bool:
        return f"Initiator: {name} " in daemon.listing()

    with initiators.session(unit(daemon, iqn), name, listed) as held:
        yield held


def may_log_in(
    daemon: Tgtd, iqn: str, initiator: str, chap: dict[str, str] | None = None
) -> bool:
    """Whether a real initiator of that name, with that CHAP or none, gets at its LUN; refused is not broken."""
    given = Chap(**chap) if chap else None
    return initiators.may_log_in(unit(daemon, iqn), initiator, given)


def accounts(daemon: Tgtd) -> list[str]:
    """The CHAP accounts of a tgtd."""
    lines = daemon.adm("--op", "show", "--mode", "account").splitlines()[1:]
    return sorted(line.strip() for line in lines if line.strip())


def read_lun(daemon: Tgtd, iqn: str, into: Path) -> subprocess.CompletedProcess[str]:
    """Read a whole LUN over iSCSI into a file."""
    return subprocess.run(
        [
            "qemu-img",
            "convert",
            "--image-opts",
            unit(daemon, iqn).options(initiator_of(iqn)),
            "-O",
            "raw",
            str(into),
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )


def write_lun(daemon: Tgtd, iqn: str) -> subprocess.CompletedProcess[str]:
    """Write 4 KiB of 0xab at the start of a LUN over iSCSI."""
    return subprocess.run(
        [
            "qemu-io",
            "--image-opts",
            unit(daemon, iqn).options(initiator_of(iqn)),
            "-c",
            "write -P 0xab 0 4096",
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )


def own_mounts() -> None:
    """Give this process a mount namespace of its own: what it mounts goes with it."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWNS) or libc.mount(
        b"none", b"/", None, _MS_REC_PRIVATE, None
    ):
        raise OSError(ctypes.get_errno(), "cannot make a mount namespace")


@contextlib.contextmanager
def mounted(kind: str, folder: Path, *, size: str = "320M") -> Iterator[Path]:
    """A file system of that kind in a file of `folder`, mounted beside it."""
    image, point = folder / f"{kind}.disk", folder / kind
    point.mkdir()
    subprocess.run(["truncate", "-s", size, str(image)], check=True)
    quiet = {"xfs": ["-q"], "btrfs": ["-q"], "ext4": ["-q", "-m", "0"]}[kind]
    subprocess.run(
        [f"mkfs.{kind}", *quiet, str(image)], check=True, capture_output=True
    )
    subprocess.run(["mount", "-o", "loop", str(image), str(point)], check=True)
    try:
        yield point
    finally:
        subprocess.run(["umount", "-l", str(point)], check=True)
        image.unlink()
