"""`manage.py reindex`: build the index anew, or compare it with the files."""

from __future__ import annotations

import importlib
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from ipxeready.shell import REFUSED, ShellCommand


class Different(CommandError):
    """The index is not what the files say."""

    def __init__(self, *args: object) -> None:
        super().__init__(*args, returncode=REFUSED)


class Command(ShellCommand):
    """Safe at any time: readers follow to the new index, writers wait for the lock."""

    help = (
        "Build the index of this user and this IPXE_ROOT anew from the files. It is made anew by itself "
        "when it is gone or broken; this is for doubts."
    )

    def arguments(self, parser: ArgumentParser) -> None:
        """Build or compare."""
        parser.add_argument(
            "--verify",
            action="store_true",
            help="build one beside the present index and compare them row by row; changes nothing, "
            "exit code 1 names every difference",
        )

    def run(self, options: dict[str, Any]) -> None:
        """Rebuild and count, or compare."""
        if options["verify"]:
            self._verify()
            return
        from ipxeready.index.rebuild import rebuild

        done = rebuild()
        self.emit(
            {
                "index": str(done.path),
                "seconds": round(done.seconds, 3),
                "rows": done.rows,
                "problems": done.problems,
            }
        )
        counts = ", ".join(f"{number} {name}" for name, number in done.rows.items())
        self.say(f"{done.path}: {counts}; {done.seconds:.2f} s")
        if done.problems:
            self.warn(f"{done.problems} problems in the files; see checkstate")

    def _verify(self) -> None:
        # By name: in agent mode there is no index, and its models must not be loaded.
        verify = importlib.import_module("ipxeready.index.verify")
        found: list[str] = verify.verify_index()
        self.emit({"differences": found})
        for each in found:
            self.say(each)
        if found:
            raise Different(f"{len(found)} differences; `reindex` mends them")
        self.say("the index is what the files say")
