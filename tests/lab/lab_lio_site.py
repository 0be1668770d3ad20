"""A site whose storage node is a guest: its target is the kernel's (LIO), its images lie on XFS."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from agents.protocol.systems import LIO
from tests.lab import lab_master
from tests.lab.lab_guest import Guest
from tests.lab.lab_network import STORAGE_GUEST, Network
from tests.lab.lab_site import Site

_IMAGES = Path("/data/images")
_ROOT = Path("/data/root")
_FIRST_DRIVE = "e"


class LioSite(Site):
    """dnsmasq and the control plane on the controller as ever; the agent in the guest."""

    backend = LIO
    storage = STORAGE_GUEST
    images = _IMAGES

    def __init__(
        self,
        network: Network,
        folder: Path,
        artifacts: Path,
        masters: Mapping[str, Path] | None = None,
    ) -> None:
        self._disk = folder / "guest.img"
        super().__init__(network, folder, artifacts, masters)

    def _start_node(self, folder: Path) -> None:
        self._power_on([*self._masters.values()])
        self.guest.run(["mkdir", str(_IMAGES)])
        for number, name in enumerate(self._masters):
            drive = f"/dev/vd{chr(ord(_FIRST_DRIVE) + number)}"
            image = str(_IMAGES / name)
            self.guest.run(["cp", "--sparse=always", drive, image], within=300)
        self._start_agent()

    def _power_on(self, drives: Sequence[Path] = ()) -> None:
        self.guest = Guest(
            self.artifacts,
            name="storage",
            network=self.network,
            address=self.storage,
            # Nothing of the target is loaded: that is the product's business.
            modules=(),
            disk=self._disk,
            drives=drives,
        )

    def _start_agent(self) -> None:
        self.agent = self.guest.start(
            Guest.python("manage.py", "serve"),
            name="agent",
            env=self._agent_environment(_ROOT, _IMAGES),
        )

    def kill_agent(self) -> None:
        """`kill -9` of the agent, with all that it has started; the next one is up at the end."""
        self.agent.kill()
        self._start_agent()
        self._wait_healthy()

    def cut_power(self) -> None:
        """The node's machine goes off without a warning, and comes up again; so does its agent."""
        self.guest.power_off()
        self._power_on()
        self._start_agent()
        self._wait_healthy()

    def mark(self, image: str, text: str) -> None:
        """Make a disk of the node say `text` from its next start on."""
        place = [f"of={_IMAGES / image}", f"bs={lab_master.SECTOR}", "seek=1"]
        sector = lab_master.sector(text).decode()
        self.guest.run(["dd", *place, "conv=notrunc"], typed=sector)

    def marked(self, image: str) -> str:
        """What a disk of the node would say."""
        place = [f"if={_IMAGES / image}", f"bs={lab_master.SECTOR}", "skip=1"]
        done = self.guest.run(["dd", *place, "count=1", "status=none"])
        return lab_master.text_of(done.stdout.encode())

    def stop(self) -> None:
        """End all of it; the node's machine is switched off the hard way."""
        if hasattr(self, "guest"):
            self.guest.power_off()
        super().stop()

    def _remove_images(self) -> None:
        self._disk.unlink(missing_ok=True)
