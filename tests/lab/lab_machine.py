"""A machine without disks: QEMU with a network card's own iPXE, read and typed at through its serial line."""

from __future__ import annotations

from pathlib import Path

from tests.lab.lab_network import Network
from tests.lab.lab_process import Process


class Machine:
    """Powered on when made. `uncabled` are cards that come before the one with the cable."""

    def __init__(
        self,
        network: Network,
        *,
        name: str,
        mac: str,
        artifacts: Path,
        uncabled: tuple[str, ...] = (),
        memory: int = 96,
        extra: tuple[str, ...] = (),
        own_firmware: bool = True,
    ) -> None:
        self.name = name
        self.mac = mac
        self._network = network
        self._taps: list[str] = []
        cards: list[str] = []
        for number, address in enumerate((*uncabled, mac)):
            tap = network.add_tap(cabled=address == mac)
            self._taps.append(tap)
            firmware = "" if own_firmware and address == mac else ",romfile="
            cards += [
                "-netdev",
                f"tap,id=net{number},ifname={tap},script=no,downscript=no",
                "-device",
                f"e1000,netdev=net{number},mac={address}{firmware}",
            ]
        # tcg: the /dev/kvm of a test machine may be one on which iPXE hangs.
        self.console = Process(
            name,
            [
                "qemu-system-x86_64",
                *("-nodefaults", "-no-user-config", "-machine", "pc"),
                *("-accel", "tcg", "-m", str(memory)),
                *("-nographic", "-vga", "none"),
                *("-chardev", "stdio,id=console,signal=off"),
                *("-serial", "chardev:console", "-boot", "n"),
                *cards,
                *extra,
            ],
            artifacts=artifacts,
            namespace=network.switch,
        )

    def power_off(self) -> None:
        """Pull the plug."""
        self.console.stop()
        for tap in self._taps:
            self._network.remove_tap(tap)
