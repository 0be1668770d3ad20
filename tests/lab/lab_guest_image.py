"""The guest's kernel and its Debian: a kernel with the target (LIO), an initramfs, and a root that is never written to.

The test machine's own kernel has no target. Made once and kept in the lab's cache: about a minute, and some 150 MB of downloads.
"""

from __future__ import annotations

import lzma
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from tests.lab import lab_bootstrap
from tests.lab.lab_cache import kept
from tests.lab.lab_process import run

INSIDE = Path(__file__).parent / "guest"
_PACKAGES = (
    *("python3", "kmod", "iproute2", "mount", "procps", "e2fsprogs"),
    # What the agent calls, and what the tests log in with.
    *("xfsprogs", "btrfs-progs", "qemu-utils", "qemu-block-extra", "libiscsi-bin"),
)
#: What the initramfs loads.
_EARLY = ("virtio_pci", "virtio_blk", "virtio_console", "ext4", "overlay")
#: What can be loaded besides, in the guest itself.
_LATER = (
    *("virtio_net", "configfs", "xfs", "btrfs", "loop"),
    *("target_core_mod", "target_core_file", "iscsi_target_mod"),
    # Found by name at run time, not by dependency.
    *("crc32c_generic", "crct10dif_generic"),
)
#: Runs on this machine, in a folder next to the new root, with apt's lists for it.
_FETCH_KERNEL = """#!/bin/sh
set -eu
cd "$(dirname "$1")"
kernel=$(apt-cache depends --important linux-image-amd64 | sed -n 's/.*Depends: \\(linux-image-[0-9].*\\)/\\1/p' | head -n 1)
apt-get download "$kernel"
dpkg -x linux-image-*.deb kernel
"""
_XZ = b"\xfd7zXZ\x00"
_SIGNED = b"~Module signature appended~\n"


@dataclass(frozen=True)
class Image:
    """What QEMU is given."""

    kernel: Path
    initramfs: Path
    root: Path


def guest_image(artifacts: Path) -> Image:
    """The image, from the cache or made now."""
    recipe = (Path(__file__), Path(lab_bootstrap.__file__), INSIDE / "init")
    folder = kept(
        "guest",
        [path.read_bytes() for path in recipe],
        lambda work: _make(work, artifacts),
    )
    return Image(folder / "vmlinux", folder / "initramfs", folder / "root")


def ext4(folder: Path, image: Path) -> None:
    """An image of the folder that is only ever read."""
    used = int(run("du", "-sk", str(folder)).split()[0])
    features = "^has_journal,^resize_inode,^metadata_csum"
    run(
        *("mke2fs", "-q", "-t", "ext4", "-O", features, "-m", "0"),
        *("-d", str(folder), str(image), f"{used * 6 // 5 + 8192}k"),
    )


def _make(work: Path, artifacts: Path) -> None:
    root, unpacked = work / "tree", work / "kernel"
    hook = work / "fetch-kernel"
    hook.write_text(_FETCH_KERNEL)
    hook.chmod(0o755)
    lab_bootstrap.bootstrap(root, _PACKAGES, artifacts, f"--customize-hook={hook}")
    (version,) = (path.name for path in (unpacked / "lib/modules").iterdir())
    # Unpacked here, once: the guest's processor is emulated, and takes five seconds to do it at each start.
    packed = (unpacked / f"boot/vmlinuz-{version}").read_bytes()
    vmlinux = lzma.LZMADecompressor().decompress(packed[packed.index(_XZ) :])
    (work / "vmlinux").write_bytes(vmlinux)
    modules = _Modules(unpacked, version)
    _initramfs(work / "early", modules, work / "initramfs")
    modules.install(root, (*_EARLY, *_LATER))
    (root / "opt/ipxeready").mkdir()
    # Compiled here, for the same reason; the root is read-only, so the guest would do it anew each time.
    run("chroot", str(root), "python3", "-m", "compileall", "-q", "/usr/lib/python3.11")
    ext4(root, work / "root")
    for leftover in (root, unpacked, work / "early"):
        shutil.rmtree(leftover)
    for file in (hook, *work.glob("*.deb")):
        file.unlink()


class _Modules:
    """The modules of an unpacked kernel."""

    def __init__(self, unpacked: Path, version: str) -> None:
        self._base = unpacked
        self._version = version
        run("depmod", "-b", str(unpacked), version)

    def needed(self, names: tuple[str, ...]) -> list[Path]:
        """The files of these modules and of what they need, in the order of loading."""
        found: dict[Path, None] = {}
        for name in names:
            shown = run(
                *("modprobe", "-d", str(self._base), "-S", self._version),
                *("--show-depends", name),
            )
            for word, *rest in map(str.split, shown.splitlines()):
                if word == "insmod":
                    found.setdefault(Path(rest[0]))
        return list(found)

    def install(self, root: Path, names: tuple[str, ...]) -> None:
        """Put them where modprobe looks."""
        source = self._base / "lib/modules" / self._version
        target = root / "usr/lib/modules" / self._version
        for path in self.needed(names):
            place = target / path.relative_to(source)
            place.parent.mkdir(parents=True, exist_ok=True)
            self.copy(path, place)
        for name in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
            shutil.copy(source / name, target)
        run("depmod", "-b", str(root), self._version)

    @staticmethod
    def copy(source: Path, target: Path) -> None:
        """Without the signature, which takes the guest seconds to check."""
        data = source.read_bytes()
        if data.endswith(_SIGNED):
            end = len(data) - len(_SIGNED)
            length = int.from_bytes(data[end - 4 : end], "big")
            data = data[: end - 12 - length]
        target.write_bytes(data)


def _initramfs(folder: Path, modules: _Modules, image: Path) -> None:
    for name in ("bin", "modules", "dev"):
        (folder / name).mkdir(parents=True)
    shutil.copy(run("sh", "-c", "command -v busybox").strip(), folder / "bin/busybox")
    shutil.copy(INSIDE / "init", folder / "init")
    (folder / "init").chmod(0o755)
    run("mknod", str(folder / "dev/console"), "c", "5", "1")
    early = modules.needed(_EARLY)
    for path in early:
        modules.copy(path, folder / "modules" / path.name)
    names = "".join(f"{path.name}\n" for path in early)
    (folder / "modules/list").write_text(names)
    files = run("find", str(folder), "-mindepth", "1", "-printf", r"%P\n")
    with image.open("wb") as file:
        subprocess.run(
            ["cpio", "--quiet", "-o", "-H", "newc"],
            cwd=folder,
            input=files.encode(),
            stdout=file,
            check=True,
            timeout=60,
        )
