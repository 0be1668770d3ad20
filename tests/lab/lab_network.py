"""The lab's network: a switch, a controller and a storage node, each in a namespace that is ours alone.

Namespaces carry the pid of their maker, so that labs can run side by side and what a killed one left is swept up.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from tests.lab.lab_process import run

#: Addresses for documentation (RFC 5737, RFC 4193): nothing outside has them.
CONTROLLER = "192.0.2.1"
STORAGE = "192.0.2.2"
#: A storage node that is a machine of its own (lab_guest.py) and joins by a tap.
STORAGE_GUEST = "192.0.2.3"
RANGE = "192.0.2.100,192.0.2.200,255.255.255.0,1h"
PREFIX6 = "fd77:7a17:b007::"
_NAME = re.compile(r"ipxelab-(\d+)-\w+")


class Network:
    """Three namespaces on one bridge; machines join it by taps."""

    def __init__(self) -> None:
        sweep()
        prefix = f"ipxelab-{os.getpid()}"
        self.switch = f"{prefix}-switch"
        self.controller = f"{prefix}-control"
        self.storage = f"{prefix}-storage"
        self._taps = 0
        try:
            self._build()
        except BaseException:
            self.remove()
            raise

    def _build(self) -> None:
        for name in (self.switch, self.controller, self.storage):
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        self._switch(
            "link add bridge0 type bridge forward_delay 0 stp_state 0",
            "link set bridge0 up",
        )
        for name, port, address in (
            (self.controller, "control", CONTROLLER),
            (self.storage, "storage", STORAGE),
        ):
            self._switch(
                f"link add {port} type veth peer name eth0 netns {name}",
                f"link set {port} master bridge0 up",
            )
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", "eth0")
            run("ip", "-n", name, "link", "set", "eth0", "up")
        # An address of the controller's own: the advertisement of fast-start.conf needs it.
        run(*f"ip -n {self.controller} addr add {PREFIX6}1/64 dev eth0 nodad".split())

    def _switch(self, *lines: str) -> None:
        for line in lines:
            run("ip", "-n", self.switch, *line.split())

    def add_tap(self, *, cabled: bool = True) -> str:
        """A port for one machine; without a cable it leads nowhere."""
        self._taps += 1
        name = f"tap{self._taps}"
        self._switch(f"tuntap add {name} mode tap")
        self._switch(f"link set {name} {'master bridge0 ' if cabled else ''}up")
        return name

    def remove_tap(self, name: str) -> None:
        """Take the port away."""
        run("ip", "-n", self.switch, "link", "del", name, check=False)

    def remove(self) -> None:
        """Take all of it away; what runs inside must have ended."""
        for name in (self.switch, self.controller, self.storage):
            run("ip", "netns", "del", name, check=False)


def sweep() -> None:
    """Remove the namespaces of labs whose process is gone (a kill -9); its programs ended with it."""
    for line in run("ip", "netns", "list").splitlines():
        match = _NAME.match(line)
        if match and not Path("/proc", match[1]).exists():
            run("ip", "netns", "del", match[0], check=False)
