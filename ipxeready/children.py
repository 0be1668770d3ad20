"""Child processes of `make run`: they log to files, end in order, and never outlive us."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

_PR_SET_PDEATHSIG: Final = 1
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
#: Passes our end on to the program, and is gone only when that is. The end may come before the program's number is known,
#: and is lost on a shell that has forked and not become the program yet: hence the pause.
_GUARD: Final = (
    """end() { sleep 0.1; kill "$p"; }; trap 'e=1; [ -z "$p" ] || end' TERM; "$@" & p=$!; """
    """[ -z "$e" ] || end; wait "$p"; wait "$p" """
)


def _follow_parent(signum: int) -> Callable[[], None]:
    """Have the kernel send `signum` to the child when we die, however that happens."""
    parent = os.getpid()

    def in_child() -> None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signum)
        if os.getppid() != parent:  # died in between
            os._exit(1)

    return in_child


def guarded(command: Sequence[str]) -> list[str]:
    """The command below a shell that ends it with us.

    For a program that changes its user: the kernel no longer tells it then that its parent died.
    """
    return ["/bin/sh", "-c", _GUARD, "sh", *command]


class Child:
    """One process in a session of its own, so that Ctrl-C reaches us only."""

    def __init__(
        self,
        name: str,
        command: Sequence[str],
        *,
        log: Path,
        environ: Mapping[str, str],
        on_our_death: int = signal.SIGTERM,
    ) -> None:
        self.name = name
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=dict(environ),
                start_new_session=True,
                preexec_fn=_follow_parent(on_our_death),  # safe: we have one thread
            )

    @property
    def ended(self) -> bool:
        """Whether it is gone."""
        return self._process.poll() is not None

    def stop(self, patience: float) -> None:
        """Ask it to end, and after `patience` seconds make it."""
        if self.ended:
            return
        self._process.terminate()
        try:
            self._process.wait(patience)
        except subprocess.TimeoutExpired:
            # Its session's group, which nothing of it may outlive.
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def last_lines(self, count: int = 8) -> str:
        """The end of its log, for the terminal."""
        try:
            lines = self.log.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return ""
        return "\n".join(f"  {line}" for line in lines[-count:])
