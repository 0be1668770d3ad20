"""The pages of storage nodes: who sees what, forms that go through the services, and never a token."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from agents.services import agent_register
from ipxeready.actors import SYSTEM, Actor
from ipxeready.storage.paths import Layout
from ipxeready.users import services as users
from tests.agents import fakes
from tests.agents.helpers import registry, trail
from tests.nodes import BASE, RealNode

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
EDIT = f"{LIST}node-1/edit/"
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
        f"{LIST}?enabled=true&role=cd&order=disks",
        f"{LIST}?search=192.0.2",
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
    page = client.get(EDIT).content
    assert b"secret-word" not in page
    form = {**FORM, "tags": "storage, stgt, fast", "record_digest": _digest(page)}
    answer = client.post(EDIT, form)
    assert answer.status_code == 302, answer.content.decode()
    assert registry(layout)["node-1"]["token"] == "secret-word"
    assert registry(layout)["node-1"]["tags"] == ["storage", "stgt", "fast"]
    assert "# the big one" in layout.agents_yml.read_text()
    assert trail("agent.update")[0]["changed"] == ["tags"]
    assert trail("agent.update")[0]["user"] == "admin"


def test_another_address_needs_the_token_again(
    login: Callable[[str], Client], layout: Layout
) -> None:
    client = login("administrator")
    moved = {**FORM, "base_url": "http://192.0.2.77:4840"}
    page = client.post(EDIT, moved)
    assert page.status_code == 200
    assert b"give the token" in page.content
    assert layout.agents_yml.read_text() == FILE
    assert client.post(EDIT, {**moved, "token": "new-word"}).status_code == 302
    found = registry(layout)["node-1"]
    assert (found["base_url"], found["token"]) == (moved["base_url"], "new-word")
    # The same place, written otherwise, keeps it.
    other = {**FORM, "base_url": "http://192.0.2.77:4840/"}
    assert client.post(EDIT, other).status_code == 302
    assert registry(layout)["node-1"]["token"] == "new-word"


def test_one_switch_of_the_role_leaves_the_other(
    login: Callable[[str], Client], layout: Layout
) -> None:
    form = {k: v for k, v in FORM.items() if k != "role_cd"}
    assert login("administrator").post(EDIT, form).status_code == 302
    assert registry(layout)["node-1"]["role"] == {"disk": True, "cd": False}


def test_a_field_that_is_not_sent_stays_as_it_is(
    login: Callable[[str], Client], layout: Layout
) -> None:
    form = {k: v for k, v in FORM.items() if k not in ("tags", "iscsi_server")}
    client = login("administrator")
    assert client.post(EDIT, form).status_code == 302
    assert layout.agents_yml.read_text() == FILE
    assert client.post(EDIT, {**form, "tags": ""}).status_code == 302
    assert "storage" not in layout.agents_yml.read_text().split("tags")[1]


def test_a_form_without_changes_writes_nothing(
    login: Callable[[str], Client], layout: Layout
) -> None:
    assert login("administrator").post(EDIT, FORM).status_code == 302
    assert layout.agents_yml.read_text() == FILE
    assert trail("agent.update") == []


def test_a_stale_form_is_refused(
    login: Callable[[str], Client], layout: Layout
) -> None:
    client = login("administrator")
    digest = _digest(client.get(EDIT).content)
    edited = FILE.replace("[storage, stgt]", "[storage]")
    layout.agents_yml.write_text(edited)
    answer = client.post(EDIT, {**FORM, "tags": "x", "record_digest": digest})
    assert answer.status_code == 200
    assert b"has been changed since" in answer.content
    assert layout.agents_yml.read_text() == edited


def test_what_the_service_refuses_is_an_error_of_the_form(
    login: Callable[[str], Client], layout: Layout
) -> None:
    client = login("administrator")
    answer = client.post(f"{LIST}add/", {"base_url": "ftp://x", "token": ""})
    assert answer.status_code == 200
    assert b"ftp://x" in answer.content
    assert b"errorlist" in answer.content
    answer = client.post(EDIT, {**FORM, "tags": "a/b"})
    assert b"errorlist" in answer.content
    assert layout.agents_yml.read_text() == FILE


def test_a_node_is_registered_in_two_steps_and_its_token_stays_here(
    login: Callable[[str], Client], layout: Layout, node: RealNode
) -> None:
    client = login("administrator")
    first = {"base_url": node.base_url, "token": node.token}
    page = client.post(f"{LIST}add/", first, follow=True)
    text = page.content.decode()
    assert "What is at" in text
    assert BASE in text
    assert " free of " in text
    assert 'value="storage files"' in text
    assert '<option value="acl" selected>' in text
    assert "Machines cannot reach 127.0.0.1" in text
    assert "The node would refuse every disk" not in text
    assert node.token not in text
    assert list(registry(layout)) == ["node-1"]
    second = page.redirect_chain[-1][0]
    form = {"id": "Node-2", "role_disk": "on", "tags": "files", "access": "acl"}
    assert b"errorlist" in client.post(second, {**form, "id": "node-1"}).content
    answer = client.post(second, {**form, "iscsi_server": "192.0.2.5"})
    assert answer.status_code == 302, answer.content.decode()
    found = registry(layout)["node-2"]
    assert (found["token"], found["base_url"]) == (node.token, node.base_url)
    assert found["role"] == {"disk": True, "cd": False}
    assert (found["enabled"], found["iscsi_server"]) == (False, "192.0.2.5")
    assert node.token not in layout.operations.read_text()
    # It is done with: the second step is not there any more.
    again = client.post(second, {**form, "id": "node-3"}, follow=True)
    assert "Too long ago" in again.content.decode()
    assert list(registry(layout)) == ["node-1", "node-2"]


def test_the_second_step_is_for_who_did_the_first_only(
    login: Callable[[str], Client], layout: Layout, node: RealNode, administrator: Actor
) -> None:
    first = {"base_url": node.base_url, "token": node.token}
    answer = login("administrator").post(f"{LIST}add/", first)
    users.user_create(
        actor=administrator, username="eve", password=PASSWORD, role="administrator"
    )
    other = Client()
    other.post("/admin/login/", {"username": "eve", "password": PASSWORD})
    page = other.get(answer["Location"], follow=True)
    assert "Too long ago" in page.content.decode()
    (file,) = (layout.run / "probed").iterdir()
    assert file.stat().st_mode & 0o777 == 0o600


def test_a_node_with_another_base_or_none_at_all_is_said_before_it_is_registered(
    login: Callable[[str], Client], nobody: str
) -> None:
    client = login("administrator")
    page = client.post(f"{LIST}add/", {"base_url": nobody, "token": "x"})
    assert page.status_code == 200
    assert b"unreachable" in page.content
    with fakes.node_like({"base_iqn": "iqn.2001-01.org.other"}) as fake:
        page = client.post(f"{LIST}add/", {"base_url": fake.base_url}, follow=True)
    text = page.content.decode()
    assert "Its targets are named iqn.2001-01.org.other:" in text
    assert "It answers without a token" in text


def test_administrators_remove_and_disable(
    login: Callable[[str], Client], layout: Layout
) -> None:
    client = login("administrator")
    switch = f"{LIST}node-1/enabled/"
    answer = client.post(switch, {"enabled": "0", "list": "search=node&order=id"})
    assert answer["Location"] == f"{LIST}?search=node&order=id"
    assert registry(layout)["node-1"]["enabled"] is False
    assert b"disabled" in client.get(LIST).content
    assert client.post(switch, {"enabled": "1"})["Location"].endswith("/change/")
    assert registry(layout)["node-1"]["enabled"] is True
    assert client.get(switch)["Location"] == f"{LIST}node-1/change/"
    for odd in ({}, {"enabled": ""}, {"enabled": "on"}, {"enabled": "0\0"}):
        answer = client.post(switch, odd, follow=True)
        assert b"Enabled: must be true, false, 1 or 0" in answer.content
        assert registry(layout)["node-1"]["enabled"] is True
    assert client.get(f"{LIST}node-1/delete/").status_code == 200
    assert client.post(f"{LIST}node-1/delete/").status_code == 302
    assert registry(layout) == {}


def test_a_node_that_is_used_names_its_workers_and_stays(
    login: Callable[[str], Client], layout: Layout, api: APIClient
) -> None:
    disk = {
        "agent": "node-1",
        "iqn": f"{BASE}:pc-1.debian",
        "filename": "pc-1.debian.img",
        "backing": "/x",
        "os": "debian",
        "source": {"type": "empty", "size": 1},
    }
    layout.workers_yml.write_text(
        json.dumps({"workers": {"pc_1": {"hostname": "pc-1", "disks": [disk]}}})
    )
    client = login("administrator")
    assert "1 disk, 0 CDs, 1 worker" in " ".join(
        client.get(LIST).content.decode().split()
    )
    page = client.get(f"{LIST}node-1/delete/").content.decode()
    assert "while workers have disks or CDs on it" in page
    link = re.search(r'<li><a href="([^"]+)">pc_1</a>', page)
    assert link
    assert client.get(link[1]).status_code == 200
    assert "button danger" not in page
    answer = client.post(f"{LIST}node-1/delete/")
    assert answer.status_code == 409
    assert "pc_1" in answer.content.decode()
    assert list(registry(layout)) == ["node-1"]


@pytest.mark.parametrize("role", ["viewer", "operator"])
def test_others_do_not(
    login: Callable[[str], Client], layout: Layout, role: str
) -> None:
    client = login(role)
    assert client.get(f"{LIST}add/").status_code == 403
    assert client.post(f"{LIST}add/", {"base_url": "http://x"}).status_code == 403
    assert client.post(f"{LIST}node-1/delete/").status_code == 403
    assert client.post(f"{LIST}node-1/enabled/", {"enabled": "0"}).status_code == 403
    assert client.post(EDIT, {**FORM, "tags": "x"}).status_code == 403
    assert layout.agents_yml.read_text() == FILE
    page = client.get(LIST).content.decode()
    assert "/edit/" not in page
    assert "/add/" not in page


def test_the_list_waits_for_nobody_unless_it_is_asked_to(
    login: Callable[[str], Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.together.PATIENCE", 0.5)
    client = login("viewer")
    with fakes.silent() as base_url, fakes.health_like() as well:
        agent_register(actor=SYSTEM, agent_id="hung", base_url=base_url)
        agent_register(actor=SYSTEM, agent_id="well", base_url=well.base_url)
        assert well.requests == []
        page = client.get(LIST).content.decode()
        assert page.count("not asked yet") >= 3
        assert well.requests == []
        began = time.monotonic()
        live = client.get(f"{LIST}?live=1&order=id").content.decode()
        assert time.monotonic() - began < 3
        assert "healthy" in live
        assert "does not answer" in live
        assert "clones share blocks" in live
    # What was learnt is on file from now on.
    page = client.get(f"{LIST}?state=ok").content.decode()
    assert 'id="node-well"' in page
    assert 'id="node-hung"' not in page
    page = client.get(f"{LIST}?state=gone").content.decode()
    assert 'id="node-hung"' in page
    assert "order=id" in live.split('class="source"')[1].split("</nav>")[0]


def test_filters_that_mean_nothing_are_said(login: Callable[[str], Client]) -> None:
    client = login("viewer")
    page = client.get(f"{LIST}?role=nonsense&order=nonsense&p=x&state=nonsense")
    assert page.status_code == 200
    assert b"nonsense" in page.content
    page = client.get(f"{LIST}?search=nothing-like-this").content.decode()
    assert "No node is like that." in page


def test_a_room_of_nodes_is_listed_with_few_queries(
    login: Callable[[str], Client], layout: Layout
) -> None:
    text = FILE.replace("token: secret-word", "token: x")
    layout.agents_yml.write_text(
        "".join(
            [
                "agents:\n",
                *(
                    text.removeprefix("agents:\n").replace("node-1:", f"node-{n}:")
                    for n in range(200)
                ),
            ]
        )
    )
    client = login("administrator")
    client.get(LIST)
    with CaptureQueriesContext(connection) as queries:
        page = client.get(f"{LIST}?p=2").content.decode()
    assert page.count('<section class="card') == 48
    assert "200 nodes" in page
    assert len(queries) < 25
