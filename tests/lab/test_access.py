"""Who may log in to a worker's disk, with real initiators: only its own machine, and with CHAP only by its secret. On both targets."""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from agents.protocol.systems import LUN_NUMBER
from tests.lab.lab_lio_site import LioSite
from tests.lab.lab_machine import Machine
from tests.lab.lab_master import write_master
from tests.lab.lab_network import Network
from tests.lab.lab_process import run
from tests.lab.lab_site import Site

pytestmark = [pytest.mark.lab, pytest.mark.xdist_group("lab")]

MAC = "52:54:00:7a:05:01"
MASTER = "ubuntu_tpl_lab.img"
BASE = "iqn.2026-07.com.controller"
OURS, OTHER = f"{BASE}:worker-01", f"{BASE}:worker-02"
TARGET = f"{OURS}.ubuntu"
SOON = 120.0


@pytest.fixture(params=[Site, LioSite], ids=["stgt", "lio"])
def site(
    request: Any, network: Network, tmp_path: Path, artifacts: Path
) -> Iterator[Site]:
    """The product with either target; a worker has a disk, which it boots by default."""
    master = tmp_path / MASTER
    write_master(master, "THE MASTER ITSELF")
    site: Site = request.param(network, tmp_path, artifacts, {MASTER: master})
    site.api.send("POST", "/agents", site.agent_record())
    site.api.send("POST", "/workers", {"worker_id": "worker-01", "mac": MAC})
    site.api.send(
        "POST",
        "/workers/worker-01/luns/disk",
        {"type": "master", "os": "ubuntu", "name": MASTER},
    )
    default = {"os": "ubuntu", "menu_timeout": 1000}
    site.api.send("PUT", "/workers/worker-01/default-os", default)
    yield site
    site.stop()


def _logs_in(site: Site, initiator: str, chap: str = "") -> bool:
    """Whether an initiator of that name gets at the disk; `chap` is name%secret."""
    user = f"{chap}@" if chap else ""
    lun = LUN_NUMBER[site.backend]
    done = subprocess.run(
        [
            *("ip", "netns", "exec", site.network.controller, "iscsi-inq"),
            *("-i", initiator, f"iscsi://{user}{site.storage}/{TARGET}/{lun}"),
        ],
        capture_output=True,
        text=True,
        timeout=30,
    )
    # It ends with 0 even when it was turned away.
    return "Vendor:" in done.stdout


def _secret(site: Site) -> str:
    """What the controller keeps, as libiscsi wants it."""
    path = site.layout.root / "config" / "chap-secrets.yml"
    record = yaml.safe_load(path.read_text())["secrets"]["worker-01"]
    return f"{record['username']}%{record['secret']}"


def _boot_vars(site: Site) -> str:
    """What the controller tells itself, which has no lease, for the worker's MAC."""
    url = f"http://127.0.0.1:4839/boot-vars?mac={MAC}&format=ipxe"
    return run("ip", "netns", "exec", site.network.controller, "curl", "-sS", url)


def test_only_the_workers_own_machine_gets_at_its_disk(
    site: Site, power_on: Callable[..., Machine]
) -> None:
    # The node is new: ACL.
    assert _logs_in(site, OURS)
    assert not _logs_in(site, OTHER)

    site.api.send("PUT", "/workers/worker-01/access", {"access": "chap"})
    secret = _secret(site)
    assert _logs_in(site, OURS, secret)
    assert not _logs_in(site, OURS)
    assert not _logs_in(site, OURS, f"{secret[:-1]}{'a' if secret[-1] != 'a' else 'b'}")
    assert not _logs_in(site, OTHER, secret)

    # A machine boots by the secret that its script brings; nobody else is told it.
    marker = f"clone of worker-01, {secrets.token_hex(8)}"
    site.mark("worker-01.ubuntu.img", marker)
    machine = power_on("machine", MAC)
    machine.console.wait_for(rf"boot sector on drive 80[^:]*\s{marker}\s", SOON)
    (target,) = site.api.get("/agents/node-1/luns")
    assert target["access"] == "chap"
    assert [session["initiator"] for session in target["sessions"]] == [OURS]
    password = secret.partition("%")[2]
    told = _boot_vars(site)
    assert told.startswith("#!ipxe")
    assert password not in told
    assert "set password" not in told
    # Nor does it stand in any log, or on the machine's screen.
    for log in site.artifacts.glob("*.log"):
        assert password not in log.read_text(errors="replace"), log
    machine.power_off()

    # One switch goes back.
    site.api.send("PUT", "/workers/worker-01/access", {"access": "off"})
    assert _logs_in(site, OTHER)
    assert _logs_in(site, OURS)
