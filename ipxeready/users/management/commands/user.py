"""`manage.py user`: people from the shell, for instance when the only password is lost."""

from __future__ import annotations

import getpass
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ipxeready import index
from ipxeready.actors import ADMINISTRATOR, ROLES, Actor
from ipxeready.errors import ApplicationError
from ipxeready.users import selectors, services


class Command(BaseCommand):
    """List, create, change and delete people."""

    help = "People who log in: list, create, role, password, enable, disable, logout, delete."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """One sub-command for each service."""
        commands = parser.add_subparsers(dest="what", required=True)
        commands.add_parser("list", help="show everybody")
        create = commands.add_parser(
            "create", help="add a person; asks for the password"
        )
        create.add_argument("username")
        create.add_argument("--role", choices=ROLES, default=ROLES[0])
        role = commands.add_parser("role", help="give another role")
        role.add_argument("username")
        role.add_argument("role", choices=ROLES)
        for name, text in (
            (
                "password",
                "set a password; asks for it, or reads it from standard input",
            ),
            ("enable", "let the person log in"),
            ("disable", "do not let the person log in"),
            ("logout", "end all sessions of the person"),
            ("delete", "remove the person"),
        ):
            commands.add_parser(name, help=text).add_argument("username")

    def handle(self, *args: Any, **options: Any) -> None:
        """Call the service; a refusal is one line."""
        actor = Actor(f"shell:{getpass.getuser()}", ADMINISTRATOR)
        name = str(options.get("username", "")).lower()
        try:
            index.ensure_fresh(wait=True)
            match options["what"]:
                case "list":
                    for user in selectors.users():
                        active = "" if user.is_active else " (disabled)"
                        self.stdout.write(f"{user.username} {user.role}{active}")
                case "create":
                    services.user_create(
                        actor=actor,
                        username=name,
                        password=_password(),
                        role=options["role"],
                    )
                case "role":
                    services.user_update(
                        actor=actor, username=name, role=options["role"]
                    )
                case "password":
                    services.user_set_password(
                        actor=actor, username=name, password=_password()
                    )
                case "enable" | "disable" as word:
                    services.user_update(
                        actor=actor, username=name, is_active=word == "enable"
                    )
                case "logout":
                    services.user_end_sessions(actor=actor, username=name)
                case "delete":
                    services.user_delete(actor=actor, username=name)
        except ApplicationError as error:
            raise CommandError(error.message) from error


def _password() -> str:
    """From the terminal twice, or one line of standard input; never from the command line."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    first = getpass.getpass("Password: ")
    if first != getpass.getpass("Again: "):
        raise CommandError("the two passwords differ")
    return first
