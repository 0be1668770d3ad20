"""docs/commands.md says what the commands say, and leaves none out."""

from __future__ import annotations

import importlib
import re

import pytest

from ipxeready import shell
from ipxeready.conf import REPOSITORY
from tests.commands_doc import DOC, commands, described, every_help, renewed


def test_every_help_is_in_the_document_as_it_is() -> None:
    text = DOC.read_text()
    assert sorted(described(text)) == sorted(every_help())
    assert renewed(text) == text, "run: python -m tests.commands_doc"


def test_the_exit_codes_are_those_of_the_code() -> None:
    rows = re.findall(r"^\| ([0-9]+) \|", DOC.read_text(), re.MULTILINE)
    codes = [0, shell.REFUSED, shell.USAGE, shell.PARTLY, shell.INTERRUPTED]
    assert [int(row) for row in rows] == codes


@pytest.mark.parametrize("name", sorted(commands()))
def test_every_command_has_a_help_and_a_test(name: str) -> None:
    module = importlib.import_module(f"{commands()[name]}.management.commands.{name}")
    assert module.Command.help
    tests = [
        path
        for path in (REPOSITORY / "tests").rglob("test_*.py")
        if re.search(rf"[\"']{name}[\"']|manage.py {name}", path.read_text())
    ]
    assert tests
