"""The bench runs and prints every figure; what the figures are is nobody's business here."""

from __future__ import annotations

import contextlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from ipxeready.conf import REPOSITORY
from tests.bench import run
from tests.bench.data import mac, name
from tests.bench.table import Table
from tests.processes import WITH_US, eventually


def test_every_figure_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    words = (
        "--sizes 6 8 --requests 30 --naive 2 --times 1 --disks 2 --rounds 1 --pages 1 --menu 0 --clone 0.1 0.02 "
        "--targets 3 --lio 0"
    )
    assert run.main(words.split()) == 0
    printed = capsys.readouterr().out
    assert "6 workers" in printed
    assert "8 workers" in printed
    for title in (
        "start, no index yet [s]",
        "start, index there [s]",
        "empty view [/s]",
        "/boot-vars, 100 machines again and again [/s]",
        "/boot-vars, each machine once [/s]",
        "naive way: YAML at each request [/s]",
        "/boot-vars / empty view [x]",
        "page: start page [ms]",
        "page: workers [ms]",
        "page: operations [ms]",
        "memory of the master [MB]",
        "memory of the worker 1 [MB]",
        "registration of a new MAC [ms]",
        "edit of workers.yml until it is seen [ms]",
        "edit of dhcp-hosts.conf until it is seen [ms]",
        "2 disks: bare loop on the node [s]",
        "2 disks: one by one [s]",
        "2 disks: one batch [s]",
    ):
        figures = re.search(rf"^{re.escape(title)} +(\S.*?)  +(\S.*)$", printed, re.M)
        assert figures, title
        assert all(re.search(r"[\d-]", cell) for cell in figures.groups()), title
    assert printed.count("p50, p99 [ms]") == 4
    assert "Power-on to menu" in printed
    for title in (
        "create and export 3 disks [s]",
        "delete 3 disks with their images [s]",
        "a start that makes 3 targets again [s]",
        "create one, alone (best of 20) [ms]",
        "delete one, beside 3 (best of 20) [ms]",
    ):
        found = re.search(rf"^{re.escape(title)}((?: +[\d.,]+){{3}})$", printed, re.M)
        assert found, title
    assert printed.count("beside 3 / alone [x]") == 2
    for title in (
        "reflink on xfs [ms]",
        "reflink on btrfs [ms]",
        "full copy on ext4 [s]",
    ):
        found = re.search(rf"^{re.escape(title)}((?: +[\d.,]+){{3}})$", printed, re.M)
        assert found, title


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        (["tests.bench.clones", "FOLDER", "2", "1", "50"], "xfs"),
        (["tests.bench.targets", "stgt", "FOLDER", "500"], "ext4"),
    ],
)
def test_what_is_killed_leaves_no_file_no_mount_and_no_daemon(
    tmp_path: Path, words: list[str], kind: str
) -> None:
    where = [str(tmp_path) if word == "FOLDER" else word for word in words]
    process = subprocess.Popen(
        [*WITH_US, sys.executable, "-m", *where],
        cwd=REPOSITORY,
        stdout=subprocess.DEVNULL,
    )
    point = tmp_path / kind

    def is_mounted() -> bool:
        mounts = Path(f"/proc/{process.pid}/mountinfo").read_text()
        return f" {point} " in mounts and not (tmp_path / f"{kind}.disk").exists()

    def backing_files() -> list[str]:
        found = Path("/sys/block").glob("loop*/loop/backing_file")
        return [text for path in found if str(tmp_path) in (text := path.read_text())]

    def daemons() -> list[int]:
        """The children of the process, and what is left of them."""
        return [pid for pid in children if Path(f"/proc/{pid}").exists()]

    def has_children() -> bool:
        place = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        children.extend(map(int, place.read_text().split()))
        return kind != "ext4" or "tgtd\n" in map(_name_of, children)

    children: list[int] = []
    try:
        eventually(is_mounted, 30)
        eventually(has_children, 30)
        assert f" {point} " not in Path("/proc/self/mountinfo").read_text()
        assert backing_files()
    finally:
        process.kill()
        process.wait()
    eventually(lambda: not backing_files() and not daemons())
    assert [path for path in tmp_path.rglob("*") if path != point] == []


def _name_of(pid: int) -> str:
    with contextlib.suppress(OSError):  # gone by now
        return Path(f"/proc/{pid}/comm").read_text()
    return ""


def test_machines_of_the_bench_are_told_apart() -> None:
    machines = {(name(number), mac(number)) for number in range(1, 10_101)}
    assert len({each for each, _ in machines}) == len(machines)
    assert len({each for _, each in machines}) == len(machines)


def test_a_table_lines_up() -> None:
    table = Table(["small", "large"])
    for value in (1.5, 12_345.0):
        table.add("a rate", "/s", [value])
        table.add("    p50", "ms", [None])
    lines = str(table).splitlines()
    assert len({len(line) for line in lines}) == 1
    assert lines[1].split() == ["a", "rate", "[/s]", "1.50", "12,345"]
    assert lines[2].split() == ["p50", "[ms]", "-", "-"]
