"""By hand: `.venv/bin/python -m tests.lab.in_guest [--fs btrfs] COMMAND...` runs a command in a guest, on the repository as it is.

`python` is the guest's with the product's packages. The status is the command's. It needs root, as the lab does.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tests.lab.lab_guest import Guest


def main() -> int:
    """Run it; its output as it comes, both streams on ours."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fs", choices=("xfs", "btrfs"), default="xfs")
    parser.add_argument("--within", type=float, default=600, help="seconds of silence")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    wanted = parser.parse_args()
    command = list(wanted.command)
    if command[:1] == ["python"]:
        command = Guest.python(*command[1:])
    with (
        tempfile.TemporaryDirectory() as artifacts,
        Guest(Path(artifacts), fs=wanted.fs) as guest,
    ):
        program = guest.start(command)
        for line in program.lines(wanted.within):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()
        status = program.wait(wanted.within)
        sys.stderr.write(program.err)
    return status


if __name__ == "__main__":
    sys.exit(main())
