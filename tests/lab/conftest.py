"""Fixtures of the lab: real firmware, dnsmasq and tgtd in network namespaces. Run with `pytest -m lab`."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.lab.lab_guest import Guest
from tests.lab.lab_machine import Machine
from tests.lab.lab_network import Network
from tests.lab.lab_site import Site

_PROGRAMS = ("ip", "dnsmasq", "tgtd", "tgtadm", "qemu-system-x86_64")
ARTIFACTS = Path(__file__).parent / "artifacts"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The lab needs root and its programs: say so once, rather than fail in each test."""
    missing = [name for name in _PROGRAMS if not shutil.which(name)]
    if os.geteuid() == 0 and not missing:
        return
    reason = f"the lab needs root and {', '.join(missing) or 'nothing else'}"
    for item in items:
        if item.get_closest_marker("lab"):
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session", autouse=True)
def _end_on_sigterm() -> Iterator[None]:
    """`timeout` and CI end a run by SIGTERM: let fixtures clean up then, too."""

    def leave(*_: object) -> None:
        raise SystemExit(143)

    before = signal.signal(signal.SIGTERM, leave)
    yield
    signal.signal(signal.SIGTERM, before)


@pytest.fixture
def artifacts(request: Any) -> Path:
    """Where this test's console and daemon logs stay when it is over."""
    folder = ARTIFACTS / request.node.name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


@pytest.fixture
def network() -> Iterator[Network]:
    """A switch, a controller and a storage node."""
    network = Network()
    yield network
    network.remove()


@pytest.fixture
def power_on(network: Network, artifacts: Path) -> Iterator[Callable[..., Machine]]:
    """Starts machines; those that still run at the end are switched off."""
    machines: list[Machine] = []

    def start(name: str, mac: str, **options: Any) -> Machine:
        machine = Machine(network, name=name, mac=mac, artifacts=artifacts, **options)
        machines.append(machine)
        return machine

    yield start
    for machine in machines:
        machine.power_off()


@pytest.fixture
def site(network: Network, tmp_path: Path, artifacts: Path) -> Iterator[Site]:
    """The product on its controller and its storage node, with dnsmasq and tgtd."""
    site = Site(network, tmp_path, artifacts)
    yield site
    site.stop()


@pytest.fixture(scope="session", params=["xfs", "btrfs"])
def guest(request: Any) -> Iterator[Guest]:
    """A machine with the kernel's target, its data on XFS and then on Btrfs: one start for all tests, which clean up after themselves."""
    folder = ARTIFACTS / f"guest-{request.param}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with Guest(folder, fs=request.param) as guest:
        yield guest
