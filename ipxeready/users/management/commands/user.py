"""`manage.py user`: people from the shell, for instance when the only password is lost."""

from __future__ import annotations

import getpass
import sys
from argparse import ArgumentParser
from typing import Any

from ipxeready.actors import ROLES
from ipxeready.shell import Refused, ShellCommand, add_json, shell_actor
from ipxeready.users import selectors, services
from ipxeready.users.models import Operator
from ipxeready.users.serializers import user_shown


class Command(ShellCommand):
    """List, create, change and delete people."""

    help = "People who log in: list, create, role, password, enable, disable, logout, unlock, delete."

    def arguments(self, parser: ArgumentParser) -> None:
        """One sub-command for each service."""
        commands = parser.add_subparsers(dest="what", required=True)
        commands.add_parser("list", help="show everybody")
        create = commands.add_parser(
            "create",
            help="add a person; asks for the password, or reads it from standard input",
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
            ("disable", "do not let the person log in; tokens are dead at once"),
            ("logout", "end all sessions of the person"),
            ("delete", "remove the person, and the person's tokens"),
        ):
            commands.add_parser(name, help=text).add_argument("username")
        unlock = commands.add_parser(
            "unlock", help="lift the wait after failed logins, for everybody or for one"
        )
        unlock.add_argument("username", nargs="?", default="")
        unlock.add_argument(
            "--address",
            default="",
            help="only failures from there; with a person, this address is trusted from now on",
        )
        add_json(commands.choices.values())

    def run(self, options: dict[str, Any]) -> None:
        """Call the service."""
        actor = shell_actor()
        name = str(options.get("username", "")).strip().lower()
        match options["what"]:
            case "list":
                self._list()
            case "create":
                self._one(
                    services.user_create(
                        actor=actor,
                        username=name,
                        password=_password(),
                        role=options["role"],
                    )
                )
            case "role":
                self._one(
                    services.user_update(
                        actor=actor, username=name, role=options["role"]
                    )
                )
            case "password":
                # Whom it is for is checked first: nobody types a password for nothing.
                selectors.user_get(name)
                self._one(
                    services.user_set_password(
                        actor=actor, username=name, password=_password()
                    )
                )
            case "enable" | "disable" as word:
                self._one(
                    services.user_update(
                        actor=actor, username=name, is_active=word == "enable"
                    )
                )
            case "logout":
                services.user_end_sessions(actor=actor, username=name)
                self._said(f"{name}: all sessions have ended", {"logged_out": name})
            case "unlock":
                gone = services.logins_unlock(
                    actor=actor, username=name, address=options["address"]
                )
                self._said(f"{gone} counts of failures forgotten", {"forgotten": gone})
            case "delete":
                services.user_delete(actor=actor, username=name)
                self._said(f"{name}: deleted", {"deleted": name})

    def _list(self) -> None:
        users = list(selectors.users())
        self.emit([user_shown(user) for user in users])
        self.table(
            ("user", "role", "active", "tokens"),
            [
                (
                    user.username,
                    user.role,
                    "yes" if user.is_active else "no",
                    selectors.tokens(user.username).count(),
                )
                for user in users
            ],
        )

    def _one(self, user: Operator) -> None:
        state = "" if user.is_active else ", disabled"
        self._said(f"{user.username}: {user.role}{state}", user_shown(user))

    def _said(self, text: str, value: dict[str, Any]) -> None:
        self.emit(value)
        self.say(text)


def _password() -> str:
    """From the terminal twice, or one line of standard input; never from the command line."""
    if not sys.stdin.isatty():
        return sys.stdin.readline().rstrip("\n")
    first = getpass.getpass("Password: ")
    if first != getpass.getpass("Again: "):
        raise Refused("the two passwords differ; nothing was changed")
    return first
