"""`manage.py list_workers`: workers as a table, or as the API's records."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from ipxeready.errors import Invalid
from ipxeready.shell import ShellCommand, Usage, words
from workers import selectors
from workers.filters import WorkerFilterSet, filtered

_HELP = {
    "state": "registered, ready or installing",
    "os": "with a disk of this system",
    "agent": "with a disk on this node",
    "access": "with this access of its own: off, acl or chap",
    "has_disk": "true: with a disk; false: without",
    "search": "words in id, hostname or MAC",
    "ordering": "worker_id, hostname, state, default_os; - before one for backwards",
}


class Command(ShellCommand):
    """The API's list with the API's filters."""

    help = "List workers, with the filters of GET /workers."

    def arguments(self, parser: ArgumentParser) -> None:
        """The filters of the API's list."""
        for name in WorkerFilterSet.base_filters:
            parser.add_argument(
                f"--{name.replace('_', '-')}",
                dest=name,
                metavar="VALUE",
                help=_HELP.get(name, ""),
            )

    def run(self, options: dict[str, Any]) -> None:
        """Read and show."""
        names = WorkerFilterSet.base_filters
        given = {name: options[name] for name in names if options[name] is not None}
        try:
            found = selectors.records(filtered(given))
        except Invalid as error:
            raise Usage(words(error)) from None
        self.emit(found)
        self.table(
            ("worker", "hostname", "mac", "state", "disks", "default"),
            [
                (
                    record["worker_id"],
                    record["hostname"],
                    record["mac"],
                    record["state"],
                    " ".join(f"{d['os']}@{d['agent']}" for d in record["disks"]),
                    record.get("default_os")
                    or record.get("boot", {}).get("menu_default"),
                )
                for record in found
            ],
        )
