"""The examples in deploy/: the programs that read them find nothing to complain of."""

from __future__ import annotations

import http.client
import json
import re
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ipxeready import conf
from ipxeready.conf import REPOSITORY
from tests.processes import free_port
from tests.served import Service

DEPLOY = REPOSITORY / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
EXAMPLES = sorted((DEPLOY / "env").glob("*.example"))


def _verify(unit: Path) -> str:
    """What systemd says of a unit file; a key it does not know is no error to it, but it says so."""
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(unit)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return f"{done.stdout}{done.stderr}" or ("failed" if done.returncode else "")


@pytest.fixture
def units(tmp_path: Path) -> Path:
    """The units as they would be where the repository lies here, all in one folder: they name each other."""
    for unit in UNITS:
        text = unit.read_text(encoding="utf-8")
        (tmp_path / unit.name).write_text(
            text.replace("/srv/ipxeready", str(REPOSITORY))
        )
    return tmp_path


@pytest.mark.parametrize("name", [unit.name for unit in UNITS])
def test_systemd_finds_nothing_wrong_in_a_unit(units: Path, name: str) -> None:
    assert _verify(units / name) == ""


def test_systemd_would_say_if_there_were(units: Path) -> None:
    unit = units / "ipxeready-tgtd.service"
    unit.write_text(unit.read_text().replace("RestartSec=", "RestartSecs="))
    assert "RestartSecs" in _verify(unit)


def test_there_is_a_unit_for_each_daemon() -> None:
    names = {unit.stem.removeprefix("ipxeready-") for unit in UNITS}
    assert names == {"control", "agent", "tgtd", "dnsmasq"}


def test_agent_and_its_tgtd_mean_the_same_socket() -> None:
    agent, tgtd = (
        (DEPLOY / "systemd" / f"ipxeready-{name}.service").read_text()
        for name in ("agent", "tgtd")
    )
    socket = re.search(r"IPXE_STGT_SOCKET=(.+)", agent)
    assert socket
    assert f"TGT_IPC_SOCKET={socket[1]}\n" in tgtd


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_environment_example_is_one_that_we_start_with(path: Path) -> None:
    given = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        found = re.fullmatch(r"#?(\w+)=(\S+)", line)
        if found:
            given[found[1]] = found[2]
        else:
            assert not line or line.startswith("# "), line
    files = {"IPXE_CP_TOKEN_FILE", "IPXE_AGENT_TOKEN_FILE"}
    assert {name for name in given if name != "TZ"} <= {*conf.VARIABLES, *files}
    mode = path.name.partition(".")[0]
    environ = {name: value for name, value in given.items() if name not in files}
    assert conf.load({**environ, "IPXE_MODE": mode}).mode == mode


def _nginx(configuration: str, folder: Path, *words: str) -> list[str]:
    whole = folder / "nginx.conf"
    whole.write_text(
        f"pid {folder}/pid;\nerror_log stderr;\nworker_processes 1;\n"
        "events {}\nhttp {\naccess_log off;\n"
        + "".join(
            f"{kind}_temp_path {folder}/{kind};\n"
            for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        + f"{configuration}\n}}\n"
    )
    return ["nginx", "-p", str(folder), "-c", str(whole), *words]


def _configuration() -> str:
    return (DEPLOY / "nginx" / "ipxeready.conf").read_text(encoding="utf-8")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A control plane."""
    one = Service(tmp_path / "root")
    one.start()
    yield one
    one.end()


@pytest.fixture
def front(service: Service, tmp_path: Path) -> Iterator[int]:
    """The port of an nginx that sends requests to the control plane as the shipped configuration says."""
    port = free_port()
    text = _configuration().replace("listen 4838", f"listen 127.0.0.1:{port}")
    text = text.replace("127.0.0.1:4839", f"127.0.0.1:{service.port}")
    folder = tmp_path / "nginx"
    folder.mkdir()
    with subprocess.Popen(
        _nginx(text, folder, "-g", "daemon off;"), stderr=subprocess.DEVNULL
    ) as process:
        end = time.monotonic() + 10
        while _asked(port, "/healthz") is None:
            assert process.poll() is None
            assert time.monotonic() < end
            time.sleep(0.05)
        yield port
        process.terminate()


def _asked(port: int, path: str, **headers: str) -> tuple[int, str] | None:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    except OSError:
        return None
    finally:
        connection.close()


def test_nginx_takes_the_configuration(tmp_path: Path) -> None:
    done = subprocess.run(
        _nginx(_configuration(), tmp_path, "-t"),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "[warn]" not in done.stderr


def test_both_kinds_of_paths_are_there_behind_nginx_and_the_client_is_the_real_one(
    service: Service, front: int
) -> None:
    for path in ("/healthz", "/api/cp/healthz"):
        assert _asked(front, path) == (200, '{"status": "ok"}')
    for path in ("/workers", "/api/cp/workers"):
        assert (_asked(front, path) or (0,))[0] == 401
    assert (_asked(front, "/admin/login/") or (0,))[0] == 200
    made_up = {"X-Forwarded-For": "198.51.100.9"}
    answer = _asked(front, "/boot-vars?mac=52:54:00:00:00:01", **made_up)
    assert answer is not None
    assert "set hostname worker-01" in answer[1]
    audit = (service.root / "state" / "operations.jsonl").read_text().splitlines()
    clients = {json.loads(line).get("client") for line in audit}
    assert "127.0.0.1" in clients
    assert "198.51.100.9" not in clients


def test_a_piece_of_an_upload_passes_nginx_and_other_large_bodies_do_not(
    service: Service, front: int
) -> None:
    token = (service.root / "config" / "cp-token").read_text().strip()
    for path, status in (
        ("/agents/none/uploads/0123456789abcdef?offset=0", 404),
        ("/api/cp/agents/none/uploads/0123456789abcdef?offset=0", 404),
        ("/agents/none", 413),
    ):
        connection = http.client.HTTPConnection("127.0.0.1", front, timeout=20)
        connection.request(
            "PATCH",
            path,
            body=bytes(3 << 20),
            headers={
                "Authorization": f"Bearer {token}",
                "Content-Type": "application/octet-stream",
            },
        )
        assert connection.getresponse().status == status, path
        connection.close()


def test_serve_tells_systemd_when_it_answers(tmp_path: Path) -> None:
    path = tmp_path / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(path))
        systemd.settimeout(30)
        one = Service(tmp_path / "root", NOTIFY_SOCKET=str(path))
        one.process = one.popen()
        try:
            assert b"READY=1" in systemd.recv(4096)
            assert one.get("/healthz").status == 200
        finally:
            one.end()
