"""`manage.py grow_disks`: system disks made larger."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from ipxeready.errors import Invalid
from ipxeready.shell import ShellCommand, Usage, shell_actor, words
from ipxeready.storage.sizes import parse_size
from workers.changing import disk_grow
from workers.management.changes import change_disks
from workers.management.selection import add_selection, selected
from workers.validators import check_os


class Command(ShellCommand):
    """Each on its own: one that is in use is told and does not hold up the others."""

    help = "Make the system disk of each of the workers larger. Refused for a disk that is in use or that large already."

    def arguments(self, parser: ArgumentParser) -> None:
        """Whose disks, which, and how large."""
        add_selection(parser)
        parser.add_argument(
            "--os", required=True, metavar="OS", help="the system of the disks"
        )
        parser.add_argument(
            "--size", required=True, metavar="SIZE", help="the new size, such as 60G"
        )

    def run(self, options: dict[str, Any]) -> None:
        """Grow each, tell what failed."""
        try:
            system = check_os(options["os"])
            size = parse_size(options["size"])
        except Invalid as error:
            raise Usage(words(error)) from None
        actor = shell_actor()
        change_disks(
            self,
            selected(options),
            lambda worker_id: disk_grow(
                actor=actor, worker_id=worker_id, os=system, size=size
            ),
            doing="growing",
            past="grown",
        )
