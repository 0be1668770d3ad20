"""The lab's Debian master: made as docs/masters.md says, with an init of the test's own, which starts in half a minute.

Made once, by mmdebstrap from this machine's own apt sources, and kept below cache/; a change of the recipe makes it anew.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import uuid
from pathlib import Path

from tests.lab import lab_disk
from tests.lab.lab_process import Process, run

CACHE = Path(__file__).parent / "cache"
#: What is shipped for masters; under test here.
HOSTNAME_SCRIPT = Path(__file__).parents[2] / "deploy/masters/hostname-from-ibft"
APT = Path("/etc/apt")
_ROOT_MIB = 512
#: The cloud flavour has all that a virtual machine needs, and is the fastest to unpack.
_PACKAGES = (
    *("linux-image-cloud-amd64", "initramfs-tools", "open-iscsi"),
    *("udev", "kmod", "mount", "zstd"),
)
_LEFT_OUT = ("doc", "man", "locale")

_HOOK = """#!/bin/sh
[ "$1" = prereqs ] && exit 0
. /usr/share/initramfs-tools/hook-functions
for module in virtio_pci virtio_net sd_mod ext4; do
    manual_add_modules "$module"
done
"""

#: Says where it runs and what it was given to keep, then does what is typed.
_INIT = """#!/bin/sh
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
mount -o remount,rw /
part=$(findmnt -n -o SOURCE /)
disk=$(lsblk -n -d -o PKNAME "$part")
session=$(readlink -f "/sys/block/$disk/device/../..")
echo
echo "lab: host $(hostname)"
echo "lab: root on target $(cat "$session"/iscsi_session/*/targetname)"
echo "lab: initiator $(cat "$session"/iscsi_session/*/initiatorname)"
echo "lab: kept $(cat /root/kept 2>/dev/null || echo nothing)"
echo "lab: ready"
while read -r line; do
    eval "$line"
    echo "lab: did that, $?"
done
"""

_GRUB = """echo grub on $grub_platform
search --no-floppy --fs-uuid --set=root {root}
linux /boot/vmlinuz root=UUID={root} ro console=ttyS0,115200 init=/usr/sbin/lab-init loglevel=4 nokaslr mitigations=off
initrd /boot/initrd.img
boot
"""


def debian_master(artifacts: Path) -> Path:
    """The master's image, from the cache or made now (a minute or two, and some 100 MB of downloads)."""
    image = CACHE / f"debian-{_digest()}.img"
    if not image.exists():
        CACHE.mkdir(exist_ok=True)
        _sweep()
        work = CACHE / f"making-{os.getpid()}"
        work.mkdir()
        try:
            _make(work, artifacts)
            os.replace(work / "image", image)
        finally:
            shutil.rmtree(work, ignore_errors=True)
    return image


def _digest() -> str:
    recipe = (Path(__file__), Path(lab_disk.__file__), HOSTNAME_SCRIPT)
    return hashlib.sha256(b"".join(path.read_bytes() for path in recipe)).hexdigest()[
        :16
    ]


def _sweep() -> None:
    """Drop masters of older recipes, and what a killed run has left."""
    for path in CACHE.iterdir():
        if path.name.startswith("debian-"):
            path.unlink()
        elif path.name.startswith("making-"):
            maker = path.name.removeprefix("making-")
            if not Path("/proc", maker).exists():
                shutil.rmtree(path, ignore_errors=True)


def _make(work: Path, artifacts: Path) -> None:
    root = work / "root"
    _overlay(work / "overlay")
    _bootstrap(root, work / "overlay", artifacts)
    # The host's own name, which mmdebstrap copies: a clone has none but the worker's.
    (root / "etc/hostname").unlink()
    for name in ("vmlinuz", "initrd.img"):
        (kernel,) = (root / "boot").glob(f"{name}-*")
        (root / "boot" / name).symlink_to(kernel.name)
    identity = str(uuid.uuid4())
    image = work / "image"
    disk = lab_disk.make_disk(image, _GRUB.format(root=identity), root_mib=_ROOT_MIB)
    # All is written now: a file system that is completed when first mounted would write for minutes over the network.
    options = "nodiscard,lazy_itable_init=0,lazy_journal_init=0"
    run(
        *("mke2fs", "-q", "-F", "-t", "ext4", "-U", identity),
        *("-E", f"offset={disk.root_offset},{options}"),
        *("-d", str(root), str(image), f"{_ROOT_MIB}M"),
    )


def _overlay(folder: Path) -> None:
    """The master's own files; they are there before the packages, so that its initramfs is made once."""
    files = {
        "etc/iscsi/iscsi.initramfs": "ISCSI_AUTO=true\n",
        "etc/initramfs-tools/conf.d/lab": "MODULES=list\nCOMPRESS=zstd\n",
        "etc/initramfs-tools/hooks/lab": _HOOK,
        "etc/initramfs-tools/scripts/init-bottom/hostname-from-ibft": (
            HOSTNAME_SCRIPT.read_text()
        ),
        "usr/sbin/lab-init": _INIT,
    }
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if text.startswith("#!") else 0o644)


def _bootstrap(root: Path, overlay: Path, artifacts: Path) -> None:
    """Debian in `root`. What it mounts is in a namespace of its own, which ends with it and with us."""
    process = Process(
        "mmdebstrap",
        [
            *("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"),
            *("mmdebstrap", "--mode=root", "--variant=essential", "--format=directory"),
            f"--include={','.join(_PACKAGES)}",
            '--aptopt=Acquire::Languages "none"',
            *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in _LEFT_OUT),
            f'--essential-hook=cp -R {overlay}/. "$1"/',
            *(_codename(), str(root)),
            *map(str, _sources()),
        ],
        artifacts=artifacts,
        env={"TMPDIR": str(root.parent), "LC_ALL": "C"},
    )
    try:
        process.wait_for(r"I: success in", 900)
    finally:
        process.stop()


def _codename() -> str:
    lines = Path("/etc/os-release").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines if "=" in line)["VERSION_CODENAME"]


def _sources() -> list[Path]:
    """Where this machine gets its Debian from; not what else somebody has added."""
    lists = [APT / "sources.list", *sorted((APT / "sources.list.d").glob("*"))]
    of_debian = [
        path
        for path in lists
        if path.suffix in (".list", ".sources")
        and path.exists()
        and _codename() in path.read_text()
    ]
    assert of_debian, f"no apt sources of {_codename()} in {APT}"
    return of_debian
