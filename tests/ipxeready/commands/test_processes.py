"""Commands as processes of their own, also beside a running service: each sees what the other does."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from ipxeready.conf import REPOSITORY
from tests.served import Service
from tests.shell import Ended, manage

HEAD = "worker_id,mac,hostname\n"


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    one = Service(tmp_path / "root", IPXE_CP_TOKEN="of-this-test")
    one.start()
    yield one
    one.end()


def call(service: Service, method: str, path: str, body: Any = None) -> Any:
    connection = HTTPConnection("127.0.0.1", service.port, timeout=20)
    headers = {
        "Authorization": "Bearer of-this-test",
        "Content-Type": "application/json",
    }
    text = None if body is None else json.dumps(body)
    connection.request(method, path, text, headers)
    answer = connection.getresponse()
    data = json.loads(answer.read())
    connection.close()
    assert answer.status < 300, data
    return data


def mac(number: int) -> str:
    return f"52:54:00:00:{number >> 8:02x}:{number & 255:02x}"


def command(service: Service, *words: str, stdin: str = "") -> Ended:
    ended = manage(service.environ, *words, stdin=stdin)
    assert "Traceback" not in ended.err
    return ended


def test_service_and_shell_see_each_others_changes(service: Service) -> None:
    ended = command(
        service, "register_workers", "-", "--json", stdin=f"{HEAD}a,{mac(1)},seat-a\n"
    )
    assert (ended.code, ended.json["created"]) == (0, ["a"])
    assert [each["mac"] for each in call(service, "GET", "/workers")] == [mac(1)]
    call(service, "POST", "/workers", {"worker_id": "b", "mac": mac(2)})
    listed = command(service, "list_workers", "--json").json
    assert [each["worker_id"] for each in listed] == ["a", "b"]
    wrong = command(service, "register_workers", "-", stdin=f"{HEAD}c,{mac(2)},c\n")
    assert (wrong.code, "is bound to b" in wrong.err) == (1, True)
    assert command(service, "reindex", "--json").json["rows"]["worker"] == 2
    assert len(call(service, "GET", "/workers")) == 2
    call(service, "DELETE", "/workers/a")
    assert len(command(service, "list_workers", "--json").json) == 1
    clean = command(service, "checkstate", "--strict", "--json")
    assert (clean.code, clean.json) == (0, {"problems": [], "notes": []})


def test_both_write_at_once_and_nothing_is_lost(service: Service) -> None:
    rows = "".join(f"shell-{n},{mac(n)},\n" for n in range(1, 61))
    with ThreadPoolExecutor(4) as pool:
        shell = pool.submit(
            command, service, "register_workers", "-", "--json", stdin=HEAD + rows
        )
        checks = pool.submit(
            lambda: [command(service, "checkstate", "--strict") for _ in range(3)]
        )
        posts = [
            pool.submit(
                call,
                service,
                "POST",
                "/workers",
                {"worker_id": f"api-{n}", "mac": mac(1000 + n)},
            )
            for n in range(30)
        ]
    assert shell.result().code == 0
    assert all(post.result() for post in posts)
    # It reads the files of one moment, not half of a write.
    assert [check.code for check in checks.result()] == [0, 0, 0]
    assert len(call(service, "GET", "/workers")) == 90
    hosts = (service.root / "dnsmasq" / "dhcp-hosts.conf").read_text().splitlines()
    assert len([line for line in hosts if not line.startswith("#")]) == 90


@pytest.mark.parametrize(
    ("words", "code", "rule"),
    [
        (["register_workers"], 2, "Usage: give either a CSV"),
        (["register_workers", "-", "--jsno"], 2, "unrecognized arguments: --jsno"),
        (["register_workers", "/nowhere"], 2, "Usage: /nowhere: cannot be read"),
        (["register_workers", "-", "--json"], 1, "Refused: 1 of 1 rows"),
        (["set_default_os", "x", "--os", "ubuntu"], 1, "Refused: there is no worker"),
        (["set_default_os", "x", "--clear", "all"], 2, "invalid choice: 'all'"),
        (["agents"], 2, "the following arguments are required: what"),
        (["agents", "delete", "x"], 1, "x: there is no node 'x'"),
        (["list_workers", "--state", "on"], 2, "Usage: state: on must be one of"),
        (["scan_luns", "x"], 1, "Refused: there is no node 'x'"),
    ],
)
def test_exit_codes_of_wrong_input(
    tmp_path_factory: pytest.TempPathFactory,
    shared: Service,
    words: list[str],
    code: int,
    rule: str,
) -> None:
    ended = command(shared, *words, stdin=f"{HEAD}a,x,\n")
    assert (ended.code, rule in ended.err) == (code, True), ended
    if "--json" in words:
        assert ended.json["faults"][0]["row"] == 1
    else:
        assert ended.out == ""


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Service:
    """A root that was served once."""
    one = Service(tmp_path_factory.mktemp("shared") / "root")
    one.start()
    one.end()
    return one


def test_a_root_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    environ = Service(tmp_path / "nowhere").environ
    ended = manage(environ, "list_workers")
    assert ended.code == 1
    assert ended.err.startswith(f"Refused: IPXE_ROOT={tmp_path}/nowhere: ")
    assert len(ended.err.splitlines()) == 1
    assert not (tmp_path / "nowhere").exists()


def test_a_storage_node_has_no_workers(tmp_path: Path) -> None:
    environ = Service(tmp_path / "root", IPXE_MODE="agent").environ
    ended = manage(environ, "checkstate")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err == "Usage: IPXE_MODE=agent: must be control for this command\n"


def test_a_reader_that_goes_away_is_no_traceback(shared: Service) -> None:
    process = subprocess.Popen(
        [sys.executable, "manage.py", "list_workers", "--json"],
        cwd=REPOSITORY,
        env=shared.environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    process.stderr.close()
    assert process.wait(20) == 1


def on_terminal(service: Service, *words: str) -> tuple[int, bytes, bytes]:
    """Exit code, standard output and what a terminal at standard error shows."""
    main, side = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "manage.py", *words],
        cwd=REPOSITORY,
        env=service.environ,
        stdout=subprocess.PIPE,
        stderr=side,
    )
    os.close(side)
    out = process.stdout.read()
    process.stdout.close()
    code = process.wait(30)
    seen = b""
    try:
        while piece := os.read(main, 65536):
            seen += piece
    except OSError:  # a terminal whose other side is closed
        pass
    os.close(main)
    return code, out, seen


def test_a_bar_on_terminals_only(service: Service) -> None:
    rows = "".join(f"pc-{n},{mac(n)},\n" for n in range(1, 121))
    assert command(service, "register_workers", "-", stdin=HEAD + rows).code == 0
    words = ("set_default_os", "--all", "--menu-default", "shell", "--json")
    code, out, seen = on_terminal(service, *words)
    assert code == 0
    assert len(json.loads(out)["succeeded"]) == 120
    assert b"setting [##############################] 120/120" in seen
    assert seen.endswith(b"\r")
    assert on_terminal(service, *words, "--verbosity", "0")[2] == b""
    assert command(service, *words).err == ""


def test_ctrl_c_is_one_line(service: Service) -> None:
    process = subprocess.Popen(
        [sys.executable, "manage.py", "register_workers", "-"],
        cwd=REPOSITORY,
        env=service.environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    # It is reading standard input once the index is open.
    index = Path(service.environ["RUNTIME_DIRECTORY"])
    end = time.monotonic() + 20
    while not waits_for_input(process.pid):
        assert time.monotonic() < end, list(index.iterdir())
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (130, b"")
    assert err.startswith(b"Interrupted: stopped") and err.count(b"\n") == 1


def waits_for_input(pid: int) -> bool:
    """Whether a process sleeps in a read of its standard input."""
    call = Path(f"/proc/{pid}/syscall").read_text().split()
    return call[:2] == ["0", "0x0"]


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&- <&-"])
def test_a_closed_standard_output_is_no_crash_after_the_work(
    service: Service, closed: str
) -> None:
    """As under some schedulers; and no file of ours may get the number of standard output."""
    line = f'exec "$0" manage.py register_workers --range pc-1 --macs "$1" {closed}'
    macs = service.root / "macs.txt"
    macs.write_text(mac(1) + "\n")
    done = subprocess.run(
        ["sh", "-c", line, sys.executable, str(macs)],
        cwd=REPOSITORY,
        env=service.environ,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert [w["worker_id"] for w in call(service, "GET", "/workers")] == ["pc-1"]
