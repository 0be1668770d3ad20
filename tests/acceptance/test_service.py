"""The whole service over real sockets: what firmware sends byte by byte, and crashes in the middle of slow work."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.acceptance.room import Room, read_files, room
from tests.processes import eventually
from tests.workers.stub import Stub, stub_node

MAC = "52:54:00:00:00:01"
IQN = "iqn.2026-07.com.controller:pc1.ubuntu"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Room]:
    with room(tmp_path_factory.mktemp("service") / "root") as found:
        yield found


def raw(service: Room, request: str) -> bytes:
    """Everything that comes back for these bytes until the other end is silent."""
    with socket.create_connection(("127.0.0.1", service.port), 10) as link:
        link.sendall(request.encode("latin-1"))
        link.settimeout(1.0)
        got = b""
        try:
            while piece := link.recv(65536):
                got += piece
        except TimeoutError:
            pass
        return got


@pytest.mark.case(101)
@pytest.mark.case(42)
@pytest.mark.parametrize(
    "head",
    [
        "HTTP/1.1\r\nHost: 192.0.2.7:8000\r\nConnection: Keep-Alive\r\n",
        "HTTP/1.1\r\nHost: ctl\r\nUser-Agent: iPXE/1.21.1\r\n",
        "HTTP/1.1\r\nHost: not a host!\r\n",
        "HTTP/1.0\r\n",
    ],
)
@pytest.mark.parametrize("path", ["/boot-vars", "/boot-vars/", "/api/cp/boot-vars"])
def test_firmware_gets_its_script_on_any_host(
    service: Room, head: str, path: str
) -> None:
    answer = raw(service, f"GET {path}?mac={MAC} {head}\r\n")
    status, _, rest = answer.partition(b"\r\n")
    headers, _, body = rest.partition(b"\r\n\r\n")
    assert b" 200 " in status
    assert body.startswith(b"#!ipxe\n") and body.endswith(b"\n")
    assert f"content-length: {len(body)}".encode() in headers.lower()
    assert b"content-type: text/plain\r\n" in headers.lower() + b"\r\n"
    assert b"set-cookie" not in headers.lower()
    assert b"location:" not in headers.lower()
    assert b"chunked" not in headers.lower()


@pytest.mark.case(96)
def test_head_says_how_long_it_would_be_and_sends_nothing(service: Room) -> None:
    before = service.ask("GET", "/workers").body
    request = "HEAD /boot-vars?mac=52:54:00:00:00:77 HTTP/1.1\r\nHost: x\r\n\r\n"
    answer = raw(service, request + request)
    for part in answer.split(b"HTTP/1.1 ")[1:]:
        head, _, body = part.partition(b"\r\n\r\n")
        assert head.startswith(b"200")
        assert b"content-length: " in head.lower()
        assert body == b""
    assert answer.count(b"HTTP/1.1 200") == 2
    assert service.ask("GET", "/workers").body == before


@pytest.mark.case(24)
def test_a_request_line_of_eight_thousand_characters_is_taken(service: Room) -> None:
    answer = raw(
        service, f"GET /boot-vars?mac={'a' * 8000} HTTP/1.1\r\nHost: x\r\n\r\n"
    )
    assert b" 200 " in answer.split(b"\r\n")[0]
    assert b"\r\n\r\n#!ipxe\n" in answer


@pytest.mark.parametrize("made", [True, False])
def test_a_kill_while_a_node_makes_a_disk_is_settled_at_the_next_start(
    tmp_path: Path, made: bool
) -> None:
    with stub_node() as node:
        root = tmp_path / "root"
        (root / "config").mkdir(parents=True)
        agents = {"stub": {"base_url": node.fake.base_url, "token": "t"}}
        (root / "config/agents.yml").write_text(yaml.safe_dump({"agents": agents}))
        node.next_iqn = IQN
        reached = threading.Event()

        def wait(method: str) -> None:
            reached.set()
            node.release.wait(30)

        if made:
            node.after = wait
        else:
            node.before = wait
        with room(root, IPXE_SERVE_WORKERS="1") as service:
            body = {"worker_id": "pc1", "mac": MAC}
            assert service.ask("POST", "/workers", body).status == 201
            disk = {"type": "empty", "os": "ubuntu", "size": "1M"}
            caller = threading.Thread(
                target=service.ask, args=("POST", "/workers/pc1/luns/disk", disk)
            )
            caller.start()
            assert reached.wait(20)
            # The lock is not held while a node works: others write on.
            started = time.monotonic()
            other = {"worker_id": "pc2", "mac": "52:54:00:00:00:02"}
            assert service.ask("POST", "/workers", other).status == 201
            assert time.monotonic() - started < 5
            assert _status(root) == "creating"
            assert "base-iqn" not in service.boot(MAC).body
            service.kill()
            caller.join()
            node.before = None
            if not made:
                # What it was about to do dies with it.
                node.answer = _dead(node)  # type: ignore[method-assign]
            service.start()
            if made:
                assert _status(root) is None
                assert "base-iqn" in service.boot(MAC).body
            else:
                assert read_files(root).workers["pc1"]["disks"] == []
            lines = [
                line["status"]
                for line in read_files(root).operations
                if line["op"] == "worker.disk.create"
            ]
            assert lines == ["started", "ok" if made else "rollback"]
            node.release.set()


def _status(root: Path) -> str | None:
    (disk,) = read_files(root).workers["pc1"]["disks"]
    found: str | None = disk.get("status")
    return found


def _dead(node: Stub):  # type: ignore[no-untyped-def]
    def answer(method: str, path: str) -> tuple[int, dict[str, str], bytes]:
        if method != "GET":
            raise ConnectionAbortedError
        return Stub.answer(node, method, path)

    return answer


def test_a_stop_ends_the_whole_family(tmp_path: Path) -> None:
    with room(tmp_path / "root") as service:
        service.process.terminate()
        assert service.process.wait(20) == 0
        eventually(service.refused)
