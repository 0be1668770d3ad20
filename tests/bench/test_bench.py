"""The bench runs and prints every figure; what the figures are is nobody's business here."""

from __future__ import annotations

import re

import pytest

from tests.bench import run
from tests.bench.data import mac, name
from tests.bench.table import Table


def test_every_figure_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    words = (
        "--sizes 6 8 --requests 30 --naive 2 --times 1 --disks 2 --rounds 1 --menu 0"
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
