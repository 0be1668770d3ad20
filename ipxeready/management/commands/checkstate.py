"""`manage.py checkstate`: are the files well? For people, ExecStartPre and git hooks."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from ipxeready.shell import REFUSED, ShellCommand


class Problems(CommandError):
    """There is something to mend."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args, returncode=REFUSED)


class Command(ShellCommand):
    """Reads the files only: works without and beside a running service, and never writes."""

    help = (
        "Read the files below IPXE_ROOT, without service and index, and tell what is wrong: files that do "
        "not parse, records that do not validate, contradictions (problems, exit code 1); and what ledger "
        "and hosts file know of each other's machines or not (notes). Never writes."
    )
    needs_index = False

    def arguments(self, parser: ArgumentParser) -> None:
        """How strict."""
        parser.add_argument(
            "--strict", action="store_true", help="exit code 1 for notes too"
        )

    def run(self, options: dict[str, Any]) -> None:
        """Check, tell, exit 1 where there is a problem."""
        from ipxeready.statecheck import check_state

        found = check_state(settings.IPXE_LAYOUT)
        problems = [vars(each) for each in found if each.problem]
        notes = [vars(each) for each in found if not each.problem]
        self.emit({"problems": problems, "notes": notes})
        for each in found:
            self.say(str(each) if each.problem else f"{each} (note)")
        if problems or (notes and options["strict"]):
            raise Problems(f"{len(problems)}, notes: {len(notes)}")
        self.say(f"no problems, notes: {len(notes)}")
