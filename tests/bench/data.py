"""Roots of any size for the bench: workers with a disk or two, all bound, on one node."""

from __future__ import annotations

from pathlib import Path

from ipxeready.storage import yamlload
from ipxeready.storage.iqn import image_name
from ipxeready.storage.paths import Layout

NODE_TOKEN = "token-of-the-bench"
BASE = "iqn.2026-07.com.controller"
_NAME = "the-name"


def name(number: int) -> str:
    """The id and hostname of worker `number` (from 1)."""
    return f"worker-{number:02d}"


def mac(number: int) -> str:
    """Its MAC; numbers beyond the ledger's are machines that nobody knows."""
    return "52:54:{:02x}:{:02x}:{:02x}:{:02x}".format(*number.to_bytes(4, "big"))


def boot_path(number: int) -> str:
    """What that worker's firmware asks."""
    return f"/boot-vars?mac={mac(number)}"


def make_root(root: Path, workers: int, node_port: int = 4840) -> Layout:
    """Files as the service writes them: every second worker has two disks."""
    layout = Layout(root)
    for folder in (layout.config, layout.state, layout.dnsmasq):
        folder.mkdir(parents=True, exist_ok=True)
    shapes = [_record("ubuntu"), _record("ubuntu", "windows")]
    records = (
        shapes[number % 2].replace(_NAME, name(number))
        for number in range(1, workers + 1)
    )
    layout.workers_yml.write_text("workers:\n" + "".join(records))
    layout.dhcp_hosts.write_text(
        "".join(f"{mac(number)},{name(number)}\n" for number in range(1, workers + 1))
    )
    node = {
        "base_url": f"http://127.0.0.1:{node_port}",
        "token": NODE_TOKEN,
        "iscsi_server": "192.0.2.10",
        "role": {"disk": True, "cd": True},
        "tags": ["stgt"],
        "enabled": True,
    }
    layout.agents_yml.write_text("agents:\n" + _indented({"node-1": node}))
    layout.agents_yml.chmod(0o600)
    return layout


def _record(*systems: str) -> str:
    disks = [
        {
            "agent": "node-1",
            "iqn": f"{BASE}:{_NAME}.{system}",
            "filename": image_name(_NAME, system),
            "backing": f"/srv/images/{image_name(_NAME, system)}",
            "os": system,
            "source": {"type": "master", "name": f"{system}_tpl_room.img"},
        }
        for system in systems
    ]
    record = {
        "hostname": _NAME,
        "arch": "x86_64",
        "state": "ready",
        "default_os": "ubuntu",
        "disks": disks,
        "cd": None,
    }
    return _indented({_NAME: record})


def _indented(record: dict[str, object]) -> str:
    lines = yamlload.dump(record).splitlines()
    return "".join(f"  {line}\n" for line in lines)
