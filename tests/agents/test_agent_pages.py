"""The pages of storage nodes: who sees what, forms that go through the services, and never a token."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client

from ipxeready.actors import Actor
from ipxeready.storage.paths import Layout
from ipxeready.users import services as users
from tests.agents.helpers import registry, trail

PASSWORD = "correct horse battery"
LIST = "/admin/agents/agent/"
FILE = """\
agents:
  node-1:   # the big one
    base_url: http://192.0.2.1:4840
    token: secret-word
    role: {disk: true, cd: true}
    tags: [storage, stgt]
"""
FORM = {
    "base_url": "http://192.0.2.1:4840",
    "token": "",
    "iscsi_server": "",
    "role_disk": "on",
    "role_cd": "on",
    "tags": "storage stgt",
    "enabled": "on",
    "access": "off",
}


@pytest.fixture
def login(layout: Layout, administrator: Actor) -> Callable[[str], Client]:
    """Log in as a person of that role."""
    layout.agents_yml.write_text(FILE)

    def enter(role: str) -> Client:
        users.user_create(
            actor=administrator, username=role[:5], password=PASSWORD, role=role
        )
        client = Client()
        answer = client.post(
            "/admin/login/", {"username": role[:5], "password": PASSWORD}
        )
        assert answer.status_code == 302
        return client

    return enter


def _digest(page: bytes) -> str:
    mark = b'name="record_digest" value="'
    start = page.index(mark) + len(mark)
    return page[start : page.index(b'"', start)].decode()


@pytest.mark.parametrize("role", ["viewer", "operator", "administrator"])
def test_everybody_sees_the_nodes_and_nobody_a_token(
    login: Callable[[str], Client], role: str
) -> None:
    client = login(role)
    for url in (
        LIST,
        f"{LIST}?enabled__exact=1",
        f"{LIST}?q=192.0.2",
        f"{LIST}node-1/change/",
    ):
        page = client.get(url)
        assert page.status_code == 200, url
        assert b"node-1" in page.content
        assert b"secret-word" not in page.content


def test_the_form_with_an_empty_token_keeps_it_and_the_comment(
    login: Callable[[str], Client], layout: Layout
) -> None:
    client = login("administrator")
    digest = _digest(client.get(f"{LIST}node-1/change/").content)
    answer = client.post(
        f"{LIST}node-1/change/",
        {**FORM, "tags": "storage, stgt, fast", "record_digest": digest},
    )
    assert answer.status_code == 302, answer.content.decode()
    assert registry(layout)["node-1"]["token"] == "secret-word"
    assert registry(layout)["node-1"]["tags"] == ["storage", "stgt", "fast"]
    assert "# the big one" in layout.agents_yml.read_text()
    assert trail("agent.update")[0]["changed"] == ["tags"]
    assert trail("agent.update")[0]["user"] == "admin"


def test_one_switch_of_the_role_leaves_the_other(
    login: Callable[[str], Client], layout: Layout
) -> None:
    form = {k: v for k, v in FORM.items() if k != "role_cd"}
    assert login("administrator").post(f"{LIST}node-1/change/", form).status_code == 302
    assert registry(layout)["node-1"]["role"] == {"disk": True, "cd": False}


def test_a_form_without_changes_writes_nothing(
    login: Callable[[str], Client], layout: Layout
) -> None:
    assert login("administrator").post(f"{LIST}node-1/change/", FORM).status_code == 302
    assert layout.agents_yml.read_text() == FILE
    assert trail("agent.update") == []


def test_a_stale_form_is_refused(
    login: Callable[[str], Client], layout: Layout
) -> None:
    client = login("administrator")
    digest = _digest(client.get(f"{LIST}node-1/change/").content)
    edited = FILE.replace("192.0.2.1", "192.0.2.2")
    layout.agents_yml.write_text(edited)
    answer = client.post(f"{LIST}node-1/change/", {**FORM, "record_digest": digest})
    assert answer.status_code == 200
    assert layout.agents_yml.read_text() == edited


def test_what_the_service_refuses_is_an_error_of_the_form(
    login: Callable[[str], Client], layout: Layout
) -> None:
    answer = login("administrator").post(
        f"{LIST}add/", {**FORM, "id": "b", "base_url": "ftp://x"}
    )
    assert answer.status_code == 200
    assert b"ftp://x" in answer.content
    assert b"errorlist" in answer.content
    assert list(registry(layout)) == ["node-1"]


def test_administrators_register_and_remove(
    login: Callable[[str], Client], layout: Layout
) -> None:
    client = login("administrator")
    assert client.get(f"{LIST}add/").status_code == 200
    answer = client.post(f"{LIST}add/", {**FORM, "id": "node-2", "token": "another"})
    assert answer.status_code == 302, answer.content.decode()
    assert registry(layout)["node-2"]["token"] == "another"
    assert client.get(f"{LIST}node-2/delete/").status_code == 200
    assert client.post(f"{LIST}node-2/delete/", {"post": "yes"}).status_code == 302
    assert list(registry(layout)) == ["node-1"]
    assert "another" not in layout.operations.read_text()


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_others_do_not(
    login: Callable[[str], Client], layout: Layout, role: str
) -> None:
    client = login(role)
    assert client.get(f"{LIST}add/").status_code == 403
    assert client.post(f"{LIST}add/", {**FORM, "id": "node-2"}).status_code == 403
    assert client.post(f"{LIST}node-1/delete/", {"post": "yes"}).status_code == 403
    changed = {**FORM, "tags": "x"}
    assert client.post(f"{LIST}node-1/change/", changed).status_code == 403
    assert layout.agents_yml.read_text() == FILE
