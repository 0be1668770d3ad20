"""Processes of the lab: each ends with us, also when we are killed; each writes a log that can be read afterwards."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)
#: Cursor movement and colours of a terminal, and the carriage returns between them.
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[()][A-Z0-9]|[\r\0\x0f]")

#: Seconds without a word after which a screen counts as drawn, those in which a menu follows a key, and how often an
#: arrow is pressed at the most.
_QUIET, _FOLLOWS, _PRESSES = 0.2, 5.0, 3


def run(*command: str, check: bool = True) -> str:
    """The output of a short command; RuntimeError with its words when it fails."""
    done = subprocess.run(command, capture_output=True, text=True, timeout=180)
    if check and done.returncode:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout


def _die_with(parent: int) -> Callable[[], None]:
    def prepare() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died in between
            os._exit(1)

    return prepare


def _clean_environment() -> dict[str, str]:
    """Ours without what the test runner told Django, and without what a developer told the product."""
    ours = ("DJANGO_", "IPXE_", "PYTEST_", "TGT_")
    return {
        name: value for name, value in os.environ.items() if not name.startswith(ours)
    }


class Transcript:
    """What a program has said so far, on the way to a log as well; it can be waited for."""

    def __init__(self, name: str, log: Path) -> None:
        self.name = name
        self._log: BinaryIO = log.open("ab")
        self._text = ""
        self._tail = ""
        self._from = 0
        self._news = threading.Condition()

    def _said(self, data: bytes) -> None:
        self._log.write(data)
        self._log.flush()
        with self._news:
            raw = self._tail + data.decode("latin-1")
            # A control sequence may be cut in two by the end of a read.
            cut = raw.rfind("\x1b", max(0, len(raw) - 16))
            self._tail = raw[cut:] if cut >= 0 and not _CONTROL.match(raw, cut) else ""
            self._text += _CONTROL.sub("", raw[: len(raw) - len(self._tail)])
            self._news.notify_all()

    @property
    def running(self) -> bool:
        """Whether the program has not ended."""
        raise NotImplementedError

    @property
    def text(self) -> str:
        """All that it has said, without control sequences."""
        with self._news:
            return self._text

    def wait_for(self, pattern: str, within: float) -> re.Match[str]:
        """The next match behind the last one, or AssertionError with what was said instead."""
        expression = re.compile(pattern)
        end = time.monotonic() + within
        with self._news:
            while True:
                if match := expression.search(self._text, self._from):
                    self._from = match.end()
                    return match
                left = end - time.monotonic()
                if left <= 0 or not self.running:
                    seen = self._text[self._from :][-3000:]
                    state = "running" if self.running else "ended"
                    raise AssertionError(
                        f"{self.name} ({state}) did not say {pattern!r} within "
                        f"{within:g} s. It said:\n{seen}"
                    )
                self._news.wait(min(left, 0.2))

    def from_now(self) -> None:
        """What was said up to now no longer counts for `wait_for`."""
        with self._news:
            self._from = len(self._text)


class Process(Transcript):
    """A program in a namespace; what it says is logged, and can be waited for."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        artifacts: Path,
        namespace: str | None = None,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        pass_fds: Sequence[int] = (),
    ) -> None:
        super().__init__(name, artifacts / f"{name}.log")
        inside = ["ip", "netns", "exec", namespace] if namespace else []
        self.started = time.monotonic()
        self._process = subprocess.Popen(
            [*inside, *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**_clean_environment(), **(env or {})},
            cwd=cwd,
            preexec_fn=_die_with(os.getpid()),
            pass_fds=pass_fds,
        )
        self.pid = self._process.pid
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout
        descriptor = self._process.stdout.fileno()
        while data := os.read(descriptor, 65536):
            self._said(data)

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def type(self, *keys: str) -> None:
        """Press keys on its standard input, no faster than a firmware without interrupts can read them.

        Each waits until the screen is drawn, and an arrow for the menu to follow it: what is pressed meanwhile
        may be lost on a busy machine. An arrow that nothing follows is pressed again.
        """
        for key in keys:
            self._settle()
            arrow = key.startswith("\x1b")
            for _ in range(_PRESSES if arrow else 1):
                said = len(self._text)
                for part in key if key.isprintable() else [key]:
                    self._press(part.encode())
                    time.sleep(0.03)
                if not arrow or self._more(said, _FOLLOWS):
                    break

    def _settle(self) -> None:
        """Wait until nothing has been said for a moment; a menu's countdown says something each second."""
        end = time.monotonic() + _FOLLOWS
        while self._more(len(self._text), _QUIET) and time.monotonic() < end:
            pass

    def _more(self, said: int, within: float) -> bool:
        """Whether something comes after so many letters."""
        with self._news:
            return self._news.wait_for(lambda: len(self._text) > said, within)

    def _press(self, code: bytes) -> None:
        assert self._process.stdin
        self._process.stdin.write(code)
        self._process.stdin.flush()

    def signal(self, number: int) -> None:
        """Send a signal."""
        self._process.send_signal(number)

    def stop(self, patience: float = 5.0) -> None:
        """End it: SIGTERM, then SIGKILL."""
        if self.running:
            self._process.terminate()
            try:
                self._process.wait(patience)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._reader.join(2)
        for stream in (self._process.stdin, self._process.stdout):
            if stream and not (
                stream is self._process.stdout and self._reader.is_alive()
            ):
                with contextlib.suppress(OSError):
                    stream.close()
        self._log.close()


def python() -> str:
    """The interpreter that runs the tests."""
    return sys.executable
