"""`manage.py token`: personal API tokens from the shell."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from ipxeready.actors import ROLES
from ipxeready.shell import ShellCommand, add_json, shell_actor
from ipxeready.users import selectors, tokens
from ipxeready.users.serializers import token_shown


class Command(ShellCommand):
    """List, create, revoke."""

    help = "Personal API tokens: list, create, revoke."

    def arguments(self, parser: ArgumentParser) -> None:
        """One sub-command for each service."""
        commands = parser.add_subparsers(dest="what", required=True)
        show = commands.add_parser("list", help="show all, or those of one person")
        show.add_argument("username", nargs="?")
        create = commands.add_parser(
            "create", help="make one and write it to standard output, this once"
        )
        create.add_argument("username")
        create.add_argument("name", help="what it is for, such as laptop")
        create.add_argument(
            "--role", choices=ROLES, help="less than the person's own role"
        )
        create.add_argument(
            "--days",
            type=int,
            help="how long it holds; without it, until it is revoked",
        )
        revoke = commands.add_parser("revoke", help="make tokens worthless at once")
        revoke.add_argument("ids", nargs="+", metavar="ID")
        add_json(commands.choices.values())

    def run(self, options: dict[str, Any]) -> None:
        """Call the service."""
        match options["what"]:
            case "list":
                self._list(options["username"])
            case "create":
                made = tokens.token_create(
                    actor=shell_actor(),
                    username=options["username"].strip().lower(),
                    name=options["name"],
                    role=options["role"],
                    days=options["days"],
                )
                self.emit({**token_shown(made.token), "token": made.text})
                self.say(made.text)
            case "revoke":
                gone = [
                    tokens.token_revoke(actor=shell_actor(), token_id=token_id)
                    for token_id in options["ids"]
                ]
                self.emit({"deleted": gone})
                for token_id in gone:
                    self.say(f"{token_id}: revoked")

    def _list(self, username: str | None) -> None:
        if username is not None:
            username = selectors.user_get(username.strip().lower()).username
        shown = [token_shown(token) for token in selectors.tokens(username)]
        self.emit(shown)
        heads = ("id", "user", "name", "role", "created", "expires", "last_used")
        self.table(
            [head.replace("_", " ") for head in heads],
            [[entry[head] for head in heads] for entry in shown],
        )
