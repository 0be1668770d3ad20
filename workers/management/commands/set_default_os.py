"""`manage.py set_default_os`: what many workers boot next."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from ipxeready.errors import Invalid
from ipxeready.shell import ShellCommand, Usage, shell_actor, words
from workers.boots import workers_boot_set
from workers.management.changes import told
from workers.management.selection import add_selection, selected
from workers.validators import check_menu_default, check_menu_timeout, check_os

_CHECKS = {
    "os": check_os,
    "menu_default": check_menu_default,
    "menu_timeout": check_menu_timeout,
}


class Command(ShellCommand):
    """Set or clear the default system, the menu's choice and its time."""

    help = (
        "Set what workers boot: the default system, the menu's choice, the menu's time."
    )

    def arguments(self, parser: ArgumentParser) -> None:
        """Whom, and what."""
        add_selection(parser)
        parser.add_argument("--os", metavar="OS", help="system of one of its disks")
        parser.add_argument(
            "--menu-default", metavar="ITEM", help="a system or an item of the menu"
        )
        parser.add_argument(
            "--menu-timeout",
            metavar="MS",
            help="milliseconds; 0 waits for a key for ever",
        )
        parser.add_argument(
            "--clear",
            action="append",
            default=[],
            metavar="FIELD",
            choices=tuple(_CHECKS),
            help=f"clear {', '.join(_CHECKS)}; may be given several times",
        )

    def run(self, options: dict[str, Any]) -> None:
        """Set it for each, tell what failed."""
        values = self._values(options)
        ids = [worker.worker_id for worker in selected(options)]
        with self.progress("setting") as bar:
            done = workers_boot_set(
                actor=shell_actor(), worker_ids=ids, progress=bar, **values
            )
        told(self, done, "set", "workers")

    @staticmethod
    def _values(options: dict[str, Any]) -> dict[str, Any]:
        values: dict[str, Any] = dict.fromkeys(options["clear"])
        for name, check in _CHECKS.items():
            given = options[name]
            if given is None:
                continue
            if name in values:
                raise Usage(f"{name}: give a value or --clear, not both")
            try:
                values[name] = check(given)
            except Invalid as error:
                raise Usage(words(error)) from None
        if not values:
            raise Usage("give --os, --menu-default, --menu-timeout or --clear")
        return values
