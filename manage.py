#!/usr/bin/env python3
"""The entry to everything: `python manage.py serve`, and Django's commands."""

from __future__ import annotations

import os
import sys


def main() -> int:
    """Run a command; a wrong configuration ends it with one line."""
    # A closed stream's number would go to the next file that is opened, a ledger perhaps.
    while (lowest := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(lowest, True)
    os.close(lowest)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = sys.stderr or open(2, "w", closefd=False)  # noqa: SIM115
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ipxeready.settings")
    try:
        from django.core.management import execute_from_command_line

        from ipxeready.conf import ConfigError
    except ModuleNotFoundError as error:
        print(  # noqa: T201
            f"{error.name} is not installed: run `make install`, then use .venv/bin/python",
            file=sys.stderr,
        )
        return 1
    try:
        execute_from_command_line(sys.argv)
    except ConfigError as error:
        print(f"ipxeready: {error}", file=sys.stderr)  # noqa: T201
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
