"""The master image of the lab: 16 MiB, of which a boot sector and one sector of text are written."""

from __future__ import annotations

import os
from pathlib import Path

SECTOR = 512
CD_SECTOR = 2048
#: iPXE starts nothing below one cylinder of 255 heads and 63 sectors (8 MiB).
SIZE = 16 << 20
#: bootsector.S, assembled; its first line says how.
CODE = bytes.fromhex(
    "ea057c000031c08ed88ed0bc007c88d3be647ce8420088d8c0e804e8240088d8240fe81d00be"
    "947ce82d00be987c88dab442cd13be7c7c7203be0080e81900f4ebfd3c0a1c692fbafd0386c4"
    "eca82074fb86c4baf803eec3fcac84c07405e8e6ffebf6c30d0a626f6f7420736563746f7220"
    "6f6e2064726976652000736563746f7220312063616e6e6f742062652072656164000d0a0090"
    "100001000080000001"
)


def boot_sector() -> bytes:
    """The first sector, with its signature."""
    return CODE.ljust(SECTOR - 2, b"\0") + b"\x55\xaa"


def write_master(path: Path, text: str) -> None:
    """A disk that starts and says `text`."""
    path.write_bytes(boot_sector() + sector(text))
    os.truncate(path, SIZE)


def mark(image: Path, text: str) -> None:
    """Make the disk in `image` say `text` from its next start on; the file stays the same file."""
    with image.open("r+b") as file:
        file.seek(SECTOR)
        file.write(sector(text))


def marked(image: Path) -> str:
    """What the disk in `image` would say."""
    with image.open("rb") as file:
        file.seek(SECTOR)
        return text_of(file.read(SECTOR))


def text_of(sector: bytes) -> str:
    """What the boot sector would say of it."""
    return sector.rstrip(b"\0").decode().strip()


def sector(text: str) -> bytes:
    """What the boot sector reads and says."""
    data = f"{text}\r\n".encode("ascii")
    if len(data) >= SECTOR:
        raise ValueError(f"{len(data)} bytes and a final zero do not fit one sector")
    return data.ljust(SECTOR, b"\0")


def write_cd(path: Path, text: str) -> None:
    """An install CD (ISO 9660 with El Torito, no emulation) that starts the same boot sector, which then says `text`."""
    sectors = {
        1: text.encode("ascii") + b"\r\n\0",  # what the boot sector reads
        16: b"\x01CD001\x01",
        17: b"\x00CD001\x01" + b"EL TORITO SPECIFICATION".ljust(64, b"\0"),
        18: b"\xffCD001\x01",
        19: _catalog(entry=20),
        20: boot_sector(),
    }
    sectors[17] += (19).to_bytes(4, "little")
    with path.open("wb") as file:
        for number, data in sectors.items():
            file.seek(number * CD_SECTOR)
            file.write(data.ljust(CD_SECTOR, b"\0"))
        file.truncate(1 << 20)


def _catalog(entry: int) -> bytes:
    head = bytearray(b"\x01".ljust(30, b"\0") + b"\x55\xaa")
    words = (int.from_bytes(head[at : at + 2], "little") for at in range(0, 32, 2))
    head[28:30] = (-sum(words) & 0xFFFF).to_bytes(2, "little")
    start = b"\x88\0\0\0\0\0" + (4).to_bytes(2, "little") + entry.to_bytes(4, "little")
    return bytes(head) + start.ljust(32, b"\0")
