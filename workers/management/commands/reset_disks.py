"""`manage.py reset_disks`: system disks back to their master."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from agents.protocol.filenames import check_master
from ipxeready.errors import Invalid
from ipxeready.shell import ShellCommand, Usage, shell_actor, words
from workers.changing import disk_reset
from workers.management.changes import change_disks
from workers.management.selection import add_selection
from workers.validators import check_os


class Command(ShellCommand):
    """Each on its own: one that is in use is told and does not hold up the others."""

    help = (
        "Give the system disk of each of the workers the content of its master again. All that was written to it is "
        "lost. Refused for a disk that is in use."
    )

    def arguments(self, parser: ArgumentParser) -> None:
        """Whose disks, which, and from which master."""
        add_selection(parser)
        parser.add_argument(
            "--os", required=True, metavar="OS", help="the system of the disks"
        )
        parser.add_argument(
            "--master",
            metavar="FILE",
            help="another master than the one each was cloned from",
        )

    def run(self, options: dict[str, Any]) -> None:
        """Reset each, tell what failed."""
        try:
            system = check_os(options["os"])
            master = check_master(options["master"]) if options["master"] else None
        except Invalid as error:
            raise Usage(words(error)) from None
        actor = shell_actor()
        change_disks(
            self,
            options,
            lambda worker_id: disk_reset(
                actor=actor, worker_id=worker_id, os=system, master=master
            ),
            doing="resetting",
            past="reset",
        )
