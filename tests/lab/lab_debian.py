"""The lab's Debian master: made as docs/masters.md says, with an init of the test's own, which starts in half a minute.

Made once and kept in the lab's cache.
"""

from __future__ import annotations

import shutil
import uuid
from pathlib import Path

from tests.lab import lab_bootstrap, lab_disk
from tests.lab.lab_cache import kept
from tests.lab.lab_process import run

#: What is shipped for masters; under test here.
HOSTNAME_SCRIPT = Path(__file__).parents[2] / "deploy/masters/hostname-from-ibft"
_ROOT_MIB = 512
#: The cloud flavour has all that a virtual machine needs, and is the fastest to unpack.
_PACKAGES = (
    *("linux-image-cloud-amd64", "initramfs-tools", "open-iscsi"),
    *("udev", "kmod", "mount", "zstd"),
)

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
    modules = (Path(__file__), Path(lab_bootstrap.__file__), Path(lab_disk.__file__))
    recipe = [path.read_bytes() for path in (*modules, HOSTNAME_SCRIPT)]
    return kept("debian", recipe, lambda work: _make(work, artifacts)) / "image"


def _make(work: Path, artifacts: Path) -> None:
    root = work / "root"
    _overlay(work / "overlay")
    hook = f'--essential-hook=cp -R {work / "overlay"}/. "$1"/'
    lab_bootstrap.bootstrap(root, _PACKAGES, artifacts, hook)
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
    for leftover in (root, work / "overlay"):
        shutil.rmtree(leftover)


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
