"""`manage.py serve` as a process: one line when it cannot start, an orderly end."""

from __future__ import annotations

import http.client
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.served import Service


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    one = Service(tmp_path / "root")
    yield one
    one.end()


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]
    except FileNotFoundError:
        return False
    return state != "Z"


def test_it_serves_a_root_that_was_not_there(service: Service) -> None:
    service.start()
    assert service.get("/healthz").body == b'{"status": "ok"}'
    assert service.get("/admin/login/").status == 200
    assert service.get("/static/ipxeready/style.css").status == 200
    assert service.get("/static/admin/css/base.css").status == 200
    token = (service.root / "config" / "cp-token").read_text().strip()
    bearer = {"Authorization": f"Bearer {token}"}
    assert service.get("/healthz?verbose=1", **bearer).status == 200
    assert service.get("/healthz?verbose=1", Authorization="Bearer x").status == 401

    # A second one on the same address: one line, and nothing of the first is touched.
    lines = service.output_of_failure()
    assert len(lines) == 1
    assert f"127.0.0.1:{service.port}" in lines[0]
    assert "address already in use" in lines[0]

    service.process.send_signal(signal.SIGTERM)
    assert service.process.wait(20) == 0
    output = service.process.stdout.read()
    assert f"token: cat {service.root}/config/cp-token" in output
    assert f"cat {service.root}/state/first-login" in output
    assert token not in output
    assert (service.root / "state" / "first-login").read_text().strip() not in output


def request(port: int, head: str) -> bytes:
    """The first line of the answer to raw text."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as raw:
        raw.sendall(head.encode())
        return raw.makefile("rb").readline().strip()


@pytest.mark.case(101)
def test_request_lines_and_hosts_at_their_limits(service: Service) -> None:
    service.start()
    fixed = len("GET /healthz?x= HTTP/1.1\r\n")
    for size, status in ((8190, b"200"), (8200, b"414")):
        line = f"GET /healthz?x={'a' * (size - fixed)} HTTP/1.1\r\n"
        assert len(line) == size
        answer = request(service.port, line + "Host: x\r\nConnection: close\r\n\r\n")
        assert answer.split()[1] == status, answer
    for headers in (
        "Host: 192.0.2.7:8000\r\n",
        "Host: ctl\r\n",
        "Host: a b\r\n",
        "Host:\r\n",
        "Host: [::1\r\n",
    ):
        text = f"GET /healthz HTTP/1.1\r\n{headers}Connection: close\r\n\r\n"
        assert request(service.port, text) == b"HTTP/1.1 200 OK", headers
    assert request(service.port, "GET /healthz HTTP/1.0\r\n\r\n").endswith(b"200 OK")


def test_requests_in_flight_end_before_the_service_does(service: Service) -> None:
    service.start()
    page = service.get("/admin/login/")
    cookie = page.getheader("Set-Cookie").split(";")[0]
    value = cookie.partition("=")[2]
    form = f"csrfmiddlewaretoken={value}&username=nobody&password=x"
    answers: list[Any] = []

    def log_in() -> None:
        # Comparing a password takes a good part of a second.
        connection = http.client.HTTPConnection("127.0.0.1", service.port, timeout=20)
        headers = {
            "Cookie": cookie,
            "Content-Type": "application/x-www-form-urlencoded",
        }
        connection.request("POST", "/admin/login/", form, headers)
        answers.append(connection.getresponse().status)
        connection.close()

    thread = threading.Thread(target=log_in)
    thread.start()
    time.sleep(0.15)
    assert not answers
    service.process.send_signal(signal.SIGTERM)
    thread.join(20)
    assert answers == [200]
    assert service.process.wait(20) == 0


def test_workers_do_not_outlive_a_killed_master(service: Service) -> None:
    service.start()
    workers = service.children()
    assert workers
    service.process.kill()
    service.process.wait(10)
    end = time.monotonic() + 10
    while any(alive(pid) for pid in workers) or not service.refused():
        assert time.monotonic() < end
        time.sleep(0.1)
    # And nothing of it is in the way of the next start.
    service.process.stdout.close()
    service.start()


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("IPXE_CP_AUTO_REGISTER", "maybe"),
        ("IPXE_CP_BIND", "4839"),
        ("IPXE_MODE", "x"),
        ("TZ", "Nowhere"),
    ],
)
def test_a_wrong_variable_is_one_line(
    service: Service, variable: str, value: str
) -> None:
    service.environ[variable] = value
    lines = service.output_of_failure()
    assert len(lines) == 1
    assert lines[0].startswith(f"ipxeready: {variable}='{value}': must be")
    assert not service.root.exists()


def test_a_file_where_a_folder_should_be_is_one_line(service: Service) -> None:
    service.root.mkdir()
    (service.root / "state").write_text("")
    lines = service.output_of_failure()
    assert len(lines) == 1
    assert f"{service.root}/state must be a folder" in lines[0]


def test_an_agent_serves_with_the_same_command(service: Service) -> None:
    service.environ |= {
        "IPXE_MODE": "agent",
        "IPXE_AGENT_BACKEND": "files",
        "IPXE_AGENT_BIND": f"127.0.0.1:{service.port}",
    }
    service.start()
    assert service.get("/capabilities").status == 401
    token = (service.root / "config" / "agent-token").read_text().strip()
    bearer = {"Authorization": f"Bearer {token}"}
    assert service.get("/capabilities", **bearer).status == 200
    assert len(service.children()) == 1
    service.process.send_signal(signal.SIGTERM)
    assert service.process.wait(20) == 0


@pytest.mark.parametrize(
    ("variable", "value"),
    [("IPXE_DISK_DIR", "/tmp/a,b"), ("IPXE_STGT_SOCKET", "/nowhere/tgtd")],
)
def test_an_agent_that_cannot_work_says_so_in_one_line(
    service: Service, variable: str, value: str
) -> None:
    service.environ |= {
        "IPXE_MODE": "agent",
        "IPXE_AGENT_BACKEND": "stgt",
        "IPXE_AGENT_BIND": f"127.0.0.1:{service.port}",
        variable: value.replace("/tmp", str(service.root.parent)),
    }
    lines = service.output_of_failure()
    assert len(lines) == 1, lines
    assert "IPXE_DISK_DIR" in lines[0] or "IPXE_AGENT_BACKEND" in lines[0]
