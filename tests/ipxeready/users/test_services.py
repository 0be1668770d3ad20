"""The rules for people, against users.yml itself."""

from __future__ import annotations

import stat
from typing import Any

import pytest
import yaml
from django.conf import global_settings
from django.test import Client

from ipxeready import index
from ipxeready.actors import Actor
from ipxeready.errors import Conflict, Forbidden, Invalid, NotFound, Unavailable
from ipxeready.storage.paths import Layout
from ipxeready.users import services
from ipxeready.users.backends import FileBackend
from ipxeready.users.models import Operator

GOOD = "correct horse battery"


def records(layout: Layout) -> dict[str, dict[str, object]]:
    return yaml.safe_load(layout.users_yml.read_text())["users"] or {}


def lines(layout: Layout) -> str:
    return layout.operations.read_text()


@pytest.fixture
def root_admin(layout: Layout) -> Operator:
    services.first_administrator()
    return Operator.objects.get(pk="admin")


def test_the_first_administrator_can_log_in_with_the_password_of_the_file(
    layout: Layout,
) -> None:
    services.first_administrator()
    password = layout.first_login.read_text().strip()
    assert stat.S_IMODE(layout.first_login.stat().st_mode) == 0o600
    assert stat.S_IMODE(layout.users_yml.stat().st_mode) == 0o600
    user = FileBackend().authenticate(None, username="admin", password=password)
    assert user is not None
    assert user.role == "administrator"
    assert password not in layout.users_yml.read_text() + lines(layout)


def test_a_second_start_keeps_the_first_administrator(
    layout: Layout, root_admin: Operator
) -> None:
    before = (layout.users_yml.read_bytes(), layout.first_login.read_bytes())
    services.first_administrator()
    assert (layout.users_yml.read_bytes(), layout.first_login.read_bytes()) == before


def test_no_administrator_is_added_where_people_are(layout: Layout) -> None:
    layout.users_yml.write_text("users:\n  eve:\n    role: nonsense\n")
    index.ensure_fresh(wait=True)
    services.first_administrator()
    assert list(records(layout)) == ["eve"]
    assert not layout.first_login.exists()


def test_a_broken_users_file_does_not_stop_the_start(layout: Layout) -> None:
    layout.users_yml.write_text("users: [\n")
    index.ensure_fresh(wait=True)
    services.first_administrator()
    assert layout.users_yml.read_text() == "users: [\n"


def test_the_file_with_the_first_password_goes_when_it_is_changed(
    layout: Layout, root_admin: Operator
) -> None:
    actor = Actor("admin", "administrator")
    services.user_set_password(actor=actor, username="admin", password=GOOD)
    assert not layout.first_login.exists()


def test_pages_ask_for_another_first_password_until_there_is_one(
    layout: Layout, root_admin: Operator
) -> None:
    client = Client()
    password = layout.first_login.read_text().strip()
    client.post("/admin/login/", {"username": "admin", "password": password})
    words = "still the one that lies in state/first-login"
    assert words in client.get("/admin/").content.decode()
    form = {"old_password": password, "new_password1": GOOD, "new_password2": GOOD}
    assert client.post("/admin/password_change/", form).status_code == 302
    page = client.get("/admin/")
    assert page.status_code == 200
    assert words not in page.content.decode()
    assert not layout.first_login.exists()


def test_a_person_is_added_by_the_smallest_change(
    layout: Layout, root_admin: Operator, administrator: Actor
) -> None:
    before = layout.users_yml.read_text()
    user = services.user_create(
        actor=administrator, username="Alice", password=GOOD, role="operator"
    )
    assert (user.pk, user.role, user.is_active) == ("alice", "operator", True)
    after = layout.users_yml.read_text()
    assert after.startswith(before.rstrip("\n"))
    assert '"user_changed":"alice"' in lines(layout)
    assert GOOD not in after + lines(layout)


@pytest.mark.parametrize(
    "name", ["", "-a", "a b", "a" * 64, "ä", "token", "a/b", "a\n"]
)
def test_a_name_that_breaks_the_rule_is_refused(
    layout: Layout, administrator: Actor, name: str
) -> None:
    if name == "a\n":
        # White space around a name is a slip of the keyboard.
        services.user_create(
            actor=administrator, username=name, password=GOOD, role="viewer"
        )
        return
    with pytest.raises(Invalid) as caught:
        services.user_create(
            actor=administrator, username=name, password=GOOD, role="viewer"
        )
    assert caught.value.field == "username"


@pytest.mark.parametrize("password", ["", "short", "1234567890123", "password123"])
def test_a_weak_password_is_refused(
    layout: Layout, administrator: Actor, password: str
) -> None:
    with pytest.raises(Invalid) as caught:
        services.user_create(
            actor=administrator, username="bob", password=password, role="viewer"
        )
    assert caught.value.field == "password"
    assert records(layout) == {}


def test_a_name_is_given_once_and_a_role_must_exist(
    layout: Layout, administrator: Actor
) -> None:
    services.user_create(
        actor=administrator, username="bob", password=GOOD, role="viewer"
    )
    with pytest.raises(Conflict):
        services.user_create(
            actor=administrator, username="BOB", password=GOOD, role="viewer"
        )
    with pytest.raises(Invalid, match="must be one of"):
        services.user_update(actor=administrator, username="bob", role="root")
    with pytest.raises(NotFound):
        services.user_update(actor=administrator, username="carol", role="viewer")


def test_only_administrators_manage_people(
    layout: Layout, root_admin: Operator, operator: Actor, viewer: Actor
) -> None:
    for actor in (operator, viewer):
        with pytest.raises(Forbidden):
            services.user_create(
                actor=actor, username="x", password=GOOD, role="viewer"
            )
        with pytest.raises(Forbidden):
            services.user_update(actor=actor, username="admin", role="viewer")
        with pytest.raises(Forbidden):
            services.user_set_password(actor=actor, username="admin", password=GOOD)
        with pytest.raises(Forbidden):
            services.user_end_sessions(actor=actor, username="admin")
        with pytest.raises(Forbidden):
            services.user_delete(actor=actor, username="admin")
    assert list(records(layout)) == ["admin"]


def test_the_last_administrator_stays(
    layout: Layout, root_admin: Operator, administrator: Actor
) -> None:
    services.user_create(
        actor=administrator, username="bob", password=GOOD, role="operator"
    )
    for change in ({"role": "viewer"}, {"is_active": False}):
        with pytest.raises(Conflict, match="only administrator"):
            services.user_update(actor=administrator, username="admin", **change)
    with pytest.raises(Conflict, match="only administrator"):
        services.user_delete(actor=administrator, username="admin")
    services.user_update(actor=administrator, username="bob", role="administrator")
    services.user_delete(actor=administrator, username="admin")
    assert list(records(layout)) == ["bob"]


def test_a_change_of_role_or_password_or_a_logout_ends_sessions(
    layout: Layout, root_admin: Operator, administrator: Actor
) -> None:
    services.user_create(
        actor=administrator, username="bob", password=GOOD, role="viewer"
    )
    seen = {Operator.objects.get(pk="bob").get_session_auth_hash()}
    for change in (
        lambda: services.user_update(
            actor=administrator, username="bob", role="operator"
        ),
        lambda: services.user_set_password(
            actor=administrator, username="bob", password=GOOD + "!"
        ),
        lambda: services.user_end_sessions(actor=administrator, username="bob"),
        lambda: services.user_update(
            actor=administrator, username="bob", is_active=False
        ),
    ):
        change()
        digest = Operator.objects.get(pk="bob").get_session_auth_hash()
        assert digest not in seen
        seen.add(digest)


def test_a_broken_file_takes_no_writes(layout: Layout, administrator: Actor) -> None:
    layout.users_yml.write_text("users:\n  a: {role: viewer\n")
    with pytest.raises(Unavailable, match=r"users\.yml"):
        services.user_create(
            actor=administrator, username="bob", password=GOOD, role="viewer"
        )
    assert layout.users_yml.read_text() == "users:\n  a: {role: viewer\n"


def test_a_record_that_makes_no_sense_is_a_problem_that_says_what_to_do(
    layout: Layout, root_admin: Operator
) -> None:
    with layout.users_yml.open("a") as file:
        file.write("  plain:\n    role: viewer\n    password: secret\n")
        file.write("  Upper:\n    role: viewer\n    password: x\n")
        file.write("  rolls:\n    role: king\n    password: x\n")
    index.ensure_fresh(wait=True)
    found = {problem.record: problem.message for problem in index.problems()}
    assert "manage.py user password plain" in found["plain"]
    assert "lower case" in found["Upper"]
    assert "must be one of" in found["rolls"]
    assert [user.pk for user in Operator.objects.all()] == ["admin"]


@pytest.mark.parametrize(
    "text",
    [
        "pbkdf2_sha256$abc",
        "pbkdf2_sha256$many$salt$hash",
        "scrypt$16384$salt",
        "argon2$x",
    ],
)
def test_a_hash_that_a_hand_cut_is_a_problem(
    layout: Layout, root_admin: Operator, settings: Any, text: str
) -> None:
    settings.PASSWORD_HASHERS = global_settings.PASSWORD_HASHERS
    with layout.users_yml.open("a") as file:
        file.write(f"  cut:\n    role: viewer\n    password: '{text}'\n")
    index.ensure_fresh(wait=True)
    (problem,) = index.problems()
    assert "manage.py user password cut" in problem.message


@pytest.mark.parametrize(
    "text",
    [
        "pbkdf2_sha256$99999999999999$salt$hash",
        "pbkdf2_sha256$-1$salt$hash",
        "scrypt$16385$salt$8$1$hash",
        "bcrypt_sha256$$2b$12$" + "a" * 53,
    ],
)
def test_a_hash_that_cannot_be_computed_lets_nobody_in(
    settings: Any, text: str
) -> None:
    settings.PASSWORD_HASHERS = global_settings.PASSWORD_HASHERS
    assert Operator(username="odd", password=text).check_password("x") is False
