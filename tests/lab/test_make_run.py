"""`make run IFACE=... RANGE=...`: the one command on the machines' network, and a machine that boots from it."""

from __future__ import annotations

import secrets
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.lab.lab_machine import Machine
from tests.lab.lab_master import mark, write_master
from tests.lab.lab_network import CONTROLLER, RANGE, Network
from tests.lab.lab_process import Process, python
from tests.lab.lab_site import CP_TOKEN, REPOSITORY, Api, prepare_root

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("lab")]

MAC = "52:54:00:7a:03:01"
MASTER = "ubuntu_tpl_lab.img"
SOON = 90.0


@pytest.fixture
def product(network: Network, tmp_path: Path, artifacts: Path) -> Iterator[Process]:
    """What `make run` starts, on the controller alone: nothing listens on the storage node."""
    root = prepare_root(tmp_path / "root").root
    (root / "images").mkdir()
    write_master(root / "images" / MASTER, "THE MASTER ITSELF")
    (tmp_path / "runtime").mkdir(mode=0o700)
    process = Process(
        "make-run",
        [python(), "-m", "ipxeready.local"],
        artifacts=artifacts,
        namespace=network.controller,
        env={
            "IFACE": "eth0",
            "RANGE": RANGE,
            "IPXE_ROOT": str(root),
            "IPXE_CP_TOKEN": CP_TOKEN,
            "RUNTIME_DIRECTORY": str(tmp_path / "runtime"),
        },
        cwd=REPOSITORY,
    )
    yield process
    process.stop(30)
    for log in (root / "state" / "run").glob("*.log"):
        (artifacts / log.name).write_bytes(log.read_bytes())


def _left(root: Path) -> list[str]:
    """Command lines of what was started on this root and still runs."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            environ = (entry / "environ").read_bytes()
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ")
        except OSError:
            continue
        if f"IPXE_ROOT={root}\0".encode() in environ and command:
            found.append(command.decode())
    return found


def _wait_until_all_is_gone(product: Process, root: Path) -> None:
    end = time.monotonic() + 40
    while product.running or _left(root):
        assert time.monotonic() < end, _left(root)
        time.sleep(0.1)


def test_a_machine_boots_from_the_one_command(
    network: Network,
    product: Process,
    power_on: Callable[..., Machine],
    tmp_path: Path,
) -> None:
    product.wait_for(r"Ctrl-C ends it", 120)
    assert f"http://{CONTROLLER}:4839/" in product.text
    api = Api(network)
    (node,) = api.get("/agents")
    assert (node["id"], node["iscsi_server"]) == ("local", CONTROLLER)

    console = power_on("machine", MAC).console
    console.wait_for(rf"ipxeready: {MAC} worker-01 +at 192\.0\.2\.\d+", SOON)
    api.send(
        "POST",
        "/workers/worker-01/luns/disk",
        {"type": "master", "os": "ubuntu", "name": MASTER},
    )
    marker = f"clone of worker-01, {secrets.token_hex(8)}"
    mark(tmp_path / "root" / "images" / "worker-01.ubuntu.img", marker)
    api.send("PUT", "/workers/worker-01/default-os", {"os": "ubuntu"})
    said = console.wait_for(r"boot sector on drive 80\s*\n\s*(\S[^\n]*)\n", 2 * SOON)
    assert said[1].strip() == marker

    # With the machine still on its disk.
    product.signal(signal.SIGINT)
    _wait_until_all_is_gone(product, tmp_path / "root")


def test_no_dhcp_outlives_a_kill(product: Process, tmp_path: Path) -> None:
    product.wait_for(r"Ctrl-C ends it", 120)
    assert any("dnsmasq" in line for line in _left(tmp_path / "root"))
    product.signal(signal.SIGKILL)
    _wait_until_all_is_gone(product, tmp_path / "root")
