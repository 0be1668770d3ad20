"""One node's page: its targets worked on directly, its jobs, its log; and nodes that say odd things."""

from __future__ import annotations

import html
import json
import re
import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import pytest
from django.test import Client
from rest_framework.test import APIClient

from agents.services import agent_register
from ipxeready.actors import SYSTEM, Actor
from ipxeready.storage.paths import Layout
from ipxeready.users import services as users
from tests.agents import fakes
from tests.agents.helpers import trail
from tests.agents.node import node_lab
from tests.agents.test_node_jobs import Agent, copy, slow
from tests.nodes import BASE, RealNode
from tests.processes import eventually

__all__ = ["slow"]
PASSWORD = "correct horse battery"
ROOT = "/admin/agents/agent/n/"
PAGE = f"{ROOT}change/"
#: What must never come out as it went in.
MARKUP = "<b onclick='x'>\"&amp;</b>\u202e\x07\ud800"


@pytest.fixture
def as_role(layout: Layout, administrator: Actor) -> Callable[[str], Client]:
    """Log in as a person of that role."""

    def enter(role: str) -> Client:
        users.user_create(
            actor=administrator, username=role[:5], password=PASSWORD, role=role
        )
        client = Client()
        form = {"username": role[:5], "password": PASSWORD}
        assert client.post("/admin/login/", form).status_code == 302
        return client

    return enter


@pytest.fixture
def op(as_role: Callable[[str], Client]) -> Client:
    """An operator."""
    return as_role("operator")


def _text(client: Client, path: str = PAGE) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, (path, answer.status_code)
    return html.unescape(" ".join(answer.content.decode().split()))


def _row(text: str, iqn: str) -> str:
    (row,) = [row for row in text.split("<tr>") if f"<code>{iqn}</code>" in row]
    return row


def test_a_disk_is_made_empty_or_from_a_master_and_is_nobodys(
    op: Client, node: RealNode
) -> None:
    node.register("n")
    master = node.image(f"{node.name()}_tpl_1.img")
    form = _text(op, f"{ROOT}luns/disk/add/")
    assert f'<option value="{master.name}">' in form
    cloud = node.image(f"{node.name()}_tpl_2.img", content=b"QFI\xfb")
    form = _text(op, f"{ROOT}luns/disk/add/")
    assert (
        f'<option value="{cloud.name}" disabled>{cloud.name}: {cloud.name} is qcow2'
        in form
    )
    empty, clone = node.name(), node.name()
    answer = op.post(
        f"{ROOT}luns/disk/add/",
        {"name": f"{empty}.debian", "source": "empty", "size": "2M", "master": ""},
    )
    assert answer["Location"] == PAGE
    answer = op.post(
        f"{ROOT}luns/disk/add/",
        {"name": f"{BASE}:{clone}.debian", "source": "master", "master": master.name},
        follow=True,
    )
    text = html.unescape(answer.content.decode())
    assert f"The disk {BASE}:{clone}.debian is there." in text
    row = _row(_text(op), f"{BASE}:{empty}.debian")
    assert "2 MiB" in row
    assert "nobody" in row
    assert "acl" in row
    assert {f"{BASE}:{empty}.debian", f"{BASE}:{clone}.debian"} <= set(node.targets())
    made = [line for line in trail("lun.create_disk") if line["agent"] == "n"]
    assert [line["user"] for line in made] == ["opera", "opera"]


def test_a_disk_that_cannot_be_is_refused_beside_its_field(
    op: Client, node: RealNode
) -> None:
    node.register("n")
    name = node.name()
    for form, field, words in (
        ({"name": "A,b.debian", "source": "empty", "size": "2M"}, "name", "A,b"),
        ({"name": f"{name}.debian", "source": "empty", "size": "x"}, "size", "x"),
        ({"name": f"{name}.debian", "source": "empty"}, "size", "how large"),
        ({"name": f"{name}.debian", "source": "master"}, "master", "Choose a master"),
        (
            {"name": f"{name}.debian", "source": "master", "master": "no_tpl_1.img"},
            "master",
            "no_tpl_1.img",
        ),
    ):
        text = op.post(f"{ROOT}luns/disk/add/", form).content.decode()
        part = text.split(f"field-{field}")[1]
        assert "errorlist" in part.split('class="field')[0], (form, part[:600])
        assert words in part
    assert not [iqn for iqn in node.targets() if name in iqn]


def test_what_the_backend_cannot_is_greyed_with_the_reason(
    op: Client, node: RealNode
) -> None:
    node.register("n")
    text = _text(op)
    assert re.search(r"<button[^>]* disabled[^>]*>New CD</button>", text)
    assert "Its target system files has no CD drives." in text
    assert "has no CD drives" in _text(op, f"{ROOT}luns/cd/add/")
    from agents.services import agent_update

    agent_update(actor=SYSTEM, agent_id="n", enabled=False)
    text = _text(op)
    assert re.search(r"<button[^>]* disabled[^>]*>New disk</button>", text)
    assert "The node is disabled." in text


@pytest.mark.tgtd
def test_a_cd_comes_from_the_nodes_isos_and_its_iso_stays(
    op: Client, stgt_node: RealNode
) -> None:
    stgt_node.register("n", role={"disk": True, "cd": True})
    iso = stgt_node.image(f"{stgt_node.name()}.iso", 4096)
    assert f'<option value="{iso.name}">' in _text(op, f"{ROOT}luns/cd/add/")
    name = stgt_node.name()
    form = {"iso": iso.name, "name": f"{name}.windows.iso"}
    assert op.post(f"{ROOT}luns/cd/add/", form)["Location"] == PAGE
    iqn = f"{BASE}:{name}.windows.iso"
    assert "CD 4 KiB" in _row(_text(op), iqn)
    question = f"{ROOT}luns/delete/?iqn={quote(iqn)}"
    text = _text(op, question)
    assert f"the ISO {iso}" in text
    assert "delete_file" not in text
    assert op.post(question)["Location"] == PAGE
    assert iqn not in stgt_node.targets()
    assert iso.exists()


@pytest.mark.tgtd
def test_a_deletion_says_whom_it_cuts_off_and_waits_for_the_word(
    op: Client, stgt_node: RealNode
) -> None:
    stgt_node.register("n")
    assert stgt_node.tgtd
    name = f"{stgt_node.name()}.debian"
    iqn = f"{BASE}:{name}"
    form = {"name": name, "source": "empty", "size": "1M"}
    assert op.post(f"{ROOT}luns/disk/add/", form)["Location"] == PAGE
    question = f"{ROOT}luns/delete/?iqn={quote(iqn)}"
    with node_lab.session(stgt_node.tgtd, iqn):
        initiator = iqn.removesuffix(".debian")
        until = time.monotonic() + 15
        while "since 20" not in (row := _row(_text(op), iqn)):
            assert time.monotonic() < until, row
        assert f"<code>{initiator}</code>" in row
        text = _text(op, question)
        assert "This cuts off:" in text
        assert f"{initiator} at 127.0.0.1, since 20" in text
        refused = op.post(question, {"delete_file": "on"})
        assert refused.status_code == 409
        assert initiator in refused.content.decode()
        assert iqn in stgt_node.targets()
        done = op.post(question, {"delete_file": "on", "force": "on"}, follow=True)
    assert "and its image were deleted" in done.content.decode()
    assert iqn not in stgt_node.targets()
    assert not (stgt_node.folder / f"{name}.img").exists()


def test_a_deletion_keeps_the_image_unless_it_is_ticked(
    op: Client, node: RealNode
) -> None:
    node.register("n")
    name = node.name()
    iqn = f"{BASE}:{name}.debian"
    form = {"name": f"{name}.debian", "source": "empty", "size": "1M"}
    op.post(f"{ROOT}luns/disk/add/", form)
    question = f"{ROOT}luns/delete/?iqn={quote(iqn)}"
    assert f"{name}.debian.img, only if you tick it below" in _text(op, question)
    assert op.post(question)["Location"] == PAGE
    assert iqn not in node.targets()
    assert (node.folder / f"{name}.debian.img").exists()
    again = op.get(question)
    assert again.status_code == 404
    assert f"no target {iqn} any more" in again.content.decode()


def test_a_workers_disk_leads_to_the_worker(
    op: Client, api: APIClient, node: RealNode
) -> None:
    node.register("n")
    name = node.name()
    body = {"worker_id": name, "mac": "52:54:00:00:00:01"}
    assert api.post("/workers", body).status_code == 201
    disk = {"type": "empty", "os": "debian", "size": "1M"}
    assert api.post(f"/workers/{name}/luns/disk", disk).status_code == 201
    iqn = f"{BASE}:{name}.debian"
    row = _row(_text(op), iqn)
    assert f">{name}</a>" in row
    assert "luns/delete" not in row
    for action in ("delete", "access"):
        path = f"{ROOT}luns/{action}/?iqn={quote(iqn)}"
        text = _text(op, path)
        assert "is the disk or CD of a worker" in text
        assert f"/admin/workers/worker/{name}/change/" in text
        assert op.post(path, {"access": "off", "delete_file": "on"}).status_code == 200
    assert node.targets()[iqn]["access"] == "acl"
    answer = api.post("/agents/n/luns/access", {"iqn": iqn, "access": "off"})
    assert answer.status_code == 409


def test_access_to_a_target_of_nobodys_is_set(op: Client, node: RealNode) -> None:
    node.register("n")
    name = node.name()
    iqn = f"{BASE}:{name}.debian"
    form = {"name": f"{name}.debian", "source": "empty", "size": "1M"}
    op.post(f"{ROOT}luns/disk/add/", form)
    path = f"{ROOT}luns/access/?iqn={quote(iqn)}"
    text = _text(op, path)
    assert 'value="chap"' not in text
    assert re.search(r'value="acl"[^>]* checked', text)
    assert op.post(path, {"access": "chap"}).status_code == 200
    assert op.post(path, {"access": "off"})["Location"] == PAGE
    assert node.targets()[iqn]["access"] == "off"
    (line,) = trail("lun.access.set")
    assert (line["iqn"], line["access"], line["user"]) == (iqn, "off", "opera")


def test_a_scan_says_what_it_made_and_what_it_left_alone_and_why(
    op: Client, node: RealNode
) -> None:
    node.register("n")
    name = node.name()
    node.image(f"{name}.debian.img")
    master = node.image(f"{node.name()}_tpl_1.img")
    assert "Masters are never exported" in _text(op, f"{ROOT}scan/")
    answer = op.post(f"{ROOT}scan/", follow=True)
    text = html.unescape(answer.content.decode())
    assert answer.redirect_chain[0][0].startswith("/admin/jobs/")
    until = time.monotonic() + 20
    while "Created" not in text:
        assert time.monotonic() < until, text
        text = html.unescape(op.get(answer.redirect_chain[0][0]).content.decode())
    assert f"{BASE}:{name}.debian" in text
    assert f"{master.name}, a master; masters are cloned, never exported" in text


def test_a_copy_under_way_is_seen_and_cancelled(op: Client, slow: Agent) -> None:
    job_id = copy(slow)
    page = "/admin/agents/agent/slow/change/"
    eventually(lambda: " of 64 MiB" in _text(op, page))
    text = _text(op, page)
    assert 'data-refresh="2"' in text
    assert "is running" in text
    cancel = f"/admin/agents/agent/slow/jobs/{job_id}/cancel/"
    assert cancel in text
    assert "Cancel the job" in _text(op, cancel)
    assert op.post(cancel)["Location"] == page
    _text(op, page)  # the message of the request
    eventually(lambda: "<td>cancelled" in _text(op, page))
    assert 'data-refresh="2"' not in _text(op, page)
    again = op.post(cancel, follow=True).content.decode()
    assert "cancelled" in again


def test_the_nodes_own_log_is_read_from_its_end(op: Client, node: RealNode) -> None:
    node.register("n")
    names = [node.name() for _ in range(3)]
    for name in names:
        form = {"name": f"{name}.debian", "source": "empty", "size": "1M"}
        op.post(f"{ROOT}luns/disk/add/", form)
    _text(op)  # what was said of them
    text = _text(op, f"{ROOT}log/")
    places = [text.index(f"{name}.debian") for name in names]
    assert places == sorted(places, reverse=True)
    assert "lun.create_disk" in text
    first = op.get(f"{ROOT}log/").context["entries"][0]["id"]
    older = _text(op, f"{ROOT}log/?before={first}")
    assert f"{names[-1]}.debian" not in older
    assert f"{names[0]}.debian" in older
    assert "There is nothing older." in _text(op, f"{ROOT}log/?before=1")
    assert op.get(f"{ROOT}log/?before=nonsense").status_code == 200


def test_a_log_longer_than_a_page_leads_to_what_is_older(
    op: Client, node: RealNode, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents.pages.log.PAGE", 1)
    node.register("n")
    form = {"name": f"{node.name()}.debian", "source": "empty", "size": "1M"}
    op.post(f"{ROOT}luns/disk/add/", form)
    link = re.search(r'href="(\?before=\d+)" rel="next"', _text(op, f"{ROOT}log/"))
    assert link
    assert op.get(f"{ROOT}log/{link[1]}").context["entries"]


def test_viewers_look_and_change_nothing(
    as_role: Callable[[str], Client], node: RealNode
) -> None:
    node.register("n")
    name = node.name()
    viewer = as_role("viewer")
    iqn = f"{BASE}:{name}.debian"
    text = _text(viewer)
    assert "Targets" in text
    assert "/luns/" not in text
    assert "/edit/" not in text
    _text(viewer, f"{ROOT}log/")
    for path in (
        "luns/disk/add/",
        "luns/cd/add/",
        f"luns/delete/?iqn={iqn}",
        f"luns/access/?iqn={iqn}",
        "scan/",
        "jobs/x/cancel/",
    ):
        assert viewer.get(ROOT + path).status_code == 403, path
        assert viewer.post(ROOT + path).status_code == 403, path


def test_a_node_that_is_gone_is_said_on_every_page(op: Client, nobody: str) -> None:
    agent_register(actor=SYSTEM, agent_id="n", base_url=nobody)
    text = _text(op)
    assert "does not answer" in text
    assert "Its targets are not known" in text
    assert "not known yet" in text
    for path in ("luns/disk/add/", "luns/cd/add/", "log/", "images/"):
        assert "unreachable" in _text(op, ROOT + path), path
    assert "unreachable" in _text(op, f"{ROOT}luns/delete/?iqn={BASE}:x.debian")
    answer = op.post(f"{ROOT}scan/", follow=True)
    assert answer.status_code == 200


@pytest.fixture
def odd(layout: Layout) -> Iterator[fakes.Fake]:
    """A node that writes whatever it likes wherever it may, registered as `n`."""
    job = {
        "id": "20260101-000000-00000000",
        "kind": MARKUP,
        "state": "running",
        "done": 1,
        "total": 3,
        "unit": "bytes",
        "about": {"iqn": MARKUP},
    }
    bodies: dict[str, Any] = {
        "/healthz": {"status": "ok"},
        "/capabilities": {
            **fakes.CAPABILITIES,
            "cd": True,
            "backend": MARKUP,
            "base_iqn": MARKUP,
        },
        "/health": {
            "backend": {"name": MARKUP, "alive": True, "ours": False},
            "room": {"free": -5, "total": 1 << 80, "reserve": True, "promised": "x"},
            "fs": {"type": MARKUP, "reflink": "x", "mount": MARKUP},
            "targets": {"foreign": 2},
            "images": {"disks": MARKUP},
            "problems": [MARKUP, {"a": 1}],
        },
        "/lun": [
            {
                "iqn": f"{BASE}:{MARKUP}",
                "luns": [
                    {"lun": MARKUP, "backing": MARKUP, "size": MARKUP, "type": MARKUP},
                    5,
                ],
                "sessions": [
                    {"initiator": MARKUP, "address": MARKUP, "since": MARKUP},
                    {"since": "0001-01-01T00:00:00+14:00"},
                    "x",
                ],
                "access": MARKUP,
                "initiators": [MARKUP, 5],
            }
        ],
        "/jobs": {"jobs": [job]},
        "/masters": {
            "masters": [
                {"name": MARKUP, "size": 1},
                {"name": f"{MARKUP}_tpl_1.img", "size": 1},
                {"name": "", "size": 1},
            ]
        },
        "/images": {
            "images": [
                {
                    "name": f"{MARKUP}.iso",
                    "kind": "iso",
                    "size": -1,
                    "allocated": 0,
                    "mtime": MARKUP,
                    "problem": MARKUP,
                },
                {
                    "name": f"{MARKUP}.qcow2",
                    "kind": MARKUP,
                    "size": 1 << 80,
                    "allocated": 1,
                    "mtime": "9999-12-31T23:59:59-14:00",
                    "target": MARKUP,
                },
            ],
            "formats": ["qcow2"],
        },
        "/uploads": {
            "uploads": [{"id": "ab", "name": MARKUP, "offset": 1, "size": None}]
        },
        "/logs": {
            "next_cursor": MARKUP,
            "entries": [
                {"id": MARKUP, "ts": MARKUP, "op": MARKUP, "status": MARKUP},
                {"ts": [MARKUP], MARKUP: {MARKUP: [MARKUP]}},
            ],
        },
    }

    def answer(method: str, path: str) -> tuple[int, dict[str, str], bytes]:
        body = bodies.get(path.partition("?")[0], {"detail": MARKUP})
        status = 404 if "detail" in body else 200
        kind = {"Content-Type": "application/json"}
        return status, kind, json.dumps(body).encode()

    with fakes.http_server(answer) as fake:
        agent_register(
            actor=SYSTEM,
            agent_id="n",
            base_url=fake.base_url,
            role={"disk": True, "cd": True},
        )
        yield fake


def test_whatever_a_node_writes_is_text_and_the_buttons_of_its_rows_work(
    as_role: Callable[[str], Client], odd: fakes.Fake
) -> None:
    client = as_role("administrator")
    paths = [PAGE, f"{ROOT}log/", f"{ROOT}images/", f"{ROOT}luns/disk/add/"]
    paths += [f"{ROOT}luns/cd/add/", "/admin/agents/agent/?live=1", "/admin/"]
    pages = {}
    for path in paths:
        answer = client.get(path)
        assert answer.status_code == 200, path
        pages[path] = answer.content.decode()
        assert "onclick='x'" not in pages[path], path
        for hidden in ("\u202e", "\x07"):
            assert hidden not in pages[path], path
    assert "\\u202e\\u0007\\ud800" in pages[PAGE]
    links = re.findall(
        r'href="([^"]*/(?:luns/delete|luns/access)/\?iqn=[^"]+)"', pages[PAGE]
    )
    links += re.findall(r'href="([^"]*/images/delete/\?name=[^"]+)"', pages[paths[2]])
    links += re.findall(r'href="([^"]*/jobs/[^"]+/cancel/)"', pages[PAGE])
    assert len(links) == 4
    for link in links:
        address = html.unescape(link)
        # A half of a pair of characters is no text that an address can hold.
        answer = client.get(address)
        assert answer.status_code in (200, 404), address
        assert client.post(address).status_code in (200, 302, 400, 404, 409), address
        assert "onclick='x'" not in answer.content.decode()


def test_the_button_of_an_odd_name_reaches_its_own_target(
    as_role: Callable[[str], Client], layout: Layout
) -> None:
    """Quotes, markup, percent signs, plus, ampersands and what turns the direction of writing, there and back again."""
    iqn = f'{BASE}:a+b%20&c="d"\'<e>\u202e#f?.debian'
    target = {"iqn": iqn, "luns": [], "sessions": [], "access": "acl"}
    raw = json.dumps([target]).encode()
    with fakes.http_server(
        lambda *_: (200, {"Content-Type": "application/json"}, raw)
    ) as fake:
        agent_register(actor=SYSTEM, agent_id="n", base_url=fake.base_url)
        client = as_role("operator")
        page = client.get(PAGE).content.decode()
        (link,) = re.findall(r'href="([^"]*/luns/delete/\?iqn=[^"]+)"', page)
        answer = client.get(html.unescape(link))
    assert answer.status_code == 200
    assert "a+b%20&amp;c=&quot;d&quot;&#x27;&lt;e&gt;\\u202e#f?.debian" in (
        answer.content.decode()
    )
