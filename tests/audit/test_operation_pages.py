"""The pages of the audit: everybody reads, nobody changes."""

from __future__ import annotations

import pytest
from django.test import Client

from audit.services import record
from ipxeready.actors import Actor
from ipxeready.storage.paths import Layout
from ipxeready.users import services as users

PASSWORD = "correct horse battery"
LIST = "/admin/audit/operation/"


@pytest.fixture(params=["viewer", "administrator"])
def client(
    request: pytest.FixtureRequest, layout: Layout, administrator: Actor
) -> Client:
    """Somebody who is logged in; the last line of the trail is the operation that counts here."""
    users.user_create(
        actor=administrator, username="someone", password=PASSWORD, role=request.param
    )
    record(
        actor=administrator,
        op="lun.delete",
        worker_id="w1",
        agent="node-1",
        error="<b>bold</b>",
        status="failed",
    )
    record(actor=administrator, op="lun.scan", agent="node-2")
    client = Client()
    client.post("/admin/login/", {"username": "someone", "password": PASSWORD})
    return client


def _rows(page: bytes) -> int:
    return page.count(b"<tr data-id=")


@pytest.mark.parametrize(
    ("query", "rows"),
    [
        ("", 4),
        ("?q=node-1", 1),
        ("?q=bold", 1),
        ("?op=lun.scan", 1),
        ("?status=failed", 1),
        ("?q=nothing-such", 0),
    ],
)
def test_the_list_filters_and_searches(client: Client, query: str, rows: int) -> None:
    page = client.get(LIST + query)
    assert page.status_code == 200
    assert _rows(page.content) == rows
    assert b"<b>bold</b>" not in page.content


def test_the_page_of_a_line_shows_all_of_it_escaped(client: Client) -> None:
    page = client.get(f"{LIST}2/change/")
    assert page.status_code == 200
    assert b"lun.delete" in page.content
    assert b"&lt;b&gt;bold&lt;/b&gt;" in page.content
    assert b"<b>bold</b>" not in page.content
    assert b'name="_save"' not in page.content
    assert client.get(f"{LIST}2/history/").status_code == 200


def test_nobody_changes_anything(client: Client, layout: Layout) -> None:
    before = layout.operations.read_bytes()
    assert client.get(f"{LIST}add/").status_code == 403
    assert client.post(f"{LIST}add/", {"op": "x"}).status_code == 403
    assert client.post(f"{LIST}2/change/", {"op": "x"}).status_code == 405
    assert client.post(f"{LIST}2/delete/", {"post": "yes"}).status_code == 403
    client.post(
        LIST, {"action": "delete_selected", "_selected_action": "2", "post": "yes"}
    )
    assert layout.operations.read_bytes() == before


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("from_time=yesterday", "from_time"),
        ("to_time=0000-00-00", "to_time"),
        ("period=ever", "period"),
        ("search=" + "x" * 201, "search"),
        ("op=a%00b", "op"),
    ],
)
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_a_filter_that_is_wrong_is_no_export_of_everything(
    client: Client, form: str, query: str, field: str
) -> None:
    answer = client.get(f"{LIST}export/?format={form}&{query}")
    assert answer.status_code == 400
    assert field in answer.json()["detail"]
    page = client.get(f"{LIST}export/?{query}", HTTP_ACCEPT="text/html")
    assert f"{field}: " in page.content.decode()


def test_strangers_are_led_to_the_login(layout: Layout) -> None:
    assert Client().get(LIST).status_code == 302
