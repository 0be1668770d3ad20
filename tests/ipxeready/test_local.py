"""The parts of `make run` that need no daemon."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ipxeready import local, localnode
from ipxeready.children import Child, guarded
from ipxeready.conf import Endpoint
from ipxeready.reach import (
    check_free,
    default_route_address,
    interface_address,
    reachable,
)
from ipxeready.startup import StartError
from ipxeready.storage.paths import Layout
from tests.processes import eventually


@pytest.mark.parametrize(
    ("bind", "host"),
    [
        ("0.0.0.0", "127.0.0.1"),
        ("::", "127.0.0.1"),
        ("192.0.2.3", "192.0.2.3"),
        ("::1", "[::1]"),
    ],
)
def test_where_a_listener_is_reached(bind: str, host: str) -> None:
    assert reachable(Endpoint(bind, 1)) == host


def test_our_address_is_one_we_can_listen_on() -> None:
    with socket.socket() as probe:
        probe.bind((default_route_address(), 0))


def test_a_cards_address_is_found_and_a_card_that_is_not_there_is_named() -> None:
    assert interface_address("lo") == "127.0.0.1"
    with pytest.raises(StartError, match=r"IFACE=eth77: there is no such.*\blo\b"):
        interface_address("eth77")


@pytest.mark.parametrize(
    ("why_not", "tgtd", "backend"),
    [(None, True, "lio"), ("no LIO", True, "stgt"), ("no LIO", False, "files")],
)
def test_the_kernels_target_is_taken_first_then_a_tgtd_of_our_own(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    why_not: str | None,
    tgtd: bool,
    backend: str,
) -> None:
    monkeypatch.setattr(local.lio, "problem", lambda: why_not)
    monkeypatch.setattr(local.shutil, "which", lambda name: name if tgtd else None)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    here = local.Here({"IPXE_ROOT": str(tmp_path)})
    assert here.backend == backend
    assert ("no LIO" in capsys.readouterr().out) is (backend == "files")


def test_on_the_machines_card_disks_are_served_from_its_address(tmp_path: Path) -> None:
    here = local.Here(
        {
            "IPXE_ROOT": str(tmp_path),
            "IPXE_AGENT_BACKEND": "files",
            "IFACE": "lo",
            "RANGE": "127.0.0.10,127.0.0.20",
        }
    )
    assert here._our_address() == "127.0.0.1"
    greeting = here.greeting()
    assert "http://127.0.0.1:4839/" in greeting
    assert "lo, 127.0.0.10,127.0.0.20" in greeting


def test_a_node_known_under_another_address_is_told_with_the_command_that_mends_it() -> (
    None
):
    hint = localnode.other_server("198.51.100.7", "192.0.2.1")
    assert "198.51.100.7" in hint
    assert hint.endswith("agents edit local --iscsi-server 192.0.2.1")


def test_a_taken_port_is_one_line_that_names_the_variable() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen(1)
        bind = Endpoint(*other.getsockname())
        with pytest.raises(StartError) as caught:
            check_free("the agent", bind, "IPXE_AGENT_BIND")
    line = str(caught.value)
    assert str(bind) in line
    assert "IPXE_AGENT_BIND" in line
    assert "\n" not in line
    check_free("the agent", bind, "IPXE_AGENT_BIND")


def test_only_one_runs_on_a_root(tmp_path: Path) -> None:
    layout = Layout(tmp_path)
    layout.run.mkdir(parents=True)
    with local.only_once(layout) as first, local.only_once(layout) as second:
        assert (first, second) == (True, False)
    with local.only_once(layout) as again:
        assert again


def test_loaders_are_copied_and_kept_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    layout = Layout(tmp_path)
    layout.tftp.mkdir()
    shipped = tmp_path / "shipped"
    shipped.mkdir()
    monkeypatch.setattr(local, "FIRMWARE_FOLDER", shipped)
    (shipped / "undionly.kpxe").write_bytes(b"new")
    (layout.tftp / "undionly.kpxe").write_bytes(b"old")
    local.copy_firmware(layout)
    assert (layout.tftp / "undionly.kpxe").read_bytes() == b"new"
    # The other one is not installed: said, not fatal.
    assert "snponly.efi is missing" in capsys.readouterr().out
    assert not (layout.tftp / "snponly.efi").exists()


def child(tmp_path: Path, code: str, **kwargs: int) -> Child:
    command = [sys.executable, "-c", code]
    return Child("x", command, log=tmp_path / "x.log", environ=os.environ, **kwargs)


def test_a_child_that_ignores_the_request_is_ended_all_the_same(tmp_path: Path) -> None:
    stubborn = child(
        tmp_path,
        "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(60)",
    )
    end = time.monotonic() + 10
    while stubborn.last_lines() != "  up":
        assert time.monotonic() < end
        time.sleep(0.02)
    assert not stubborn.ended
    stubborn.stop(0.1)
    assert stubborn.ended


def test_children_die_with_us_even_when_we_are_killed(tmp_path: Path) -> None:
    code = (
        "import os, sys, time; from pathlib import Path; from ipxeready.children import Child\n"
        "c = Child('x', ['sleep', '60'], log=Path(sys.argv[1]), environ=os.environ, on_our_death=9)\n"
        "print(c._process.pid, flush=True); time.sleep(60)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path / "log")],
        stdout=subprocess.PIPE,
        text=True,
    ) as parent:
        pid = int(parent.stdout.readline())
        parent.send_signal(signal.SIGKILL)
    end = time.monotonic() + 10
    while (
        Path(f"/proc/{pid}").exists()
        and "Z" not in Path(f"/proc/{pid}/stat").read_text()
    ):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_a_guarded_program_is_ended_by_the_request_to_its_guard(tmp_path: Path) -> None:
    command = guarded([sys.executable, "-c", "import time; time.sleep(61.25)"])
    guard = Child("x", command, log=tmp_path / "log", environ=os.environ)
    end = time.monotonic() + 10
    while not (inner := _children(guard._process.pid)):
        assert time.monotonic() < end
        time.sleep(0.02)
    guard.stop(10)
    assert not Path(f"/proc/{inner[0]}").exists()


def test_a_guard_that_is_ended_before_it_knows_its_program_ends_it_all_the_same(
    tmp_path: Path,
) -> None:
    command = guarded([sys.executable, "-c", "import time; time.sleep(61.25)"])
    command[2] = command[2].replace("p=$!", "kill -TERM $$; p=$!")
    guard = Child("x", command, log=tmp_path / "log", environ=os.environ)
    assert guard._process.wait(20) == 128 + signal.SIGTERM


def test_what_does_not_end_when_asked_is_killed_with_all_that_it_started(
    tmp_path: Path,
) -> None:
    script = "trap '' TERM; sleep 61.25 & echo $!; wait"
    stubborn = Child(
        "x", ["sh", "-c", script], log=tmp_path / "log", environ=os.environ
    )
    eventually(lambda: stubborn.last_lines())
    inner = int(stubborn.last_lines())
    stubborn.stop(0.2)
    assert stubborn.ended
    eventually(lambda: not Path(f"/proc/{inner}").exists())


def test_a_guarded_program_that_ends_ends_its_guard(tmp_path: Path) -> None:
    command = guarded(["sh", "-c", "echo no such card; exit 3"])
    guard = Child("x", command, log=tmp_path / "log", environ=os.environ)
    assert guard._process.wait(10) == 3
    assert guard.last_lines() == "  no such card"


def _children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


def watched(tmp_path: Path, name: str) -> local.Here:
    """A run whose only part says `here` and dies at once."""
    here = local.Here({"IPXE_ROOT": str(tmp_path), "IPXE_AGENT_BACKEND": "files"})
    command = [sys.executable, "-c", "print('here')"]
    start = here._child if name == "tgtd" else here._lasting
    start(name, command, os.environ)
    return here


def test_a_part_that_dies_again_and_again_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(local, "PAUSE", 0.01)
    gone = watched(tmp_path, "agent").watch()
    assert gone.name == "agent"
    assert gone.last_lines() == "\n".join(["  here"] * local.DEATHS)
    said = capsys.readouterr().out
    assert said.count("agent has ended and is started again") == local.DEATHS - 1
    assert f"agent has ended {local.DEATHS} times within a minute" in said


def test_deaths_that_lie_apart_are_no_reason_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = watched(tmp_path, "control")
    (part,) = here.children
    clock = iter(range(0, 1000, 25))
    monkeypatch.setattr(local.time, "monotonic", lambda: float(next(clock)))
    assert all(here._may_start_again(part) for _ in range(10))
    part.stop(10)


def test_the_target_daemon_is_not_started_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert watched(tmp_path, "tgtd").watch().name == "tgtd"
    assert "again" not in capsys.readouterr().out


@pytest.mark.parametrize("given", [{"IFACE": "eth1"}, {"RANGE": "192.0.2.1,192.0.2.2"}])
def test_dhcp_needs_both_of_its_words(tmp_path: Path, given: dict[str, str]) -> None:
    here = local.Here(
        {"IPXE_ROOT": str(tmp_path), "IPXE_AGENT_BACKEND": "files", **given}
    )
    with pytest.raises(StartError, match="needs both"):
        here.start()
    assert not here.children


def test_without_being_asked_there_is_no_dhcp(tmp_path: Path) -> None:
    here = local.Here({"IPXE_ROOT": str(tmp_path), "IPXE_AGENT_BACKEND": "files"})
    assert here._dhcp() is None
