"""A fresh Debian in a folder, by mmdebstrap from this machine's own apt sources."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tests.lab.lab_process import Process

APT = Path("/etc/apt")
_LEFT_OUT = ("doc", "man", "locale")


def bootstrap(
    root: Path, packages: Sequence[str], artifacts: Path, *options: str
) -> None:
    """Debian in `root`. What it mounts is in a namespace of its own, which ends with it and with us."""
    process = Process(
        "mmdebstrap",
        [
            *("unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"),
            *("mmdebstrap", "--mode=root", "--variant=essential", "--format=directory"),
            f"--include={','.join(packages)}",
            '--aptopt=Acquire::Languages "none"',
            *(f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in _LEFT_OUT),
            *options,
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
