"""The agent as a process: `manage.py serve` over real HTTP, killed in the middle of a copy."""

from __future__ import annotations

import contextlib
import fcntl
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents.node import pool
from tests.agents.node import node_lab
from tests.agents.node.node_lab import BASE, TOKEN, Tgtd
from tests.processes import WITH_US, eventually, free_port

REPOSITORY = Path(__file__).resolve().parents[3]
# A disk so slow that a copy takes its time, and a shorter watch where WATCH says so; everything else is the product.
SLOW = """
import os, sys, time
if "WATCH" in os.environ:
    from agents.node import startup
    startup._WATCH_PERIOD = float(os.environ["WATCH"])
real = os.pwrite
def slow(*words):
    time.sleep(float(os.environ.get("SLOW", "0.3")))
    return real(*words)
os.pwrite = slow
sys.argv = ["manage.py", "serve"]
exec(compile(open("manage.py").read(), "manage.py", "exec"))
"""


class Agent:
    """One running agent."""

    def __init__(self, environment: dict[str, str], port: int, slow: bool) -> None:
        what = ["-c", SLOW] if slow else ["manage.py", "serve"]
        self.port = port
        self.environment = environment
        self.process = subprocess.Popen(
            [*WITH_US, sys.executable, *what],
            cwd=REPOSITORY,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        assert self.process.stderr
        self._reader = threading.Thread(target=self._read, daemon=True)
        self.output = ""
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stderr
        for line in self.process.stderr:
            self.output += line.decode()

    def call(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        link = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        headers = {
            "Authorization": f"Bearer {TOKEN}",
            "Content-Type": "application/json",
        }
        link.request(
            method, path, json.dumps(body) if body is not None else None, headers
        )
        answer = link.getresponse()
        found = answer.status, json.loads(answer.read())
        link.close()
        return found

    def up(self) -> bool:
        assert self.process.poll() is None, self.output
        with contextlib.suppress(OSError):
            return self.call("GET", "/healthz")[0] == 200
        return False

    def kill(self) -> None:
        """SIGKILL to the whole of it, as a power cut would."""
        pid = self.process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        self.process.kill()
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(child), signal.SIGKILL)
        self.process.wait()
        for child in children:
            eventually(lambda child=child: not Path(f"/proc/{child}").exists())

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(30)


@contextlib.contextmanager
def agent(
    tmp_path: Path,
    daemon: Tgtd | None,
    *,
    slow: bool = False,
    port: int | None = None,
    **more: str,
) -> Iterator[Agent]:
    port = port or free_port()
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(("IPXE_", "DJANGO_"))
    }
    environment |= {
        "IPXE_MODE": "agent",
        "IPXE_ROOT": str(tmp_path / "root"),
        "IPXE_AGENT_BIND": f"127.0.0.1:{port}",
        "IPXE_AGENT_TOKEN": TOKEN,
        "IPXE_AGENT_BACKEND": "stgt" if daemon else "files",
        "IPXE_DISK_DIR": str(tmp_path / "root" / "images"),
        **(
            {"IPXE_STGT_SOCKET": str(daemon.socket), "IPXE_STGT_CONTROL_PORT": "7"}
            if daemon
            else {}
        ),
        **more,
    }
    running = Agent(environment, port, slow)
    try:
        eventually(running.up, 30)
        yield running
    finally:
        if running.process.poll() is None:
            running.kill()


@pytest.mark.case(58)
@pytest.mark.tgtd
def test_a_kill_in_the_middle_of_a_copy_leaves_no_image_and_no_target(
    tmp_path: Path, tgtd: Tgtd
) -> None:
    folder = tmp_path / "root" / "images"
    folder.mkdir(parents=True)
    master = folder / "debian_tpl_v1.img"
    master.write_bytes(os.urandom(40 << 20))
    wanted = {"iqn": f"{BASE}:worker-01.debian", "master": master.name}
    with agent(tmp_path, tgtd, slow=True) as running:
        asking = threading.Thread(target=left_alone, args=(running, wanted))
        asking.start()

        def half_done() -> bool:
            parts = [p for p in folder.iterdir() if p.name.endswith(".part")]
            return bool(parts) and parts[0].stat().st_blocks * 512 > (8 << 20)

        eventually(half_done)
        # Meanwhile the agent answers others at once.
        assert running.call("GET", "/lun") == (200, [])
        running.kill()
        asking.join()
    assert [p.name for p in folder.iterdir() if not p.name.startswith(".")] == [
        master.name
    ]
    assert "worker-01" not in tgtd.listing()
    with agent(tmp_path, tgtd) as running:
        left = {p.name for p in folder.iterdir()}
        assert left == {master.name, pool.NAME}
        assert running.call("GET", "/lun") == (200, [])
        assert running.call("POST", "/lun/disk", wanted)[0] == 201
        assert (folder / "worker-01.debian.img").read_bytes() == master.read_bytes()
        logs = running.call("GET", "/logs")[1]["entries"]
        assert [e["op"] for e in logs if "removed" in e] == ["node.clean"]
        running.kill()
    # The targets are tgtd's: a killed agent cuts nobody off, and the next one adopts them.
    with (
        node_lab.session(tgtd, f"{BASE}:worker-01.debian") as held,
        agent(tmp_path, tgtd) as running,
    ):
        assert len(running.call("GET", "/lun")[1][0]["sessions"]) == 1
        assert held.running
        assert running.stop() == 0


@pytest.mark.case(97)
def test_a_stranger_with_a_huge_body_is_refused_before_it_is_sent(
    tmp_path: Path,
) -> None:
    with agent(tmp_path, None) as running:
        for header, status in (
            ("", b"401"),
            (f"Authorization: Bearer {TOKEN}\r\n", b"413"),
        ):
            with socket.create_connection(
                ("127.0.0.1", running.port), timeout=10
            ) as link:
                link.sendall(
                    f"POST /lun/disk HTTP/1.1\r\nHost: x\r\n{header}"
                    "Content-Type: application/json\r\n"
                    "Content-Length: 100000000\r\n\r\n{".encode()
                )
                # Not one byte more is sent, and the answer comes all the same.
                assert link.recv(200).split(b" ")[1] == status
        assert running.call("GET", "/lun") == (200, [])


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"IPXE_AGENT_BACKEND": "lio", "IPXE_ISCSI_PORTAL": "203.0.113.1:3260"}, "LIO"),
        (
            {"IPXE_AGENT_BACKEND": "stgt", "IPXE_STGT_SOCKET": "/nonexistent/tgt"},
            "tgtd is not connected",
        ),
        ({"IPXE_IQN_BASE": "iqn.2026-13.com.controller"}, "IPXE_IQN_BASE"),
    ],
)
def test_a_start_that_cannot_work_ends_with_a_line_that_says_why(
    tmp_path: Path, more: dict[str, str], words: str
) -> None:
    environment = {
        k: v for k, v in os.environ.items() if not k.startswith(("IPXE_", "DJANGO_"))
    }
    environment |= {
        "IPXE_MODE": "agent",
        "IPXE_ROOT": str(tmp_path / "root"),
        "IPXE_AGENT_BIND": f"127.0.0.1:{free_port()}",
        **more,
    }
    done = subprocess.run(
        [*WITH_US, sys.executable, "manage.py", "serve"],
        cwd=REPOSITORY,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode != 0
    assert words in done.stderr
    assert "Traceback" not in done.stderr


def test_two_agents_never_serve_one_directory(tmp_path: Path) -> None:
    (tmp_path / "root" / "images").mkdir(parents=True)
    (tmp_path / "other").symlink_to(tmp_path / "root" / "images")
    with agent(tmp_path, None) as first:
        second = Agent(
            first.environment
            | {
                "IPXE_ROOT": str(tmp_path / "another-root"),
                "IPXE_AGENT_BIND": f"127.0.0.1:{free_port()}",
                "IPXE_DISK_DIR": str(tmp_path / "other"),
            },
            0,
            slow=False,
        )
        assert second.process.wait(30) != 0
        eventually(lambda: "another agent serves this directory" in second.output)
        assert "Traceback" not in second.output
        assert first.up()
        first.kill()
    # A kill leaves nothing that is in the way.
    with agent(tmp_path, None) as again:
        assert again.call("GET", "/lun") == (200, [])


def test_what_ends_without_its_parent_leaves_the_directory_to_the_next(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "root" / "images"
    folder.mkdir(parents=True)
    (folder / "debian_tpl_v1.img").write_bytes(os.urandom(40 << 20))
    wanted = {"iqn": f"{BASE}:worker-01.debian", "master": "debian_tpl_v1.img"}
    with agent(tmp_path, None, slow=True) as parent:
        pid = parent.process.pid
        (orphan,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        copy = threading.Thread(target=left_alone, args=(parent, wanted))
        copy.start()
        eventually(lambda: any(p.name.endswith(".part") for p in folder.iterdir()))
        parent.process.kill()
        parent.process.wait()
        eventually(lambda: not served(folder))
        # It still finishes its copy, and takes no more requests.
        assert Path(f"/proc/{orphan}").exists()
        with agent(tmp_path, None) as following:
            assert following.call("GET", "/lun")[0] == 200
        copy.join()
        eventually(lambda: not Path(f"/proc/{orphan}").exists(), 30)


def left_alone(running: Agent, wanted: dict[str, str]) -> None:
    """A copy whose answer may never come."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        running.call("POST", "/lun/disk", wanted)


def served(folder: Path) -> bool:
    """Whether some agent has the directory."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(handle)
    return False
