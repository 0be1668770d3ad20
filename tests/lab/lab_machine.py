"""A machine without disks: QEMU with a network card's own iPXE, read and typed at through its serial line."""

from __future__ import annotations

import shutil
from pathlib import Path

from tests.lab.lab_network import Network
from tests.lab.lab_process import Process

OVMF = Path("/usr/share/OVMF")
#: iPXE that poses as the PXE of a card: not known as iPXE to the DHCP server.
_PLAIN_PXE = """#!ipxe
set user-class PXEClient
dhcp
echo plain PXE was told ${filename}
chain tftp://${next-server}/${filename}
"""


class Machine:
    """Powered on when made. `uncabled` are cards that come before the one with the cable.

    `firmware`: "ipxe" is iPXE in the card, "pxe" a card that wants a loader on BIOS, "uefi" the same on UEFI.
    `card` and `processor` are QEMU's names; without a processor it is QEMU's plainest.
    """

    def __init__(
        self,
        network: Network,
        *,
        name: str,
        mac: str,
        artifacts: Path,
        firmware: str = "ipxe",
        uncabled: tuple[str, ...] = (),
        memory: int | None = None,
        card: str | None = None,
        processor: str | None = None,
    ) -> None:
        self.name = name
        self.mac = mac
        self._network = network
        self._taps: list[str] = []
        uefi = firmware == "uefi"
        card = card or ("virtio-net-pci" if uefi else "e1000")
        cards: list[str] = []
        for number, address in enumerate((*uncabled, mac)):
            tap = network.add_tap(cabled=address == mac)
            self._taps.append(tap)
            rom = "" if firmware == "ipxe" and address == mac else ",romfile="
            cards += [
                "-netdev",
                f"tap,id=net{number},ifname={tap},script=no,downscript=no",
                "-device",
                f"{card},netdev=net{number},mac={address}{rom}",
            ]
        extra = getattr(self, f"_{firmware}")(artifacts)
        # tcg: the /dev/kvm of a test machine may be one on which iPXE hangs.
        self.console = Process(
            name,
            [
                "qemu-system-x86_64",
                *("-nodefaults", "-no-user-config"),
                *("-machine", "q35" if uefi else "pc"),
                *("-accel", "tcg", "-m", str(memory or (256 if uefi else 96))),
                *(("-cpu", processor) if processor else ()),
                *("-nographic", "-vga", "none"),
                *("-chardev", "stdio,id=console,signal=off"),
                *("-serial", "chardev:console", "-boot", "n"),
                *cards,
                *extra,
            ],
            artifacts=artifacts,
            namespace=network.switch,
        )

    def _ipxe(self, artifacts: Path) -> list[str]:
        return []

    def _pxe(self, artifacts: Path) -> list[str]:
        script = artifacts / f"{self.name}.ipxe"
        script.write_text(_PLAIN_PXE)
        return ["-kernel", "/usr/lib/ipxe/ipxe.lkrn", "-initrd", str(script)]

    def _uefi(self, artifacts: Path) -> list[str]:
        variables = artifacts / f"{self.name}.fd"
        shutil.copy(OVMF / "OVMF_VARS_4M.fd", variables)
        flash = "if=pflash,format=raw"
        return [
            *("-drive", f"{flash},readonly=on,file={OVMF / 'OVMF_CODE_4M.fd'}"),
            *("-drive", f"{flash},file={variables}"),
        ]

    def power_off(self) -> None:
        """Pull the plug."""
        self.console.stop()
        for tap in self._taps:
            self._network.remove_tap(tap)
