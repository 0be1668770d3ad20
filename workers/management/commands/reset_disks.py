"""`manage.py reset_disks`: system disks back to their master."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from agents.protocol.filenames import check_master
from ipxeready.errors import Invalid
from ipxeready.shell import ShellCommand, Usage, shell_actor, words
from workers.changing import disk_reset
from workers.goes import reset_in_words, what_is_reset
from workers.management.asking import add_asking, agreed
from workers.management.changes import change_disks
from workers.management.selection import add_selection, selected
from workers.validators import check_os


class Command(ShellCommand):
    """Each on its own: one that is in use is told and does not hold up the others."""

    help = (
        "Give the system disk of each of the workers the content of its master again. All that was written to it is "
        "lost, and it has its master's size again. Refused for a disk that is in use. Tells what is reset and asks first."
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
        add_asking(parser, dry_run="tell what would be reset, reset nothing")

    def run(self, options: dict[str, Any]) -> None:
        """Tell, ask, reset each, tell what failed."""
        try:
            system = check_os(options["os"])
            master = check_master(options["master"]) if options["master"] else None
        except Invalid as error:
            raise Usage(words(error)) from None
        workers = selected(options)
        goes = what_is_reset(workers, os=system, master=master)
        question = f"Reset the {system} disks of {len(goes)} workers?"
        if not agreed(
            self, options, goes, reset_in_words, would="would_reset", question=question
        ):
            return
        actor = shell_actor()
        change_disks(
            self,
            workers,
            lambda worker_id: disk_reset(
                actor=actor, worker_id=worker_id, os=system, master=master
            ),
            doing="resetting",
            past="reset",
        )
