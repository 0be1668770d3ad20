"""Reload of dnsmasq after a written hosts file: verified, shared by many writers, never an exception."""

from __future__ import annotations

import fcntl
import json
import os
import shlex
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, NamedTuple

from ipxeready.said import joined, said
from ipxeready.storage.paths import Layout
from workers import dnsmasq_process

#: A command that takes longer is ended and counts as failed.
COMMAND_LIMIT_S = 10.0
#: Signals are at least so far apart; the first of a series goes out at once.
GAP_NS = 100_000_000
#: How long dnsmasq may take to die of a tag in the hosts file (a fault of 2.90).
_TAG_WAIT_S = 0.3
_LOCK_LIMIT_S = 2 * COMMAND_LIMIT_S + 5
_POLL_S = 0.005


class ReloadResult(NamedTuple):
    """Whether dnsmasq has (or will at once have) the new content; `error` says why not.

    Not active without an error: no reload is configured. `coalesced`: another caller's reload, begun
    after this caller's write, did it.
    """

    active: bool
    error: str | None = None
    coalesced: bool = False


class Reloader:
    """The one way of this site to make dnsmasq read its hosts file again.

    `kind` is `pidfile` (value: its path), `command` (value: its words) or `none`. Threads and processes
    share reloads through a lock file and a stamp in state/run; the state lock is never involved.
    """

    def __init__(self, kind: str, value: str, layout: Layout) -> None:
        if kind not in ("pidfile", "command", "none"):
            raise ValueError(f"no such kind of reload: {kind!r}")
        self.kind = kind
        self.value = value
        self._hosts = layout.dhcp_hosts
        self._lock = layout.run / "reload.lock"
        self._stamp = layout.run / "reload.stamp"

    def reload(self, written_at_ns: int | None = None) -> ReloadResult:
        """Reload unless another caller did so after `written_at_ns` (time.monotonic_ns() after the write).

        1. A reload that began after our write covers it, whether it went well or not.
        2. Otherwise wait for the lock; whoever gets it waits out the gap, and those who wrote meanwhile
           are covered by its one signal.
        """
        if self.kind == "none":
            return ReloadResult(active=False)
        written = time.monotonic_ns() if written_at_ns is None else written_at_ns
        try:
            return self._shared(written)
        except OSError as error:
            return ReloadResult(
                False, said("reload of dnsmasq failed: {error}", error=error)
            )

    def last_error(self) -> str | None:
        """Why the last reload of this run of the machine failed; None when it went well or there was none."""
        last = self._read_stamp()
        return None if last is None else last["error"]

    def _shared(self, written: int) -> ReloadResult:
        self._lock.parent.mkdir(parents=True, exist_ok=True)
        end = time.monotonic() + _LOCK_LIMIT_S
        fd = os.open(self._lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            while True:
                if done := self._covered(written):
                    return done
                try:
                    fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if time.monotonic() >= end:
                        return ReloadResult(
                            False,
                            said("another reload of dnsmasq does not come to an end"),
                        )
                    time.sleep(_POLL_S)
            return self._covered(written) or self._run()
        finally:
            os.close(fd)

    def _run(self) -> ReloadResult:
        last = self._read_stamp()
        wait = GAP_NS - (time.monotonic_ns() - last["started"]) if last else 0
        if 0 < wait <= GAP_NS:
            time.sleep(wait / 1e9)
        started = time.monotonic_ns()
        error = _command(self.value) if self.kind == "command" else self._signal()
        self._write_stamp(started, error)
        return ReloadResult(error is None, error)

    def _signal(self) -> str | None:
        try:
            with dnsmasq_process.find(Path(self.value)) as process:
                process.hang_up()
                if self._has_tags() and process.ends_within(_TAG_WAIT_S):
                    return said(
                        "dnsmasq has ended at the reload, as version 2.90 does when the "
                        "hosts file sets tags (set:). Start it again and move the tags "
                        "to dnsmasq.conf"
                    )
                return process.hosts_fault(self._hosts)
        except dnsmasq_process.NotRunning as error:
            return error.words

    def _has_tags(self) -> bool:
        try:
            content = self._hosts.read_bytes()
        except OSError:
            return False
        return b"set:" in content or b"net:" in content

    # The stamp: when the last reload began and how it ended

    def _covered(self, written: int) -> ReloadResult | None:
        last = self._read_stamp()
        if last is None or last["started"] < written:
            return None
        error = last["error"]
        return ReloadResult(error is None, error, coalesced=True)

    def last_began(self) -> float | None:
        """When the last reload of this run of the machine began, in seconds since 1970; None when there was none."""
        last = self._read_stamp()
        if last is None:
            return None
        ago: float = (time.monotonic_ns() - last["started"]) / 1e9
        return time.time() - ago

    def _read_stamp(self) -> dict[str, Any] | None:
        try:
            stamp = json.loads(self._stamp.read_bytes())
        except (OSError, ValueError):
            return None
        mine = {"boot": _boot(), "kind": self.kind, "value": self.value}
        if not isinstance(stamp, dict) or not mine.items() <= stamp.items():
            return None
        if not isinstance(stamp.get("started"), int) or "error" not in stamp:
            return None
        return stamp

    def _write_stamp(self, started: int, error: str | None) -> None:
        stamp = {
            "boot": _boot(),
            "kind": self.kind,
            "value": self.value,
            "started": started,
            "error": error,
        }
        part = self._stamp.with_name(
            f"{self._stamp.name}.{os.getpid()}.{threading.get_ident()}"
        )
        part.write_text(json.dumps(stamp))
        part.replace(self._stamp)


def _boot() -> str:
    """Which run of the machine the monotonic clock belongs to."""
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _command(value: str) -> str | None:
    """Run the reload command; the reason of a failure, or None."""
    try:
        words = shlex.split(value)
    except ValueError as error:
        return said(
            "the reload command cannot be split into words: {error}", error=error
        )
    if not words:
        return said("the reload command is empty")
    # Our tokens are none of its business; and a file, not a pipe, for what it says: a daemon that it
    # leaves behind would hold a pipe open.
    environment = {
        name: text for name, text in os.environ.items() if not name.endswith("_TOKEN")
    }
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                words,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment,
                start_new_session=True,
            )
        except OSError as error:
            return said(
                "the reload command {command} cannot be run: {error}",
                command=words[0],
                error=error.strerror,
            )
        try:
            code = process.wait(COMMAND_LIMIT_S)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            return said(
                "the reload command {command} took more than {seconds} s",
                command=words[0],
                seconds=f"{COMMAND_LIMIT_S:g}",
            )
        if code == 0:
            return None
        output.seek(max(0, output.seek(0, os.SEEK_END) - 400))
        lines = output.read().decode("utf-8", "replace").strip().splitlines()
        failed = said(
            "the reload command {command} failed ({ended})",
            command=words[0],
            ended=said("exit status {number}", number=code)
            if code > 0
            else said("signal {number}", number=-code),
        )
        return joined(": ", failed, lines[-1][:200]) if lines else failed
