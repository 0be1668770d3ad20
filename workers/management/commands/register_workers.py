"""`manage.py register_workers`: many workers at once, from a CSV or a range."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from ipxeready.shell import Refused, ShellCommand, Usage, shell_actor
from workers.imports import Imported, ImportRefused, workers_register
from workers.management.rows import read_text, rows_of_csv, rows_of_range


class Command(ShellCommand):
    """Check all rows first, then one write and one reload of dnsmasq; or nothing."""

    help = (
        "Register many workers: all rows are checked against each other and the present state, "
        "then there is one write and one reload of dnsmasq, or nothing at all. "
        "Rows that equal what is there change nothing."
    )

    def arguments(self, parser: ArgumentParser) -> None:
        """Where the rows come from."""
        parser.add_argument(
            "csv",
            nargs="?",
            metavar="CSV",
            help="file with the header worker_id,mac[,hostname]; - is standard input",
        )
        parser.add_argument(
            "--range",
            metavar="NAMES",
            help="names instead of a CSV, such as 'lab-[01-30]'",
        )
        parser.add_argument(
            "--macs",
            metavar="FILE",
            help="with --range: one MAC a line, in the order of the names; - is standard input",
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="check only, write nothing"
        )

    def run(self, options: dict[str, Any]) -> None:
        """Read, register, tell."""
        if bool(options["csv"]) == bool(options["range"]):
            raise Usage("give either a CSV or --range with --macs")
        if bool(options["range"]) != bool(options["macs"]):
            raise Usage("--range and --macs go together")
        if options["csv"]:
            rows = rows_of_csv(read_text(options["csv"]))
        else:
            rows = rows_of_range(options["range"], read_text(options["macs"]))
        try:
            done = workers_register(
                actor=shell_actor(), rows=rows, dry_run=options["dry_run"]
            )
        except ImportRefused as error:
            self._refuse(error)
        else:
            self._tell(done)

    def _refuse(self, error: ImportRefused) -> None:
        self.emit(
            {
                "error": {"message": error.message, "code": error.code},
                "faults": [vars(fault) for fault in error.faults],
            }
        )
        for fault in error.faults:
            self.warn(str(fault))
        raise Refused(error.message)

    def _tell(self, done: Imported) -> None:
        self.emit(
            {
                "created": done.created,
                "unchanged": done.unchanged,
                "dry_run": done.dry_run,
                **done.more,
            }
        )
        for line in done.more.get("removed_lines", []):
            self.warn(f"removed from dhcp-hosts.conf: {line}")
        if "dnsmasq" in done.more:
            self.warn(f"dnsmasq: {done.more['dnsmasq']['error']}")
        verb = "would be registered" if done.dry_run else "registered"
        self.say(f"{len(done.created)} {verb}, {len(done.unchanged)} unchanged")
