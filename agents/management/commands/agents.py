"""`manage.py agents`: the registry of storage nodes from the shell."""

from __future__ import annotations

import sys
from argparse import ArgumentParser, BooleanOptionalAction
from pathlib import Path
from typing import Any

from agents import nodes, selectors, services
from agents.models import Agent
from agents.protocol.access import ACCESS
from agents.serializers import agent_shown
from ipxeready.errors import ApplicationError
from ipxeready.shell import ShellCommand, Usage, add_json, failure, shell_actor

_HEADS = ("node", "address", "iscsi server", "role", "tags", "enabled", "access")


class Command(ShellCommand):
    """List, add, edit, probe, enable, disable, delete."""

    help = "Storage nodes: list, add, edit, probe, enable, disable, delete."

    def arguments(self, parser: ArgumentParser) -> None:
        """One sub-command for each service."""
        commands = parser.add_subparsers(dest="what", required=True)
        show = commands.add_parser("list", help="show all nodes")
        show.add_argument(
            "--live", action="store_true", help="ask each whether it works"
        )
        add = commands.add_parser("add", help="register a node")
        add.add_argument("id")
        add.add_argument("base_url", help="http://host:4840 of its agent")
        _fields(add)
        edit = commands.add_parser("edit", help="change what is given")
        edit.add_argument("id")
        edit.add_argument("--base-url", metavar="URL", help="another address")
        _fields(edit)
        probe = commands.add_parser(
            "probe", help="ask what is at an address; nothing is written"
        )
        probe.add_argument(
            "where", metavar="URL|ID", help="an address, or the id of a node"
        )
        _token(probe)
        for name, text in (
            ("enable", "let disks go there"),
            ("disable", "let nothing new go there"),
            ("delete", "take it off the registry"),
        ):
            commands.add_parser(name, help=text).add_argument(
                "ids", nargs="+", metavar="ID"
            )
        add_json(commands.choices.values())

    def run(self, options: dict[str, Any]) -> None:
        """Call the service."""
        match options["what"]:
            case "list":
                self._list(options["live"])
            case "add":
                self._one(
                    services.agent_register(
                        actor=shell_actor(),
                        agent_id=options["id"],
                        base_url=options["base_url"],
                        **_given(options),
                    )
                )
            case "edit":
                given = _given(options)
                if options["base_url"] is not None:
                    given["base_url"] = options["base_url"]
                if not given:
                    raise Usage("nothing is given that could be changed")
                self._one(
                    services.agent_update(
                        actor=shell_actor(), agent_id=options["id"], **given
                    )
                )
            case "probe":
                self._probe(options)
            case "enable" | "disable" | "delete" as verb:
                self._each(verb, options["ids"])

    def _list(self, live: bool) -> None:
        rows = list(selectors.agents())
        shown = [agent_shown(agent) for agent in rows]
        if live:
            state = nodes.live(rows)
            shown = [{**entry, **state[entry["id"]]} for entry in shown]
        self.emit(shown)
        self.table(
            [*_HEADS, "health"] if live else _HEADS,
            [_cells(entry, live) for entry in shown],
        )

    def _one(self, agent: Agent) -> None:
        self.emit(agent_shown(agent))
        self.say(f"{agent.id}: {agent.base_url}")

    def _probe(self, options: dict[str, Any]) -> None:
        where = options["where"]
        known = None if "://" in where else selectors.agent_get(where)
        found = services.agent_probe(
            actor=shell_actor(),
            base_url=known.base_url if known else where,
            token=_read_token(options["token_file"]) if options["token_file"] else "",
            agent_id=known.id if known else "",
        )
        self.emit(found)
        for name, value in found.items():
            self.say(f"{name}: {_in_words(value)}")

    def _each(self, verb: str, ids: list[str]) -> None:
        actor = shell_actor()
        done: list[str] = []
        failed: list[dict[str, Any]] = []
        for name in dict.fromkeys(each.lower() for each in ids):
            try:
                if verb == "delete":
                    services.agent_delete(actor=actor, agent_id=name)
                else:
                    services.agent_update(
                        actor=actor, agent_id=name, enabled=verb == "enable"
                    )
            except ApplicationError as error:
                failed.append({"id": name, "error": failure(error)})
            else:
                done.append(name)
        self.emit({"succeeded": [{"id": name} for name in done], "failed": failed})
        for entry in failed:
            self.warn(f"{entry['id']}: {entry['error']['message']}")
        for name in done:
            self.say(f"{name}: {verb}d")
        self.finish(done=len(done), failed=len(failed), what="nodes")


def _in_words(value: Any) -> str:
    """A value of a probe as people read it."""
    match value:
        case bool():
            return "yes" if value else "no"
        case dict():
            return " ".join(name for name, set_ in value.items() if set_) or "none"
        case list():
            return " ".join(value)
    return str(value)


def _fields(parser: ArgumentParser) -> None:
    _token(parser)
    parser.add_argument(
        "--iscsi-server",
        metavar="HOST",
        help="where machines reach its targets; empty: the host of its address",
    )
    parser.add_argument(
        "--disk", action=BooleanOptionalAction, default=None, help="takes disks"
    )
    parser.add_argument(
        "--cd", action=BooleanOptionalAction, default=None, help="takes install CDs"
    )
    parser.add_argument(
        "--tag",
        action="append",
        metavar="WORD",
        dest="tags",
        help="may be given several times; replaces all; an empty word alone clears them",
    )
    parser.add_argument(
        "--access",
        choices=ACCESS,
        help="who may log in to targets made from now on (`manage.py access` sets those that are there)",
    )
    parser.add_argument(
        "--enabled",
        action=BooleanOptionalAction,
        default=None,
        help="whether new disks may go there",
    )


def _token(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--token-file",
        metavar="FILE",
        help="file with its token, - for standard input; never on the command line, "
        "where everybody could read it",
    )


def _read_token(name: str) -> str:
    try:
        text = sys.stdin.readline() if name == "-" else Path(name).read_text("ascii")
    except OSError as error:
        raise Usage(f"{name}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise Usage(f"{name}: must hold one word of ASCII") from None
    token = text.strip()
    if not token:
        raise Usage(f"{name}: holds no token")
    return token


def _given(options: dict[str, Any]) -> dict[str, Any]:
    """The fields that were given, as the services take them."""
    given: dict[str, Any] = {}
    if options["token_file"]:
        given["token"] = _read_token(options["token_file"])
    for name in ("iscsi_server", "enabled", "access"):
        if options[name] is not None:
            given[name] = options[name]
    role = {name: options[name] for name in ("disk", "cd") if options[name] is not None}
    if role:
        given["role"] = role
    if options["tags"] is not None:
        given["tags"] = [] if options["tags"] == [""] else options["tags"]
    return given


def _cells(entry: dict[str, Any], live: bool) -> list[Any]:
    cells = [
        entry["id"],
        entry["base_url"],
        entry["iscsi_server"],
        " ".join(name for name, on in entry["role"].items() if on),
        " ".join(entry["tags"]),
        "yes" if entry["enabled"] else "no",
        entry["access"],
    ]
    return [*cells, entry["health"]] if live else cells
