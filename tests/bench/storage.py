"""Many targets on a storage node: ours against the bare loop, over tgtd on this machine and over LIO in a guest."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from agents.protocol.systems import LIO, STGT
from tests.bench import clones
from tests.bench.table import Table
from tests.processes import WITH_US

_MODULE = "tests.bench.targets"
_COLUMNS = ["ipxeready", "loop", "ratio"]
#: Seconds for all of it in a guest, whose processor is emulated.
_LONGEST = 3600.0
Found = dict[str, dict[str, float]]


def why_not(kind: str) -> str:
    """Why it cannot be measured here; empty when it can."""
    if kind == LIO:
        missing = [p for p in ("qemu-system-x86_64", "mkfs.xfs") if not shutil.which(p)]
    else:
        missing = [p for p in ("tgtd", "tgtadm") if not shutil.which(p)]
    if os.geteuid() != 0 or not missing:
        return clones.why_not()
    return f"needs {' and '.join(missing)}"


def measure(kind: str, folder: Path, numbers: Sequence[int]) -> Table:
    """Figures for so many disks each time, on a node that is empty before."""
    words = [str(number) for number in numbers]
    found = _in_a_guest(words) if kind == LIO else _here(folder, words)
    table = Table(_COLUMNS)
    for number, seconds in found.items():
        for what, title in (
            ("create", f"create and export {number} disks"),
            ("delete", f"delete {number} disks with their images"),
        ):
            _add(table, title, "s", seconds, what)
        _add(table, f"a start that makes {number} targets again", "s", seconds, "rebuild")  # fmt: skip
        _add(table, f"a start that finds {number} targets", "s", seconds, "start")
    for what, alone, crowded in (
        ("create", "begin", "end"),
        ("delete", "end", "begin"),
    ):
        _add(
            table,
            f"{what} one, alone (best of 20)",
            "ms",
            seconds,
            f"{what}, {alone}",
            1000,
        )
        title = f"{what} one, beside {number} (best of 20)"
        _add(table, title, "ms", seconds, f"{what}, {crowded}", 1000)
        for side in ("", ", loop"):
            few, many = (seconds[f"{what}, {end}{side}"] for end in (alone, crowded))
            table.add(f"    beside {number} / alone", "x", [many / few])
    return table


def _add(
    table: Table,
    title: str,
    unit: str,
    seconds: dict[str, float],
    what: str,
    factor: float = 1,
) -> None:
    ours, loop = seconds[what], seconds.get(f"{what}, loop")
    values = [ours * factor, loop and loop * factor, loop and ours / loop]
    for value in values:
        table.add(title, unit, [value])


def _here(folder: Path, numbers: Sequence[str]) -> Found:
    done = subprocess.run(
        [*WITH_US, sys.executable, "-m", _MODULE, STGT, str(folder), *numbers],
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    found: Found = json.loads(done.stdout)
    return found


def _in_a_guest(numbers: Sequence[str]) -> Found:
    from tests.lab.lab_guest import Guest

    with (
        tempfile.TemporaryDirectory(prefix="bench-guest-") as artifacts,
        Guest(Path(artifacts)) as guest,
    ):
        command = guest.python("-m", _MODULE, LIO, "/data", *numbers)
        (found,) = guest.results(command, within=_LONGEST)
    return found
