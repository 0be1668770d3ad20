"""Whether the kernel of this machine has the iSCSI target LIO; its modules are loaded where that can work."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

from ipxeready.said import said

CONFIGFS: Final = Path("/sys/kernel/config")
TARGET: Final = CONFIGFS / "target"
#: Where the kernel has its iSCSI targets; somebody has to make it once.
ISCSI: Final = TARGET / "iscsi"
_MODULES: Final = (
    "configfs",
    "target_core_mod",
    "target_core_file",
    "iscsi_target_mod",
)
_ADAPTER: Final = TARGET / "core" / f"fileio_{(1 << 31) - 1}"
_PATIENCE: Final = 30.0


def problem() -> str | None:
    """Why LIO cannot be used here, or None when it can.

    Nothing is tried, and nothing lands in the kernel's log, where it cannot work: without root, or on a kernel
    that has neither the target nor modules to load.
    """
    if os.geteuid() != 0:
        return said("LIO takes orders from root only")
    try:
        if not TARGET.is_dir():
            why = _load() or _mount()
            if why is not None:
                return why
        ISCSI.mkdir(exist_ok=True)
        return None if _takes_files() else _load() or _still_not()
    except (OSError, subprocess.SubprocessError) as error:
        return said("LIO cannot be set up: {error}", error=str(error))


def _takes_files() -> bool:
    """Try it: what is built in, loaded, or loaded by the kernel itself cannot be told apart from outside."""
    try:
        _ADAPTER.mkdir(exist_ok=True)
    except OSError:
        return False
    _ADAPTER.rmdir()
    return True


def _still_not() -> str | None:
    return None if _takes_files() else said("the kernel's LIO serves no files")


def _load() -> str | None:
    missing = [name for name in _MODULES if not _loaded(name)]
    if missing and not (_modules().is_dir() and shutil.which("modprobe")):
        release = os.uname().release
        return said(
            "this kernel ({release}) has no LIO, and no modules of it to load",
            release=release,
        )
    for name in missing:
        words = _run("modprobe", "-q", name)
        if words:
            return said(
                "the kernel module {name} cannot be loaded: {words}",
                name=name,
                words=words.removeprefix(": "),
            )
        if words is not None:
            return said("the kernel module {name} cannot be loaded", name=name)
    return None


def _modules() -> Path:
    return Path("/lib/modules", os.uname().release)


def _loaded(module: str) -> bool:
    if module == "configfs" and _has_configfs():  # built in, as a rule
        return True
    return Path("/sys/module", module).is_dir()


def _mount() -> str | None:
    if not TARGET.is_dir() and not os.path.ismount(CONFIGFS):
        words = _run("mount", "-t", "configfs", "configfs", str(CONFIGFS))
        if words:
            return said(
                "configfs cannot be mounted: {words}", words=words.removeprefix(": ")
            )
        if words is not None:
            return said("configfs cannot be mounted")
    if TARGET.is_dir():
        return None
    return said("the kernel does not show {path}", path=TARGET)


def _has_configfs() -> bool:
    kinds = Path("/proc/filesystems").read_text(encoding="ascii").split()
    return "configfs" in kinds


def _run(*command: str) -> str | None:
    """None when the command succeeds, else its words."""
    done = subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_PATIENCE,
        check=False,
    )
    words = done.stderr.decode(errors="replace").strip()
    return None if done.returncode == 0 else f": {words}" if words else ""
