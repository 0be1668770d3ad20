"""What processes of the tests' own need: an end that comes with the test, a port, and patience."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable

#: The kernel ends the child when the test's process is gone, however it went.
WITH_US = ("setpriv", "--pdeathsig", "KILL")


def free_port() -> int:
    """A port of 127.0.0.1 that nobody had a moment ago."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def eventually(check: Callable[[], object], seconds: float = 10.0) -> None:
    """Wait until `check` is true, or fail."""
    until = time.monotonic() + seconds
    while not check():
        assert time.monotonic() < until, f"not within {seconds} s: {check}"
        time.sleep(0.02)
