"""Reload of dnsmasq: the right process, once for many, and never an exception after a written file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ipxeready.storage.paths import Layout
from tests.dhcplab import Lab, needs_dnsmasq
from workers import reload as reload_module
from workers.reload import Reloader, ReloadResult

M1, M2 = "52:54:00:00:00:01", "52:54:00:00:00:02"


@pytest.fixture
def root(tmp_path: Path) -> Layout:
    layout = Layout(tmp_path)
    layout.dnsmasq.mkdir()
    layout.dhcp_hosts.write_bytes(b"")
    return layout


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """A process that a hang-up would end."""
    process = subprocess.Popen(["sleep", "60"])
    yield process
    process.kill()
    process.wait()


def counting(layout: Layout, *, then: str = "") -> tuple[Reloader, Path]:
    """A reloader whose command notes when it ran."""
    notes = layout.root / "ran"
    notes.touch()
    code = (
        f"import time; open({str(notes)!r}, 'a').write(f'{{time.monotonic_ns()}}\\n')"
    )
    command = f'{sys.executable} -c "{code}{then}"'
    return Reloader("command", command, layout), notes


def ran(notes: Path) -> list[int]:
    return [int(line) for line in notes.read_text().split()]


# Real dnsmasq


@needs_dnsmasq
def test_a_new_name_is_active_after_the_reload(root: Layout) -> None:
    with Lab(root.dnsmasq, f"{M1},first\n".encode()) as lab:
        reloader = Reloader("pidfile", str(lab.pidfile), root)
        offer = lab.discover(M1)[M1]
        assert offer
        assert offer.hostname == "first"
        root.dhcp_hosts.write_bytes(f"{M1},second\n".encode())
        assert reloader.reload(time.monotonic_ns()) == ReloadResult(active=True)
        lab.wait_read(2)
        offer = lab.discover(M1)[M1]
        assert offer
        assert offer.hostname == "second"


@needs_dnsmasq
@pytest.mark.case(102)
def test_forty_writers_share_few_signals_and_all_see_their_names(root: Layout) -> None:
    lines: list[bytes] = []
    guard = threading.Lock()
    with Lab(root.dnsmasq, b"") as lab:
        reloader = Reloader("pidfile", str(lab.pidfile), root)

        def write(number: int) -> ReloadResult:
            with guard:
                lines.append(f"52:54:00:00:01:{number:02x},w{number}\n".encode())
                with open(root.dhcp_hosts, "r+b") as file:
                    file.write(b"".join(lines))
                written = time.monotonic_ns()
            return reloader.reload(written)

        with ThreadPoolExecutor(40) as pool:
            results = list(pool.map(write, range(40)))
        assert all(result.active for result in results), results
        signals = sum(not result.coalesced for result in results)
        assert 1 <= signals <= 20
        lab.wait_read(1 + signals)
        offers = lab.discover(*(f"52:54:00:00:01:{n:02x}" for n in range(40)))
        names = [offer and offer.hostname for offer in offers.values()]
        assert names == [f"w{n}" for n in range(40)]


@needs_dnsmasq
@pytest.mark.case(90)
def test_a_file_mounted_alone_and_replaced_outside_is_noticed(root: Layout) -> None:
    mount_point = root.root / "seen-by-dnsmasq.conf"
    with Lab(root.dnsmasq, f"{M1},first\n".encode(), seen=mount_point) as lab:
        reloader = Reloader("pidfile", str(lab.pidfile), root)
        # In place: the same file on both sides.
        root.dhcp_hosts.write_bytes(f"{M1},second\n".encode())
        assert reloader.reload(time.monotonic_ns()) == ReloadResult(active=True)
        # As sed -i and vim do.
        fresh = root.dnsmasq / "fresh"
        fresh.write_bytes(f"{M1},third\n".encode())
        fresh.replace(root.dhcp_hosts)
        result = reloader.reload(time.monotonic_ns())
        assert not result.active
        assert "restart the dnsmasq container or mount the directory" in (
            result.error or ""
        )
        lab.wait_read(3)
        offer = lab.discover(M1)[M1]
        assert offer
        assert offer.hostname == "second"


@needs_dnsmasq
def test_a_dnsmasq_that_reads_another_file_is_noticed(root: Layout) -> None:
    elsewhere = root.root / "elsewhere"
    elsewhere.mkdir()
    with Lab(elsewhere, b"") as lab:
        result = Reloader("pidfile", str(lab.pidfile), root).reload()
        assert not result.active
        assert str(elsewhere / "dhcp-hosts.conf") in (result.error or "")


@needs_dnsmasq
def test_a_dnsmasq_that_dies_of_tags_is_not_called_active(root: Layout) -> None:
    with Lab(root.dnsmasq, f"{M1},set:lab,worker-01\n".encode()) as lab:
        lab.discover(M1)
        result = Reloader("pidfile", str(lab.pidfile), root).reload()
        assert not result.active
        assert "set:" in (result.error or "")


@needs_dnsmasq
@pytest.mark.case(102)
def test_a_pid_file_older_than_the_dnsmasq_it_names_is_stale(root: Layout) -> None:
    with Lab(root.dnsmasq, b"") as lab:
        copy = root.root / "old.pid"
        copy.write_text(str(lab.pid))
        os.utime(copy, (time.time() - 3600,) * 2)
        result = Reloader("pidfile", str(copy), root).reload()
        assert "stale" in (result.error or "")
        # Its own pid file is named on its command line: no clock can make that stale.
        os.utime(lab.pidfile, (0, 0))
        assert Reloader("pidfile", str(lab.pidfile), root).reload().active
        lab.wait_read(2)
        assert lab.reads() == 2


# Anything but dnsmasq


@pytest.mark.case(102)
def test_another_process_is_never_signalled(
    root: Layout, bystander: subprocess.Popen[bytes]
) -> None:
    pidfile = root.root / "dnsmasq.pid"
    pidfile.write_text(f"{bystander.pid}\n")
    result = Reloader("pidfile", str(pidfile), root).reload()
    assert not result.active
    assert "not dnsmasq: nothing was signalled" in (result.error or "")
    with pytest.raises(subprocess.TimeoutExpired):
        bystander.wait(0.2)


@pytest.mark.case(102)
def test_a_program_that_only_calls_itself_dnsmasq_is_not_signalled(
    root: Layout,
) -> None:
    script = root.root / "bin" / "dnsmasq"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\nread line\n")
    script.chmod(0o755)
    pidfile = root.root / "dnsmasq.pid"
    wrapper = subprocess.Popen([str(script)], stdin=subprocess.PIPE)
    try:
        pidfile.write_text(str(wrapper.pid))
        deadline = time.monotonic() + 2
        comm = Path(f"/proc/{wrapper.pid}/comm")
        while comm.read_text() != "dnsmasq\n" and time.monotonic() < deadline:
            time.sleep(0.01)
        result = Reloader("pidfile", str(pidfile), root).reload()
        assert "nothing was signalled" in (result.error or "")
        with pytest.raises(subprocess.TimeoutExpired):
            wrapper.wait(0.2)
    finally:
        wrapper.communicate()


@pytest.mark.case(102)
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "not running"),
        ("", "process number"),
        ("x", "process number"),
        ("-1", "process number"),
        ("0", "process number"),
        ("٣", "process number"),
        ("9" * 30, "process number"),
        ("2147483647", "gone"),
    ],
)
def test_no_dnsmasq_is_said_and_nothing_raised(
    root: Layout, text: str | None, reason: str
) -> None:
    pidfile = root.root / "dnsmasq.pid"
    if text is not None:
        pidfile.write_text(text)
    result = Reloader("pidfile", str(pidfile), root).reload()
    assert not result.active
    assert reason in (result.error or "")


def test_a_pipe_or_endless_digits_for_a_pid_file_hold_nobody_up(root: Layout) -> None:
    pidfile = root.root / "odd.pid"
    reloader = Reloader("pidfile", str(pidfile), root)
    os.mkfifo(pidfile)
    assert "not a regular file" in (reloader.reload().error or "")
    pidfile.unlink()
    pidfile.write_text("9" * 5000)
    assert "process number" in (reloader.reload().error or "")


def test_an_ended_process_that_nobody_waited_for_is_not_running(root: Layout) -> None:
    ended = subprocess.Popen(["true"])
    try:
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        pidfile = root.root / "dnsmasq.pid"
        pidfile.write_text(str(ended.pid))
        result = Reloader("pidfile", str(pidfile), root).reload()
        assert "has ended" in (result.error or "")
    finally:
        ended.wait()


def test_no_reload_is_no_error(root: Layout) -> None:
    assert Reloader("none", "", root).reload() == ReloadResult(active=False)
    assert not root.run.exists()


def test_a_kind_that_is_not_there_is_refused(root: Layout) -> None:
    with pytest.raises(ValueError, match="signal"):
        Reloader("signal", "", root)


# Commands


def test_a_command_runs_without_a_shell_and_without_our_tokens(
    root: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IPXE_CP_TOKEN", "secret")
    seen = root.root / "seen"
    code = f"import os, sys, json; json.dump([sys.argv[1:], dict(os.environ)], open({str(seen)!r}, 'w'))"
    command = f'{sys.executable} -c "{code}" $HOME "a b" ; x'
    assert Reloader("command", command, root).reload() == ReloadResult(active=True)
    words, environment = json.loads(seen.read_text())
    assert words == ["$HOME", "a b", ";", "x"]
    assert "secret" not in environment.values()


@pytest.mark.case(102)
@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("false", "exit status 1"),
        ("/nonexistent/reload", "cannot be run"),
        ("'unclosed", "split"),
        ("", "empty"),
        (f"{sys.executable} -c 'raise SystemExit(\"no such unit\")'", "no such unit"),
    ],
)
def test_a_failing_command_is_written_not_active(
    root: Layout, command: str, reason: str
) -> None:
    result = Reloader("command", command, root).reload()
    assert not result.active
    assert reason in (result.error or "")


def test_a_command_that_hangs_is_ended_with_its_children(
    root: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reload_module, "COMMAND_LIMIT_S", 0.5)
    pids = root.root / "pids"
    command = f"sh -c 'echo $$ > {pids}; sleep 60 & echo $! >> {pids}; wait'"
    result = Reloader("command", command, root).reload()
    assert "more than 0.5 s" in (result.error or "")
    deadline = time.monotonic() + 5
    for pid in map(int, pids.read_text().split()):
        while _alive(pid) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not _alive(pid)


def _alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state not in "ZX"


def test_a_daemon_left_behind_does_not_hold_us_up(root: Layout) -> None:
    pid = root.root / "pid"
    started = time.monotonic()
    command = f"sh -c 'sleep 60 & echo $! > {pid}'"
    try:
        assert Reloader("command", command, root).reload().active
        assert time.monotonic() - started < 5
    finally:
        os.kill(int(pid.read_text()), signal.SIGKILL)


# Sharing


def test_the_first_goes_at_once_and_the_next_waits_for_company(root: Layout) -> None:
    reloader, notes = counting(root)
    stamp = root.run / "reload.stamp"
    asked, starts = [], []
    for _ in range(3):
        asked.append(time.monotonic_ns())
        assert reloader.reload(asked[-1]) == ReloadResult(active=True)
        starts.append(json.loads(stamp.read_text())["started"])
    assert starts[0] - asked[0] < reload_module.GAP_NS
    assert starts[1] - starts[0] >= reload_module.GAP_NS
    assert starts[2] - starts[1] >= reload_module.GAP_NS
    assert len(ran(notes)) == 3


def test_a_write_before_the_last_reload_needs_none(root: Layout) -> None:
    reloader, notes = counting(root)
    written = time.monotonic_ns()
    assert not reloader.reload(written).coalesced
    assert reloader.reload(written) == ReloadResult(active=True, coalesced=True)
    assert len(ran(notes)) == 1


def test_a_write_during_a_reload_needs_another(root: Layout) -> None:
    reloader, notes = counting(root, then="; time.sleep(0.3)")
    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(reloader.reload, time.monotonic_ns())
        deadline = time.monotonic() + 5
        while not ran(notes) and time.monotonic() < deadline:
            time.sleep(0.005)
        late = [pool.submit(reloader.reload, time.monotonic_ns())]
        assert first.result() == ReloadResult(active=True)
        assert [result.result().coalesced for result in late] == [False]
    assert len(ran(notes)) == 2


@pytest.mark.case(102)
def test_processes_share_too(root: Layout) -> None:
    reloader, notes = counting(root)
    code = (
        "import sys, time; from pathlib import Path; from workers.reload import Reloader;"
        "from ipxeready.storage.paths import Layout;"
        "r = Reloader('command', sys.argv[1], Layout(Path(sys.argv[2])));"
        "print('ready', flush=True); sys.stdin.read(1); print(r.reload(time.monotonic_ns()))"
    )
    started = [
        subprocess.Popen(
            [sys.executable, "-c", code, reloader.value, str(root.root)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        for _ in range(6)
    ]
    for process in started:
        assert process.stdout.readline() == b"ready\n"
    for process in started:
        process.stdin.write(b"x")
        process.stdin.flush()
    said = [process.communicate()[0] for process in started]
    assert all(b"active=True" in text for text in said), said
    assert len(ran(notes)) < 6
    assert len(ran(notes)) == sum(b"coalesced=False" in text for text in said)


def test_a_failure_is_shared_as_well(root: Layout) -> None:
    reloader, notes = counting(root, then="; raise SystemExit(3)")
    written = time.monotonic_ns()
    first = reloader.reload(written)
    again = reloader.reload(written)
    assert not first.active
    assert "exit status 3" in (first.error or "")
    assert again == first._replace(coalesced=True)
    assert len(ran(notes)) == 1
    # A new attempt is one.
    reloader.reload(time.monotonic_ns())
    assert len(ran(notes)) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"boot": "another run of the machine"},
        {"value": "another command"},
        {"started": "soon"},
        None,
    ],
)
def test_a_stamp_of_another_time_or_way_covers_nothing(
    root: Layout, change: dict[str, str] | None
) -> None:
    reloader, notes = counting(root)
    written = time.monotonic_ns()
    reloader.reload(written)
    stamp = root.run / "reload.stamp"
    good = json.loads(stamp.read_text())
    stamp.write_text("[1" if change is None else json.dumps(good | change))
    assert reloader.reload(written) == ReloadResult(active=True)
    assert len(ran(notes)) == 2


def test_a_state_folder_that_cannot_be_written_is_an_error_not_an_exception(
    root: Layout,
) -> None:
    root.state.write_text("a file where a folder should be")
    result = Reloader("command", "true", root).reload()
    assert not result.active
    assert result.error


def test_nothing_is_left_in_the_run_folder_but_lock_and_stamp(root: Layout) -> None:
    reloader, _ = counting(root)
    reloader.reload()
    assert sorted(path.name for path in root.run.iterdir()) == [
        "reload.lock",
        "reload.stamp",
    ]
