"""Whatever a file, a node or a machine says stands as text on every page, and what belongs to it can still be opened and pressed."""

from __future__ import annotations

import html
import re
from collections import deque
from collections.abc import Callable, Iterator
from urllib.parse import parse_qs, urljoin, urlsplit

import pytest
from django.test import Client
from django.urls import Resolver404, resolve

from agents.models import Agent
from ipxeready import index
from ipxeready.actors import Actor
from ipxeready.storage.paths import Layout
from ipxeready.users import services as users
from tests.agents.fakes import Fake
from tests.hostile import EVIL_FILE, Seen, furnish, hostile_node
from workers.models import Worker

PASSWORD = "correct horse battery"
#: Pages that nothing leads to while all is well, and live views.
STARTS = (
    "/admin/",
    "/admin/agents/agent/?live=1",
    "/admin/agents/agent/?live=true",
    "/admin/workers/worker/?q=%3Cb%20data-evil%3E%E2%80%AE",
    "/admin/audit/operation/?search=%3Cb%20data-evil%3E%22&op=%3Cb%20data-evil%3E&from_time=%3Cb%20data-evil%3E",
    "/admin/audit/operation/1001/change/",
    "/admin/jobs/?state=%3Cb%20data-evil%3E",
)
#: Never opened: they end the session, or are no pages.
_NOT = re.compile(r"/admin/(logout|jsi18n|login)/|/export/|/file/")
#: Addresses of one shape that are opened.
_EACH = 6
_MOST = 500


@pytest.fixture
def node() -> Iterator[Fake]:
    """The node whose every word is hostile."""
    with hostile_node() as fake:
        yield fake


@pytest.fixture
def client(layout: Layout, node: Fake, administrator: Actor) -> Client:
    """An administrator over the hostile room."""
    users.user_create(
        actor=administrator,
        username="alice",
        password=PASSWORD,
        role="administrator",
    )
    furnish(layout, node.base_url)
    index.ensure_fresh(wait=True)
    # Otherwise there is little on the pages to look at.
    assert Worker.objects.filter(pk="worker_22").exists()
    assert Agent.objects.filter(pk="node_22").exists()
    client = Client(HTTP_ACCEPT="text/html")
    client.post("/admin/login/", {"username": "alice", "password": PASSWORD})
    return client


def _shape(address: str) -> str:
    """The page's kind: its route and the names of its parameters."""
    parts = urlsplit(address)
    names = sorted(parse_qs(parts.query, keep_blank_values=True))
    try:
        route = resolve(parts.path).route
    except Resolver404:
        route = parts.path
    return f"{route}?{','.join(names)}"


def test_every_page_shows_it_as_text_and_every_link_leads_somewhere(
    client: Client,
) -> None:
    waiting = deque((address, "the start") for address in STARTS)
    known = set(STARTS)
    opened: dict[str, int] = {}
    wrong: list[str] = []
    told = 0
    while waiting and sum(opened.values()) < _MOST:
        address, origin = waiting.popleft()
        shape = _shape(address)
        if opened.get(shape, 0) >= _EACH:
            continue
        opened[shape] = opened.get(shape, 0) + 1
        answer = client.get(address, follow=True, RAW_URI=address)
        if answer.status_code != 200:
            wrong.append(f"{address} (from {origin}): {answer.status_code}")
            continue
        if "html" not in answer["Content-Type"]:
            continue
        page = answer.content.decode()
        told += "&lt;script&gt;" in page
        seen = Seen(page)
        wrong += [f"{address}: {fault}" for fault in seen.faults]
        here = answer.redirect_chain[-1][0] if answer.redirect_chain else address
        for method, action in seen.actions:
            target = urljoin(here, action)
            try:
                resolve(urlsplit(target).path)
            except Resolver404:
                wrong.append(f"{address}: a form ({method}) leads to {action}")
        for link in seen.links:
            target = urljoin(here, link).partition("#")[0]
            if (
                target.startswith("/admin/")
                and not _NOT.search(target)
                and target not in known
            ):
                known.add(target)
                waiting.append((target, address))
    assert wrong == [], "\n".join(wrong)
    assert told > 20
    assert sum(opened.values()) > 60


@pytest.fixture
def rows(client: Client) -> Callable[[str, str], list[str]]:
    """`rows(page, words)`: the links of a page whose address has these words in it."""

    def found(address: str, words: str) -> list[str]:
        page = client.get(address)
        assert page.status_code == 200, address
        links = Seen(page.content.decode()).links
        return [urljoin(address, link) for link in links if words in link]

    return found


def _asked(node: Fake, method: str) -> list[dict[str, list[str]]]:
    """The queries of what the node was asked by this method."""
    return [
        parse_qs(urlsplit(path).query, keep_blank_values=True)
        for verb, path, _ in node.requests
        if verb == method
    ]


def _press(client: Client, address: str, **more: str) -> None:
    """Send the form of a page as it stands."""
    page = client.get(address).content.decode()
    forms = re.findall(r'<form[^>]*method="post".*?</form>', page, re.DOTALL)
    form = next(
        each for each in forms if "logout" not in each and "setlang" not in each
    )
    data = dict(more)
    for field in re.findall(r"<input[^>]*>", form):
        given = dict(re.findall(r'([a-z]+)="([^"]*)"', field))
        if "name" in given and given.get("type") not in ("checkbox", "file"):
            data.setdefault(given["name"], html.unescape(given.get("value", "")))
    action = re.search(r'<form[^>]*action="([^"]*)"', form)
    target = urljoin(address, html.unescape(action[1])) if action else address
    answer = client.post(target, data)
    assert answer.status_code in (200, 302), answer.content[:500]


def test_an_image_with_a_hostile_name_is_deleted_by_its_button(
    client: Client, node: Fake, rows: Callable[[str, str], list[str]]
) -> None:
    links = rows("/admin/agents/agent/node_22/images/", "/images/delete/")
    assert links
    for link in dict.fromkeys(links):
        _press(client, link, master="on")
    names = {query["name"][0] for query in _asked(node, "DELETE")}
    assert names == {
        f"{stem}.{kind}"
        for stem in (f"{EVIL_FILE}?#%&+ ;", f"other {EVIL_FILE}")
        for kind in ("disk", "master", "iso", "source", "other", "odd")
    }


def test_a_target_with_a_hostile_name_has_a_button_that_asks_for_just_that_one(
    client: Client, node: Fake, rows: Callable[[str, str], list[str]]
) -> None:
    links = rows("/admin/agents/agent/node_22/change/", "/luns/delete/")
    assert len(links) == len(set(links)) == 2
    for link in links:
        page = client.get(link)
        assert page.status_code == 200
        # A node of ours has no such names; what refuses them says so, as text.
        answer = client.post(link, {"force": "on"})
        assert answer.status_code == 400
        assert Seen(answer.content.decode()).faults == []


def test_ids_that_look_like_djangos_quoting_lead_to_their_pages(
    rows: Callable[[str, str], list[str]],
) -> None:
    for page in (
        "/admin/workers/worker/",
        "/admin/audit/operation/?worker_id=worker_22",
    ):
        assert any("_5F22/change" in link for link in rows(page, "_5F22")), page
