"""`manage.py user`: the same services from the shell."""

from __future__ import annotations

import io
import json
import sys

import pytest
from django.core.management import CommandError, call_command

from ipxeready.storage.paths import Layout
from ipxeready.users import throttle
from ipxeready.users.backends import FileBackend
from ipxeready.users.services import first_administrator
from ipxeready.users.tokens import token_owner


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
    assert [line.split() for line in run("list").splitlines()[1:]] == [
        ["admin", "administrator", "yes", "0"],
        ["bob", "operator", "yes", "0"],
    ]
    run("role", "bob", "viewer")
    run("disable", "bob")
    assert run("list").splitlines()[2].split() == ["bob", "viewer", "no", "0"]
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


def test_a_password_is_read_from_standard_input_and_never_an_argument(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(CommandError, match="unrecognized|arguments"):
        run("create", "bob", "--password", "a long pass phrase")
    monkeypatch.setattr(sys, "stdin", io.StringIO("short\n"))
    with pytest.raises(CommandError, match="password"):
        run("create", "bob")
    assert "bob" not in layout.users_yml.read_text()


def test_the_last_administrator_cannot_be_taken_away_by_the_shell_either(
    layout: Layout,
) -> None:
    first_administrator()
    for words in (
        ("role", "admin", "viewer"),
        ("disable", "admin"),
        ("delete", "admin"),
    ):
        with pytest.raises(CommandError, match="only administrator"):
            run(*words)
    assert json.loads(run("list", "--json"))[0]["role"] == "administrator"


def test_what_programs_read_holds_no_hash(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("a long pass phrase\n"))
    shown = json.loads(run("create", "bob", "--role", "operator", "--json"))
    assert shown == {
        "username": "bob",
        "role": "operator",
        "active": True,
        "tokens": [],
    }


def tokens(*words: str) -> str:
    out = io.StringIO()
    call_command("token", *words, stdout=out)
    return out.getvalue()


def test_tokens_from_the_shell(layout: Layout) -> None:
    first_administrator()
    text = tokens("create", "admin", "backup", "--role", "viewer").strip()
    caller = token_owner(text)
    assert caller is not None
    assert caller.role == "viewer"
    (shown,) = json.loads(tokens("list", "--json"))
    assert shown["name"] == "backup"
    assert text not in tokens("list") + json.dumps(shown)
    tokens("revoke", shown["id"])
    assert token_owner(text) is None
    with pytest.raises(CommandError, match="no token"):
        tokens("revoke", shown["id"])


def test_the_shell_lifts_the_wait_after_failures(layout: Layout) -> None:
    first_administrator()
    for _ in range(10):
        throttle.begin("admin", "192.0.2.1")
    assert throttle.begin("admin", "192.0.2.1") > 0
    run("unlock", "admin")
    assert throttle.begin("admin", "192.0.2.1") == 0
    with pytest.raises(CommandError, match="IP address"):
        run("unlock", "admin", "--address", "somewhere")
