"""What a disk image is by its own bytes, and what of it is refused before any other program opens it.

An image from elsewhere is input that somebody may have made to read other files: one that names a second file (backing,
external data, extents, a parent) is refused here, from its header, and again from what `qemu-img info` says.
"""

from __future__ import annotations

import os
import re
import struct
from typing import Any

from ipxeready.errors import Conflict, Invalid
from ipxeready.said import said

_SECTOR = 512
_DESCRIPTOR_MAX = 64 << 10
#: Things that people mistake for raw images.
_OTHERS = (
    (0, b"\x1f\x8b", said("gzip-compressed")),
    (0, b"\xfd7zXZ\x00", said("xz-compressed")),
    (0, b"BZh", said("bzip2-compressed")),
    (0, b"\x28\xb5\x2f\xfd", said("zstd-compressed")),
    (0, b"PK\x03\x04", said("a zip archive")),
    (0, b"7z\xbc\xaf\x27\x1c", said("a 7z archive")),
    (257, b"ustar", said("a tar archive (an .ova is one: take the .vmdk out of it)")),
    (0, b"QED\x00", said("a QED image")),
    (64, b"\x7f\x10\xda\xbe", said("a VirtualBox VDI")),
    (0, b"COWD", said("an extent of a VMware ESX disk without its descriptor")),
    (0, b"MSWIM\x00\x00\x00", said("a Windows WIM")),
)
#: What no raw disk begins with.
_CONTAINERS = ((b"QFI\xfb", "qcow2"), (b"vhdxfile", "vhdx"), (b"KDMV", "vmdk"))
_BACKING = re.compile(rb'parentFileNameHint\s*=\s*"([^"\n]{0,400})', re.IGNORECASE)
_EXTENT = re.compile(rb"^\s*(?:RW|RDONLY|NOACCESS)\s+\d+\s+(\w+)", re.MULTILINE)


def detect(file: int, name: str) -> str:
    """The format (qemu-img's word) of an open file by its magic, or a refusal: unknown, or made of several files.

    Raw has no magic: it is what has none of the others and is named .raw or .img.
    """
    size = os.fstat(file).st_size
    head = os.pread(file, 4096, 0)
    if head.startswith(b"QFI\xfb"):
        _check_qcow2(head, name)
        return "qcow2"
    if head.startswith(b"vhdxfile"):
        return "vhdx"
    if head.startswith(b"KDMV"):
        _check_vmdk(file, head, name)
        return "vmdk"
    if head.lstrip()[:64].lower().startswith(b"# disk descriptorfile"):
        raise _refused(
            name,
            said(
                "it is the descriptor of a VMware disk, whose data lies in other files. Export the "
                "disk as one file (streamOptimized, as in an OVA) and take that"
            ),
        )
    footer = head if head.startswith(b"conectix") else b""
    if not footer and size >= _SECTOR:
        footer = os.pread(file, _SECTOR, size - _SECTOR)
    if footer.startswith(b"conectix"):
        _check_vpc(footer, name)
        return "vpc"
    for at, magic, words in _OTHERS:
        if head[at:].startswith(magic):
            raise _refused(
                name, said("it is {words}; unpack or convert it first", words=words)
            )
    if not name.lower().endswith((".raw", ".img")):
        raise _refused(
            name,
            said("its content is none of qcow2, VHDX, VHD and VMDK; it may be damaged"),
        )
    if not size or size % _SECTOR:
        raise _refused(
            name,
            said(
                "it would be a raw image, but its {size} bytes are no multiple of {sector}",
                size=size,
                sector=_SECTOR,
            ),
        )
    return "raw"


def inside(file: int) -> str | None:
    """The format of an open file that is a container for a disk by its first bytes, whatever its name; None for any other.

    Only what no boot sector begins with. VHD is left out: its mark is at the end, where a guest may write anything.
    """
    head = os.pread(file, 8, 0)
    return next((kind for magic, kind in _CONTAINERS if head.startswith(magic)), None)


def check_raw(file: int, name: str) -> None:
    """Conflict for an image that is to be a disk as it is, and is none: no machine boots from a container."""
    if words := container_problem(inside(file), name):
        raise Conflict(words, code="image.format")


def container_problem(kind: str | None, name: str) -> str | None:
    """What is to be done about a container that is named as an image."""
    if kind is None:
        return None
    return said(
        "{name} is {kind} inside, no raw disk. Convert it first: on the page Images, "
        "with manage.py image convert or POST /images/convert.",
        name=name[:80],
        kind=kind,
    )


def check_asked(asked: str | None, found: str, name: str) -> None:
    """Invalid when the caller says another format than the file has."""
    if asked is not None and asked != found:
        raise Invalid(
            said(
                "format {asked}: {name} is {found} by its content. Leave format out, or send the "
                "right file.",
                asked=asked,
                name=name,
                found=found,
            ),
            code="convert.format",
            field="format",
        )


def check_info(info: dict[str, Any], path: str, format_name: str, name: str) -> int:
    """The virtual size of what `qemu-img info` says of `path`, or a refusal: it needs other files, a key, or repair."""
    specific = info.get("format-specific", {})
    data = specific.get("data", {}) if isinstance(specific, dict) else {}
    if info.get("format") != format_name:
        raise _refused(
            name,
            said(
                "qemu-img takes it for {kind}, not {wanted}",
                kind=info.get("format"),
                wanted=format_name,
            ),
        )
    for key in ("backing-filename", "full-backing-filename"):
        if info.get(key):
            raise _backed(name, str(info[key]))
    if data.get("data-file"):
        raise _refused(name, said("its data lies in another file; join them first"))
    extents = data.get("extents", [])
    if any(extent.get("filename") != path for extent in extents) or len(extents) > 1:
        raise _refused(name, said("it is made of several files; join them first"))
    if info.get("encrypted") or data.get("encrypt"):
        raise _refused(name, said("it is encrypted; decrypt it first"))
    if data.get("corrupt"):
        raise _refused(
            name, said("it is marked as corrupt; repair it with qemu-img check -r")
        )
    size = info.get("virtual-size")
    if not isinstance(size, int):
        raise _refused(name, said("qemu-img does not say how large it is"))
    return size


def _check_qcow2(head: bytes, name: str) -> None:
    if len(head) < 72:
        raise _refused(name, said("its header is cut off"))
    version, backing, backing_size = struct.unpack_from(">IQI", head, 4)
    disk, crypt = struct.unpack_from(">QI", head, 24)
    if version not in (2, 3):
        raise _refused(
            name,
            said(
                "it is qcow version {version}; 2 and 3 are converted", version=version
            ),
        )
    if backing:
        raise _backed(
            name,
            said(
                "{backing_size} bytes of a name at {backing}",
                backing_size=backing_size,
                backing=backing,
            ),
        )
    if crypt:
        raise _refused(name, said("it is encrypted; decrypt it first"))
    if disk % _SECTOR:  # qemu-img would leave the rest out without a word
        raise _refused(
            name,
            said(
                "its disk has {disk} bytes, no multiple of {sector}",
                disk=disk,
                sector=_SECTOR,
            ),
        )
    # Incompatible feature bit 2: the guest's data is in an external file.
    if version == 3 and struct.unpack_from(">Q", head, 72)[0] & 4:
        raise _refused(name, said("its data lies in another file; join them first"))


def _check_vmdk(file: int, head: bytes, name: str) -> None:
    if len(head) < 44:
        raise _refused(name, said("its header is cut off"))
    capacity, _grain, at, size = struct.unpack_from("<QQQQ", head, 12)
    if not capacity:
        # Such a header sends the reader on to a descriptor, and that to any files.
        raise _refused(name, said("it is a descriptor whose data lies in other files"))
    if not at:
        return
    wanted = min(size * _SECTOR, _DESCRIPTOR_MAX)
    words = os.pread(file, wanted, min(at * _SECTOR, 1 << 62))
    if parent := _BACKING.search(words):
        raise _backed(name, parent[1].decode(errors="replace"))
    kinds = {kind.upper() for kind in _EXTENT.findall(words)}
    if len(_EXTENT.findall(words)) > 1 or kinds - {b"SPARSE"}:
        raise _refused(name, said("it is made of several files; join them first"))


def _check_vpc(footer: bytes, name: str) -> None:
    (kind,) = struct.unpack_from(">I", footer, 60)
    if kind not in (2, 3):
        words = (
            said("it is a differencing disk: merge it with its parent first")
            if kind == 4
            else said("its disk type is {kind}", kind=kind)
        )
        raise _refused(name, words)


def _backed(name: str, other: str) -> Conflict:
    return _refused(
        name,
        said(
            "it builds on another file ({other}), which is not followed; make it whole first, as "
            "with qemu-img convert where both files are",
            other=repr(other[:120]),
        ),
    )


def _refused(name: str, words: str) -> Conflict:
    return Conflict(
        said("{name} is not converted: {words}.", name=name, words=words),
        code="convert.source",
    )
