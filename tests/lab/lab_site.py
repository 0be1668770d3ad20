"""A whole site in the lab's network: dnsmasq and the control plane on the controller, tgtd and the agent on the node.

The product runs as a user runs it (`manage.py serve`), on a root folder with the shipped configuration and scripts.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agents.protocol.systems import STGT
from ipxeready.storage.paths import Layout
from tests.lab import lab_master
from tests.lab.lab_network import CONTROLLER, RANGE, STORAGE, Network
from tests.lab.lab_process import Process, Transcript, python, run
from workers import dnsmasq_options

REPOSITORY = Path(__file__).resolve().parents[2]
LOADERS = Path("/usr/lib/ipxe")
CP_TOKEN = "token-of-the-lab"
AGENT_TOKEN = "token-of-the-labs-node"


def prepare_root(root: Path) -> Layout:
    """An IPXE_ROOT with what is shipped in dnsmasq/ and tftp/, and Debian's loaders."""
    layout = Layout(root)
    root.mkdir(parents=True, exist_ok=True)
    for name in ("dnsmasq", "tftp"):
        shutil.copytree(
            REPOSITORY / name,
            root / name,
            ignore=shutil.ignore_patterns("site.conf", "dhcp-hosts.conf"),
            dirs_exist_ok=True,
        )
    for loader in ("undionly.kpxe", "snponly.efi"):
        shutil.copy(LOADERS / loader, layout.tftp)
    layout.dhcp_hosts.touch()
    return layout


class Dnsmasq(Process):
    """DHCP and TFTP on the shipped configuration."""

    def __init__(
        self,
        network: Network,
        layout: Layout,
        artifacts: Path,
        *,
        folder: Path,
        fast_start: bool = True,
        extra: tuple[str, ...] = (),
    ) -> None:
        self.pid_file = folder / "dnsmasq.pid"
        self.lease_file = folder / "dnsmasq.leases"
        command = dnsmasq_options.command(
            layout,
            interface="eth0",
            dhcp_range=RANGE,
            lease_file=self.lease_file,
            pid_file=self.pid_file,
            fast_start=fast_start,
        )
        # A process that changes its user or group is no longer told when its parent dies.
        root = {"--user=root", "--group=root"} - set(command)
        super().__init__(
            "dnsmasq",
            [*command, *root, "--log-dhcp", *extra],
            artifacts=artifacts,
            namespace=network.controller,
            env={"LC_ALL": "C"},
        )
        self.wait_for(r"DHCP, IP range", 10)

    def reload(self) -> None:
        """Make it read the hosts file again."""
        self.signal(signal.SIGHUP)


class Tgtd(Process):
    """A target daemon with a control socket of its own: namespaces do not separate that."""

    def __init__(self, network: Network, artifacts: Path, *, folder: Path) -> None:
        self.socket = folder / "tgtd"
        self.portal = f"{STORAGE}:3260"
        super().__init__(
            "tgtd",
            ["tgtd", "-f", "-t", "1", "--iscsi", f"portal={self.portal}"],
            artifacts=artifacts,
            namespace=network.storage,
            env={"TGT_IPC_SOCKET": str(self.socket)},
        )
        end = time.monotonic() + 10
        while True:
            with contextlib.suppress(RuntimeError):
                self.adm("--mode", "sys", "--op", "show")
                break
            assert self.running and time.monotonic() < end, self.text
            time.sleep(0.05)

    def adm(self, *words: str) -> str:
        """One call of tgtadm."""
        return run(
            *("env", f"TGT_IPC_SOCKET={self.socket}", "tgtadm", "--lld", "iscsi"),
            *words,
        )

    def stop(self, patience: float = 0.0) -> None:
        """It ignores SIGTERM while it has targets."""
        super().stop(patience)


@dataclass
class Answer:
    """What the API said."""

    status: int
    body: Any


class Api:
    """The control plane's API, called from within the controller's namespace as a script would."""

    def __init__(self, network: Network, *, port: int = 4839) -> None:
        self._namespace = network.controller
        self._base = f"http://127.0.0.1:{port}"

    def call(self, method: str, path: str, body: Any = None) -> Answer:
        """One request; the status is for the caller to judge."""
        program = (
            "import json, sys, urllib.request, urllib.error\n"
            "method, url, token, body = sys.argv[1:]\n"
            "request = urllib.request.Request(url, method=method,\n"
            "    data=body.encode() or None, headers={'Content-Type':\n"
            "    'application/json', 'Authorization': 'Bearer ' + token})\n"
            "try:\n"
            "    answer = urllib.request.urlopen(request, timeout=150)\n"
            "except urllib.error.HTTPError as error:\n"
            "    answer = error\n"
            "sys.stdout.write(json.dumps([answer.status, answer.read().decode()]))\n"
        )
        status, text = json.loads(
            run(
                *("ip", "netns", "exec", self._namespace, python(), "-S", "-E"),
                *("-c", program, method, self._base + path, CP_TOKEN),
                json.dumps(body) if body is not None else "",
            )
        )
        try:
            return Answer(status, json.loads(text) if text else None)
        except ValueError:
            return Answer(status, text)

    def get(self, path: str) -> Any:
        """The body of a GET that must succeed."""
        return self._sure(self.call("GET", path), f"GET {path}")

    def send(self, method: str, path: str, body: Any = None) -> Any:
        """The body of a write that must succeed."""
        return self._sure(self.call(method, path, body), f"{method} {path}")

    @staticmethod
    def _sure(answer: Answer, what: str) -> Any:
        assert 200 <= answer.status < 300, f"{what}: {answer.status} {answer.body}"
        return answer.body


class Site:
    """All daemons of a site, up when made. Its node finds `masters` in its image directory, by these names."""

    backend = STGT
    #: The node's address.
    storage = STORAGE

    def __init__(
        self,
        network: Network,
        folder: Path,
        artifacts: Path,
        masters: Mapping[str, Path] | None = None,
    ) -> None:
        self.network = network
        self.artifacts = artifacts
        self.layout = prepare_root(folder / "root")
        self._parts: list[Process] = []
        self._masters = masters or {}
        self.api = Api(network)
        try:
            self._start(folder)
        except BaseException:
            self.stop()
            raise

    def _start(self, folder: Path) -> None:
        self.dnsmasq = Dnsmasq(self.network, self.layout, self.artifacts, folder=folder)
        self._parts.append(self.dnsmasq)
        (folder / "runtime").mkdir(mode=0o700)
        self.control = self._serve(
            "control-plane",
            self.network.controller,
            {
                "IPXE_MODE": "control",
                "IPXE_ROOT": str(self.layout.root),
                "IPXE_CP_TOKEN": CP_TOKEN,
                "IPXE_CP_DNSMASQ_RELOAD": f"pidfile:{self.dnsmasq.pid_file}",
                "IPXE_CP_DNSMASQ_LEASES": str(self.dnsmasq.lease_file),
                "RUNTIME_DIRECTORY": str(folder / "runtime"),
            },
        )
        self._start_node(folder)
        self._wait_healthy()

    def _start_node(self, folder: Path) -> None:
        self.images = folder / "images"
        self.images.mkdir()
        for name, master in self._masters.items():
            run("cp", "--sparse=always", str(master), str(self.images / name))
        self.tgtd = Tgtd(self.network, self.artifacts, folder=folder)
        self._parts.append(self.tgtd)
        env = self._agent_environment(folder / "node", self.images)
        self.agent: Transcript = self._serve(
            "agent",
            self.network.storage,
            {**env, "IPXE_STGT_SOCKET": str(self.tgtd.socket)},
        )

    def _agent_environment(self, root: Path, images: Path) -> dict[str, str]:
        return {
            "IPXE_MODE": "agent",
            "IPXE_ROOT": str(root),
            "IPXE_AGENT_TOKEN": AGENT_TOKEN,
            "IPXE_AGENT_BACKEND": self.backend,
            "IPXE_DISK_DIR": str(images),
            "IPXE_ISCSI_PORTAL": f"{self.storage}:3260",
        }

    def _serve(self, name: str, namespace: str, env: dict[str, str]) -> Process:
        process = Process(
            name,
            [python(), str(REPOSITORY / "manage.py"), "serve"],
            artifacts=self.artifacts,
            namespace=namespace,
            env=env,
            cwd=REPOSITORY,
        )
        self._parts.append(process)
        return process

    def _wait_healthy(self, within: float = 60.0) -> None:
        end = time.monotonic() + within
        waiting: dict[str, tuple[Transcript, str]] = {
            "control plane": (self.control, f"http://{CONTROLLER}:4839/healthz"),
            "agent": (self.agent, f"http://{self.storage}:4840/healthz"),
        }
        while waiting:
            for name, (process, url) in list(waiting.items()):
                assert process.running, f"the {name} ended:\n{process.text[-3000:]}"
                fetch = (
                    "import urllib.request, sys\n"
                    "urllib.request.urlopen(sys.argv[1], timeout=3)\n"
                )
                with contextlib.suppress(RuntimeError):
                    run(
                        *("ip", "netns", "exec", self.network.controller),
                        *(python(), "-S", "-E", "-c", fetch, url),
                    )
                    del waiting[name]
            assert time.monotonic() < end, f"not up within {within:g} s: {waiting}"
            time.sleep(0.2)

    def agent_record(self) -> dict[str, Any]:
        """What `POST /agents` takes to know this node."""
        return {
            "id": "node-1",
            "base_url": f"http://{self.storage}:4840",
            "token": AGENT_TOKEN,
            "iscsi_server": self.storage,
            "role": {"disk": True, "cd": True},
            "tags": ["storage", self.backend],
            "enabled": True,
        }

    def mark(self, image: str, text: str) -> None:
        """Make a disk of the node say `text` from its next start on, as lab_master.py has it."""
        lab_master.mark(self.images / image, text)

    def marked(self, image: str) -> str:
        """What a disk of the node would say."""
        return lab_master.marked(self.images / image)

    def stop(self) -> None:
        """End all of it, what was started last first. No image stays: pytest keeps its folders, and they are large."""
        for part in reversed(self._parts):
            part.stop()
        self._remove_images()

    def _remove_images(self) -> None:
        for image in self.images.glob("*.img"):
            image.unlink()
