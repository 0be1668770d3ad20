"""The master image of the lab: 16 MiB, of which a boot sector and one sector of text are written."""

from __future__ import annotations

import os
from pathlib import Path

SECTOR = 512
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
    path.write_bytes(boot_sector() + _sector(text))
    os.truncate(path, SIZE)


def mark(image: Path, text: str) -> None:
    """Make the disk in `image` say `text` from its next start on; the file stays the same file."""
    with image.open("r+b") as file:
        file.seek(SECTOR)
        file.write(_sector(text))


def marked(image: Path) -> str:
    """What the disk in `image` would say."""
    with image.open("rb") as file:
        file.seek(SECTOR)
        return file.read(SECTOR).rstrip(b"\0").decode().strip()


def _sector(text: str) -> bytes:
    data = f"{text}\r\n".encode("ascii")
    if len(data) >= SECTOR:
        raise ValueError(f"{len(data)} bytes and a final zero do not fit one sector")
    return data.ljust(SECTOR, b"\0")
