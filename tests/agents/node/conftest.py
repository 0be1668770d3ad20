"""A storage node over each backend: the table of `files`, and a real tgtd."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from agents.node import runtime, startup
from ipxeready import conf
from ipxeready.storage.paths import Layout
from tests.agents.node import node_lab
from tests.agents.node.node_lab import TOKEN, Lab


@pytest.fixture
def make_lab(tmp_path: Path, settings: Any) -> Iterator[Callable[..., Lab]]:
    """Build a Lab for a backend and a folder."""
    settings.ROOT_URLCONF = "agents.node.urls"
    settings.MIDDLEWARE = ["agents.node.http.BearerMiddleware"]
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 64 * 1024

    def use(config: conf.Config) -> None:
        settings.IPXE = config
        settings.IPXE_LAYOUT = Layout(config.root)

    def make(folder: Path | None = None, tgtd: node_lab.Tgtd | None = None) -> Lab:
        folder = folder or tmp_path / "images"
        folder.mkdir(exist_ok=True)
        environment = {
            "IPXE_MODE": "agent",
            "IPXE_ROOT": str(tmp_path),
            "IPXE_DISK_DIR": str(folder),
            "IPXE_AGENT_TOKEN": TOKEN,
            "IPXE_AGENT_BACKEND": "stgt" if tgtd else "files",
        }
        if tgtd:
            environment["IPXE_STGT_SOCKET"] = str(tgtd.socket)
            environment["IPXE_STGT_CONTROL_PORT"] = str(tgtd.control_port)
            environment["IPXE_ISCSI_PORTAL"] = f"127.0.0.1:{tgtd.port}"
        config = conf.load(environment)
        use(config)
        node = startup.build(config)
        runtime.install(node)
        client = Client(headers={"Authorization": f"Bearer {TOKEN}"})
        return Lab(folder, environment, client, Client(), tgtd, use, node)

    yield make
    runtime.install(None)


@pytest.fixture
def tgtd() -> Iterator[node_lab.Tgtd]:
    """A tgtd of this test's own."""
    with node_lab.tgtd() as daemon:
        yield daemon


@pytest.fixture(params=["files", pytest.param("stgt", marks=pytest.mark.tgtd)])
def lab(request: pytest.FixtureRequest, make_lab: Callable[..., Lab]) -> Lab:
    """A node over each backend."""
    return make_lab(
        tgtd=request.getfixturevalue("tgtd") if request.param == "stgt" else None
    )


@pytest.fixture
def stgt(make_lab: Callable[..., Lab], tgtd: node_lab.Tgtd) -> Lab:
    """A node over a real tgtd, for what only a target system shows."""
    return make_lab(tgtd=tgtd)


@pytest.fixture
def files(make_lab: Callable[..., Lab]) -> Lab:
    """A node without a daemon, for what no backend changes."""
    return make_lab()


@pytest.fixture(scope="session")
def _own_mounts() -> None:
    node_lab.own_mounts()


@pytest.fixture(params=["xfs", "btrfs"])
def reflink_folder(
    request: pytest.FixtureRequest, tmp_path: Path, _own_mounts: None
) -> Iterator[Path]:
    """A folder on a real file system that clones."""
    with node_lab.mounted(request.param, tmp_path) as point:
        yield point


@pytest.fixture
def small_folder(tmp_path: Path, _own_mounts: None) -> Iterator[Path]:
    """A folder on a real ext4 of 64 MiB: it fills up, and does not clone."""
    with node_lab.mounted("ext4", tmp_path, size="64M") as point:
        yield point
