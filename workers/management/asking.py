"""How a command that destroys tells what goes, and asks before it begins."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Callable
from typing import Any

from ipxeready.shell import ShellCommand


def add_asking(parser: ArgumentParser, *, dry_run: str) -> None:
    """The arguments that `agreed` reads; `dry_run` is the help of that one."""
    parser.add_argument("--yes", action="store_true", help="do not ask")
    parser.add_argument("--dry-run", action="store_true", help=dry_run)


def agreed(
    command: ShellCommand,
    options: dict[str, Any],
    entries: list[dict[str, Any]],
    in_words: Callable[[dict[str, Any]], str],
    *,
    would: str,
    question: str,
) -> bool:
    """Whether to go on: not after a dry run, which tells `entries` under the name `would`; nothing to do is no question."""
    if options["dry_run"]:
        command.emit({would: entries, "dry_run": True})
        for entry in entries:
            command.say(in_words(entry))
        return False
    if entries:
        if not options["yes"]:
            for entry in entries:
                command.warn(in_words(entry))
        command.confirm(question, yes=options["yes"])
    return True
