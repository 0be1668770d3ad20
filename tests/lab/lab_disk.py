"""A disk with partitions and GRUB that starts on BIOS and on UEFI, made with neither a mount nor a loop device.

GPT: a BIOS boot partition with GRUB's core, an EFI system partition (FAT), and, when asked for, one for a root file system.
"""

from __future__ import annotations

import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.lab.lab_process import run

MIB = 1 << 20
SECTOR = 512
#: In MiB from the disk's start.
_CORE, _ESP, _ROOT = 1, 2, 18
_LABEL = "LAB-ESP"
_TYPES = {
    "bios": "21686148-6449-6E6F-744E-656564454649",
    "esp": "C12A7328-F81F-11D2-BA4B-00A0C93EC93B",
    "root": "0FC63DAF-8483-4772-8E79-3D69D8477DE4",
}
GRUB = Path("/usr/lib/grub")
_MODULES = (
    *("part_gpt", "fat", "ext2", "search", "search_label", "search_fs_uuid"),
    *("normal", "configfile", "serial", "terminal", "echo", "cat", "linux", "boot"),
)
#: What GRUB starts with, before it knows a file system: find the partition with its configuration.
_EARLY = f"""search --no-floppy --label {_LABEL} --set=root
configfile ($root)/grub.cfg
"""
_TALK = """serial --unit=0 --speed=115200
terminal_input serial
terminal_output serial
"""
#: GRUB's own boot sector: where it keeps the place of the core, and a jump that trusts the firmware's drive number.
_BOOT_CORE_AT, _BOOT_DRIVE_CHECK, _BOOT_CODE = 0x5C, 0x66, 440
#: The core's first sector: where it keeps the place, the length and the load segment of the rest.
_CORE_REST_AT, _CORE_SEGMENT = 0x1F4, 0x820


@dataclass(frozen=True)
class Disk:
    """An image that `make_disk` made, or a clone of one."""

    path: Path

    def write_text(self, name: str, text: str) -> None:
        """A file in the root folder of the EFI system partition."""
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write(text)
            file.flush()
            self._mtools("mcopy", "-D", "o", file.name, f"::/{name}")

    def read_text(self, name: str) -> str:
        """The content of such a file."""
        return self._mtools("mtype", f"::/{name}")

    def _mtools(self, tool: str, *words: str) -> str:
        return run(tool, "-i", f"{self.path}@@{_ESP * MIB}", *words)

    @property
    def root_offset(self) -> int:
        """Where the root file system begins, in bytes."""
        return _ROOT * MIB


def make_disk(path: Path, commands: str, *, root_mib: int = 0) -> Disk:
    """A disk whose GRUB runs `commands` (the serial line is set up before), with room for a root of `root_mib`."""
    with path.open("wb") as file:
        # The last MiB belongs to the table's copy.
        file.truncate((_ROOT + root_mib + 1) * MIB)
    _partition(path, root_mib)
    disk = Disk(path)
    sectors = (_ROOT - _ESP) * MIB // SECTOR
    disk._mtools("mformat", "-T", str(sectors), "-h", "16", "-s", "63", "-v", _LABEL)
    disk.write_text("grub.cfg", _TALK + commands)
    with tempfile.TemporaryDirectory() as folder:
        early = Path(folder, "early.cfg")
        early.write_text(_EARLY)
        loader = Path(folder, "BOOTX64.EFI")
        _grub("x86_64-efi", early, loader)
        disk._mtools("mmd", "::/EFI", "::/EFI/BOOT")
        disk._mtools("mcopy", str(loader), "::/EFI/BOOT/BOOTX64.EFI")
        core = Path(folder, "core.img")
        _grub("i386-pc", early, core, "biosdisk")
        _embed(path, core.read_bytes())
    return disk


def _partition(path: Path, root_mib: int) -> None:
    lines = [
        "label: gpt",
        f"start={_CORE}MiB, size={_ESP - _CORE}MiB, type={_TYPES['bios']}",
        f"start={_ESP}MiB, size={_ROOT - _ESP}MiB, type={_TYPES['esp']}",
    ]
    if root_mib:
        lines.append(f"start={_ROOT}MiB, size={root_mib}MiB, type={_TYPES['root']}")
    done = subprocess.run(
        ["sfdisk", "--quiet", "--no-reread", "--no-tell-kernel", str(path)],
        input="\n".join([*lines, ""]),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


def _grub(platform: str, early: Path, out: Path, *modules: str) -> None:
    run(
        *("grub-mkimage", "--format", platform, "--prefix", "/"),
        *("--config", str(early), "--output", str(out)),
        *_MODULES,
        *modules,
    )


def _embed(path: Path, core: bytes) -> None:
    """What grub-install does for BIOS; it needs a device, and this host reads no partitions."""
    first = _CORE * MIB // SECTOR
    boot = bytearray((GRUB / "i386-pc/boot.img").read_bytes()[:_BOOT_CODE])
    boot[_BOOT_CORE_AT : _BOOT_CORE_AT + 8] = first.to_bytes(8, "little")
    boot[_BOOT_DRIVE_CHECK : _BOOT_DRIVE_CHECK + 2] = b"\x90\x90"
    padded = bytearray(core + bytes(-len(core) % SECTOR))
    assert len(padded) <= (_ESP - _CORE) * MIB
    rest = (
        (first + 1).to_bytes(8, "little")
        + (len(padded) // SECTOR - 1).to_bytes(2, "little")
        + _CORE_SEGMENT.to_bytes(2, "little")
    )
    padded[_CORE_REST_AT : _CORE_REST_AT + len(rest)] = rest
    with path.open("r+b") as file:
        file.write(boot)
        file.seek(first * SECTOR)
        file.write(padded)
