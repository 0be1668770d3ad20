"""Clones of one master on real file systems: ours (synced and checked) against `cp`.

Runs as a process of its own with its own mounts: the file systems go with it, however it ends, and the files
under them have no name any more as soon as they are mounted.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from agents.node.images import Images
from tests.agents.node.node_lab import own_mounts
from tests.bench.table import Table
from tests.processes import WITH_US

GIB = 1 << 30
MASTER = "bench_tpl_1.img"
CLONE = "bench.img"
#: The data lies in so many pieces, with holes between them.
_PIECES = 48
_MKFS = {"xfs": ["-q"], "btrfs": ["-q"], "ext4": ["-q", "-m", "0"]}
_COLUMNS = ["ipxeready", "cp", "cp and sync"]


def why_not() -> str:
    """Why it cannot be measured here; empty when it can."""
    if os.geteuid() != 0:
        return "needs root, for mounts"
    missing = [f"mkfs.{kind}" for kind in _MKFS if not shutil.which(f"mkfs.{kind}")]
    return f"needs {' and '.join(missing)}" if missing else ""


def measure(folder: Path, size: float, data: float, rounds: int) -> Table:
    """The figures for an image of `size` GiB with `data` GiB in it; the best of some rounds taken in turn."""
    words = [str(folder), str(size), str(data), str(rounds)]
    done = subprocess.run(
        [*WITH_US, sys.executable, "-m", "tests.bench.clones", *words],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    found: dict[str, list[float]] = json.loads(done.stdout)
    table = Table(_COLUMNS)
    for kind in ("xfs", "btrfs"):
        for seconds in found[kind]:
            table.add(f"reflink on {kind}", "ms", [1000 * seconds])
    for seconds in found["ext4"]:
        table.add("full copy on ext4", "s", [seconds])
    return table


def _main(folder: Path, size: int, data: int, rounds: int) -> dict[str, list[float]]:
    own_mounts()
    found = {}
    for kind, option in (
        ("xfs", "--reflink=always"),
        ("btrfs", "--reflink=always"),
        ("ext4", "--sparse=auto"),
    ):
        with mounted(kind, folder, 2 * data + 2 * GIB) as point:
            _make_master(point / MASTER, size, data)
            found[kind] = _compare(point, option, rounds)
    return found


def _compare(folder: Path, option: str, rounds: int) -> list[float]:
    master, clone = folder / MASTER, folder / CLONE
    images = Images(folder)

    def ours() -> None:
        made = images.clone(MASTER, CLONE)
        if made.how.startswith("reflink") is not (option == "--reflink=always"):
            raise RuntimeError(f"not what was to be measured: {made.how}")

    def cp() -> None:
        subprocess.run([*WITH_US, "cp", option, master, clone], check=True)

    def cp_and_sync() -> None:
        cp()
        subprocess.run([*WITH_US, "sync", clone], check=True)

    ways = (ours, cp, cp_and_sync)
    times: list[list[float]] = [[] for _ in ways]
    for _ in range(rounds):
        for way, seconds in zip(ways, times, strict=True):
            seconds.append(_timed(way))
            clone.unlink()
            os.sync()  # what one way left to do is not the next one's
    return [min(each) for each in times]


def _timed(way: Callable[[], None]) -> float:
    begin = time.perf_counter()
    way()
    return time.perf_counter() - begin


def _make_master(path: Path, size: int, data: int) -> None:
    piece, step = data // _PIECES, size // _PIECES // 4096 * 4096
    block = os.urandom(1 << 20)
    with path.open("xb") as stream:
        for number in range(_PIECES):
            stream.seek(number * step)
            for at in range(0, piece, len(block)):
                stream.write(block[: piece - at])
        stream.truncate(size)
        os.fsync(stream.fileno())


@contextlib.contextmanager
def mounted(kind: str, folder: Path, size: int) -> Iterator[Path]:
    """A file system of that kind for the length of a block; its file has no name any more as soon as it is mounted."""
    image, point = folder / f"{kind}.disk", folder / kind
    point.mkdir()
    with image.open("xb") as stream:
        stream.truncate(size)
    try:
        words = [f"mkfs.{kind}", *_MKFS[kind], str(image)]
        subprocess.run([*WITH_US, *words], check=True, stdout=subprocess.DEVNULL)
        subprocess.run(["mount", "-o", "loop", str(image), str(point)], check=True)
    finally:
        image.unlink()
    try:
        yield point
    finally:
        subprocess.run(["umount", str(point)], check=True)
        point.rmdir()


if __name__ == "__main__":
    _folder, _size, _data, _rounds = sys.argv[1:]
    _bytes = [int(float(each) * GIB) // 4096 * 4096 for each in (_size, _data)]
    sys.stdout.write(json.dumps(_main(Path(_folder), *_bytes, int(_rounds))))
