"""`manage.py reindex`: build the index anew, or compare it with the files."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from ipxeready.shell import ShellCommand


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
        """Rebuild and count."""
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
