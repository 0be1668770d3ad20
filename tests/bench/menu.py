"""From power-on to the menu: a BIOS machine with its card's own iPXE, in the lab's network."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

_PROGRAMS = ("ip", "dnsmasq", "tgtd", "tgtadm", "qemu-system-x86_64")
_MAC = "52:54:00:7a:00:01"
#: From power-on, on a machine that others use as well.
_LONGEST = 60.0


def why_not() -> str:
    """Why it cannot be measured here; empty when it can."""
    missing = [name for name in _PROGRAMS if not shutil.which(name)]
    if os.geteuid():
        return "needs root"
    return f"needs {', '.join(missing)}" if missing else ""


def measure(times: int) -> list[float]:
    """Seconds of each power-on; the machine is known and has a disk to start, so that nothing holds it up."""
    from tests.lab.lab_machine import Machine
    from tests.lab.lab_network import Network
    from tests.lab.lab_site import Site

    found = []
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="bench-lab-"))
        )
        artifacts = folder / "artifacts"
        artifacts.mkdir()
        network = Network()
        stack.callback(network.remove)
        site = Site(network, folder, artifacts)
        stack.callback(site.stop)
        site.api.send("POST", "/agents", site.agent_record())
        site.api.send("POST", "/workers", {"worker_id": "worker-01", "mac": _MAC})
        disk = {"type": "empty", "os": "ubuntu", "size": "16M"}
        site.api.send("POST", "/workers/worker-01/luns/disk", disk)
        choice = {"os": "ubuntu"}
        site.api.send("PUT", "/workers/worker-01/default-os", choice)
        for number in range(times):
            begin = time.perf_counter()
            machine = Machine(
                network, name=f"bench-{number}", mac=_MAC, artifacts=artifacts
            )
            try:
                machine.console.wait_for(r"Systems", _LONGEST)
                found.append(time.perf_counter() - begin)
            finally:
                machine.power_off()
    return found
