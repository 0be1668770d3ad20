"""`make bench`: what the product costs on this machine at 100, 1,000 and 10,000 workers, side by side in one table.

Each size has a root of its own, `manage.py serve` on loopback, and the things it is compared with on the same server.
Figures are the best of a few (medians of changes): other work on the machine is not what is measured. Nothing is judged
here; all that was started or made is gone afterwards.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from agents.protocol.systems import LIO, STGT
from tests.bench import (
    changes,
    clones,
    data,
    disks,
    firmware,
    menu,
    pages,
    processes,
    storage,
)
from tests.bench.table import Table

_SYSTEMS = {
    STGT: "tgtd, ext4 on a loop mount, against tgtadm in a loop (ours synced and read back)",
    LIO: "LIO on XFS in a guest (its processor is emulated: only the ratios count), against configfs in a loop",
}


def main(words: list[str] | None = None) -> int:
    """Measure and print; 0 when every answer was right."""
    options = _options(words)
    # `timeout` and CI end a run by SIGTERM: clean up then, too.
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    try:
        return _run(options)
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(options: argparse.Namespace) -> int:
    begin = time.monotonic()
    table = Table([f"{size:,} workers" for size in options.sizes])
    with tempfile.TemporaryDirectory(prefix="ipxeready-bench-") as folder:
        for size in options.sizes:
            _say(f"{size:,} workers ...")
            _measure(Path(folder) / str(size), size, options, table)
        notes = [_targets(kind, Path(folder), options) for kind in _SYSTEMS]
        notes += [_clones(Path(folder), options), _menu(options.menu)]
    sys.stdout.write(f"{table}\n\n")
    sys.stdout.write("\n".join([*notes, *_explained(options)]) + "\n")
    sys.stdout.write(f"The whole run took {time.monotonic() - begin:.0f} s.\n")
    return 0


def _options(words: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("make bench", description=__doc__)
    add = parser.add_argument
    add("--sizes", type=int, nargs="+", default=[100, 1_000, 10_000])
    add("--requests", type=int, default=3_000, help="of each load")
    add("--rounds", type=int, default=3, help="of each load, the best counts")
    add("--pages", type=int, default=15, help="visits of each page; 0: none")
    add("--naive", type=int, default=12, help="requests of the naive way")
    add("--times", type=int, default=5, help="registrations and edits")
    add("--disks", type=int, default=100, help="of each way to make disks")
    add(
        "--clone",
        type=float,
        nargs=2,
        default=[10, 3],
        metavar=("GIB", "DATA"),
        help="size and data of the image that is cloned; 0 0: none",
    )
    add(
        "--targets",
        type=int,
        nargs="*",
        default=[100, 500],
        help="disks with targets on a storage node; 0: none",
    )
    add("--lio", type=int, nargs="*", help="the same for LIO in a guest alone")
    add("--menu", type=int, default=2, help="power-ons in the lab; 0: none")
    return parser.parse_args(words)


def _say(words: str) -> None:
    sys.stderr.write(f"{words}\n")


def _measure(
    folder: Path, size: int, options: argparse.Namespace, table: Table
) -> None:
    folder.mkdir()
    with ExitStack() as stack:
        agent = stack.enter_context(disks.node(folder / "node"))
        layout = data.make_root(folder / "root", size, agent.port)
        product = processes.product(layout.root, folder / "product.log")
        stack.callback(product.stop)
        cold = product.start()
        product.stop()
        table.add("start, no index yet", "s", [cold])
        table.add("start, index there", "s", [product.start()])
        plain = processes.plain(layout.root, folder / "plain.log")
        stack.callback(plain.stop)
        plain.start()
        _add_load(table, product, plain, size, options)
        plain.stop()
        _add_pages(table, product, layout, options.pages)
        for memory in product.memory():
            table.add(f"memory of the {memory.name}", "MB", [memory.pss, memory.rss])
        _add_changes(table, product, layout, size, options)
        made = disks.measure(product, agent, size, options.disks)
        number = min(options.disks, size)
        table.add(f"{number} disks: bare loop on the node", "s", [made.loop])
        table.add(f"{number} disks: one by one", "s", [made.one_by_one])
        table.add(f"{number} disks: one batch", "s", [made.batch])
        ratio = made.batch / made.loop if made.batch else None
        table.add(f"{number} disks: batch / bare loop", "x", [ratio])


def _add_load(
    table: Table,
    product: processes.Server,
    plain: processes.Server,
    size: int,
    options: argparse.Namespace,
) -> None:
    found = firmware.measure(
        product,
        plain,
        size,
        requests=options.requests,
        naive=options.naive,
        rounds=options.rounds,
    )
    titles = {
        "empty": "empty view",
        "again": "/boot-vars, 100 machines again and again",
        "once": "/boot-vars, each machine once",
        "naive": "naive way: YAML at each request",
    }
    for kind, title in titles.items():
        table.add(title, "/s", [found[kind].rate])
        table.add("    p50, p99", "ms", [found[kind].p50, found[kind].p99])
    share = found["again"].rate / found["empty"].rate
    table.add("/boot-vars / empty view", "x", [share])


def _add_changes(
    table: Table,
    product: processes.Server,
    layout: data.Layout,
    size: int,
    options: argparse.Namespace,
) -> None:
    kinds: dict[str, Callable[[], list[float]]] = {
        "registration of a new MAC": lambda: changes.registrations(
            product, size, options.times
        ),
        "edit of workers.yml until it is seen": lambda: changes.ledger_edits(
            product, layout, options.times
        ),
        "edit of dhcp-hosts.conf until it is seen": lambda: changes.hosts_edits(
            product, layout, options.times
        ),
    }
    for title, measure in kinds.items():
        times = [1000 * seconds for seconds in measure()]
        table.add(title, "ms", [statistics.median(times), min(times)])


def _add_pages(
    table: Table, product: processes.Server, layout: data.Layout, times: int
) -> None:
    """Medians: a page that another one's work holds up is no slow page."""
    if not times:
        return
    for title, seconds in pages.measure(product, layout, times).items():
        found = [1000 * each for each in seconds]
        figures = [statistics.median(found), min(found)] if found else [None]
        table.add(f"page: {title}", "ms", figures)


def _menu(times: int) -> str:
    title = "Power-on to menu (BIOS, iPXE in the card, QEMU without KVM): "
    if not times:
        return title + "not asked for."
    reason = menu.why_not()
    if reason:
        return f"{title}not measured, it {reason}."
    _say("power-on to menu ...")
    return title + ", ".join(f"{seconds:.1f} s" for seconds in menu.measure(times))


def _targets(kind: str, folder: Path, options: argparse.Namespace) -> str:
    numbers = options.targets
    if kind == LIO and options.lio is not None:
        numbers = options.lio
    title = f"Disks with targets of a storage node, {_SYSTEMS[kind]}"
    if not any(numbers):
        return f"{title}: not asked for."
    reason = storage.why_not(kind)
    if reason:
        return f"{title}: not measured, it {reason}."
    _say(f"targets over {kind} ...")
    return f"{title}:\n{storage.measure(kind, folder, numbers)}\n"


def _clones(folder: Path, options: argparse.Namespace) -> str:
    size, filled = options.clone
    title = f"Clone of an image of {size:g} GiB with {filled:g} GiB of data (loop mounts, source in memory)"
    if not size:
        return f"{title}: not asked for."
    reason = clones.why_not()
    if reason:
        return f"{title}: not measured, it {reason}."
    _say("clones ...")
    found = clones.measure(folder, size, filled, min(options.rounds, 2))
    return f"{title}, ours synced and checked:\n{found}\n"


def _explained(options: argparse.Namespace) -> list[str]:
    return [
        f"Load: {firmware.PROCESSES} client processes with {firmware.CONNECTIONS} kept connections each, "
        f"{options.requests} requests a round, best of {options.rounds} rounds taken in turn;",
        "server: gunicorn as shipped (2 processes of 8 threads), the same for all views. Memory: own share (PSS), "
        "resident (RSS). Changes and pages: median, best.",
    ]


if __name__ == "__main__":
    sys.exit(main())
