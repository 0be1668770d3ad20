"""docs/commands.md holds what `--help` says: `python -m tests.commands_doc` writes it there, a test compares."""

from __future__ import annotations

import argparse
import os
import re

from ipxeready.conf import REPOSITORY

DOC = REPOSITORY / "docs" / "commands.md"
_BLOCK = re.compile(r"(<!-- help: ([a-z_ ]+) -->\n```text\n).*?(```\n)", re.DOTALL)


def commands() -> dict[str, str]:
    """Our own commands and the apps that they belong to."""
    from django.core.management import get_commands

    return {
        name: app
        for name, app in get_commands().items()
        if isinstance(app, str) and (REPOSITORY / app.replace(".", "/")).is_dir()
    }


def help_of(words: str) -> str:
    """What `manage.py WORDS --help` says, without what all of Django's commands have."""
    from django.core.management import load_command_class
    from django.core.management.base import BaseCommand

    name, *rest = words.split()
    command = load_command_class(commands()[name], name)
    parser: argparse.ArgumentParser = command.create_parser("manage.py", name)
    for word in rest:
        parser = _subparsers(parser)[word]
    common = BaseCommand().create_parser("manage.py", name)
    known = _options(common)
    for action in parser._actions:
        if set(action.option_strings) & known:
            action.help = argparse.SUPPRESS
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = "100"
    try:
        return parser.format_help()
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before


def every_help() -> list[str]:
    """The words of every help there is: commands, and their sub-commands that have options of their own."""
    from django.core.management import load_command_class

    found = []
    for name, app in sorted(commands().items()):
        found.append(name)
        parser = load_command_class(app, name).create_parser("manage.py", name)
        found += [
            f"{name} {word}"
            for word, sub in _subparsers(parser).items()
            if _options(sub) - {"-h", "--help", "--json"}
        ]
    return found


def _options(parser: argparse.ArgumentParser) -> set[str]:
    return {option for action in parser._actions for option in action.option_strings}


def _subparsers(
    parser: argparse.ArgumentParser,
) -> dict[str, argparse.ArgumentParser]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def described(text: str) -> list[str]:
    """The words of every help that a text holds."""
    return [found[2] for found in _BLOCK.finditer(text)]


def renewed(text: str) -> str:
    """The text with every help as it is now."""
    return _BLOCK.sub(
        lambda found: f"{found[1]}{help_of(found[2]).rstrip()}\n{found[3]}", text
    )


def main() -> None:
    """Write the document anew; a new command gets a section at the end, to be written about."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ipxeready.settings.test")
    import django

    django.setup()
    text = DOC.read_text()
    for words in every_help():
        if words not in described(text):
            heading = "" if " " in words else f"## {words}\n\n"
            text += f"\n{heading}<!-- help: {words} -->\n```text\n```\n"
    DOC.write_text(renewed(text))


if __name__ == "__main__":
    main()
