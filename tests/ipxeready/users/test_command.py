"""`manage.py user`: the same services from the shell."""

from __future__ import annotations

import io
import sys

import pytest
from django.core.management import CommandError, call_command

from ipxeready.storage.paths import Layout
from ipxeready.users.backends import FileBackend
from ipxeready.users.services import first_administrator


def run(*words: str) -> str:
    out = io.StringIO()
    call_command("user", *words, stdout=out)
    return out.getvalue()


def test_a_person_from_the_shell(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    first_administrator()
    monkeypatch.setattr(sys, "stdin", io.StringIO("a long pass phrase\n"))
    run("create", "bob", "--role", "operator")
    assert run("list").splitlines() == ["admin administrator", "bob operator"]
    run("role", "bob", "viewer")
    run("disable", "bob")
    assert run("list").splitlines()[1] == "bob viewer (disabled)"
    run("enable", "bob")
    run("logout", "bob")
    monkeypatch.setattr(sys, "stdin", io.StringIO("another pass phrase\n"))
    run("password", "bob")
    user = FileBackend().authenticate(
        None, username="bob", password="another pass phrase"
    )
    assert user is not None
    run("delete", "bob")
    assert "bob" not in run("list")
    assert '"user":"shell:' in layout.operations.read_text()


def test_a_refusal_is_one_line(layout: Layout) -> None:
    with pytest.raises(CommandError, match="there is no user nobody"):
        run("delete", "nobody")
