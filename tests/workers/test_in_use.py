"""Before a forced deletion everybody says whom it cuts off; afterwards the answer and the audit do."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.test import Client
from rest_framework.test import APIClient

from ipxeready.actors import Actor
from ipxeready.storage.paths import Layout
from ipxeready.users import services as users
from tests.agents import fakes
from tests.agents.node import node_lab
from tests.nodes import BASE, RealNode
from tests.shell import run
from tests.workers.helpers import refusal, trail

PASSWORD = "correct horse battery"
Make = Callable[..., dict[str, Any]]
pytestmark = pytest.mark.tgtd


@pytest.fixture
def pc(api: APIClient, layout: Layout, stgt_node: RealNode, worker: Make) -> str:
    """A worker with a disk."""
    stgt_node.register("s", role={"disk": True, "cd": True})
    name = stgt_node.name()
    worker(name)
    body = {"type": "empty", "os": "debian", "size": "1M"}
    assert api.post(f"/workers/{name}/luns/disk", body).status_code == 201
    return name


@pytest.fixture
def connected(stgt_node: RealNode, pc: str) -> Iterator[str]:
    """That worker's machine is up: its initiator."""
    assert stgt_node.tgtd
    with node_lab.session(stgt_node.tgtd, f"{BASE}:{pc}.debian"):
        yield f"{BASE}:{pc}"


@pytest.fixture
def browser(layout: Layout, administrator: Actor) -> Client:
    users.user_create(
        actor=administrator, username="op", password=PASSWORD, role="operator"
    )
    client = Client()
    client.post("/admin/login/", {"username": "op", "password": PASSWORD})
    return client


@pytest.mark.case(72)
@pytest.mark.parametrize("page", ["disk/debian/delete/", "delete/"])
def test_a_page_says_first_whom_it_would_cut_off(
    browser: Client, pc: str, connected: str, page: str
) -> None:
    url = f"/admin/workers/worker/{pc}/{page}"
    text = html.unescape(browser.get(url).content.decode())
    assert "cut off at once if you tick it below" in text
    assert f"{connected} (127.0.0.1), 20" in text
    refused = html.unescape(browser.post(url, {"submit": "x"}).content.decode())
    assert "is in use by" in refused
    assert browser.post(url, {"force": "on"}).status_code == 302


@pytest.mark.case(72)
def test_a_page_of_a_disk_that_nobody_uses_says_nothing_of_it(
    browser: Client, pc: str
) -> None:
    url = f"/admin/workers/worker/{pc}/delete/"
    assert "cut off at once" not in browser.get(url).content.decode()


@pytest.mark.case(72)
def test_a_command_says_first_whom_it_would_cut_off(pc: str, connected: str) -> None:
    ended = run("delete_workers", pc, "--dry-run")
    assert f"IN USE by {connected} (127.0.0.1), 20" in ended.out
    (entry,) = run("delete_workers", pc, "--dry-run", "--json").json["would_delete"]
    (session,) = entry["disks"][0]["sessions"]
    assert (session["initiator"], session["address"]) == (connected, "127.0.0.1")
    ended = run("delete_workers", pc, "--yes", "--json")
    assert f"{connected} (127.0.0.1), 20" in ended.json["failed"][0]["error"]
    ended = run("delete_workers", pc, "--yes", "--force", "--json")
    assert ended.json["succeeded"][0]["closed"][0]["initiator"] == connected


@pytest.mark.case(72)
@pytest.mark.parametrize("path", ["/workers/{}", "/workers/{}/luns/disk/debian"])
def test_an_answer_and_the_audit_name_who_was_cut_off(
    api: APIClient, layout: Layout, pc: str, connected: str, path: str
) -> None:
    status, words = refusal(api, "delete", path.format(pc))
    assert (status, f"{connected} (127.0.0.1), 20" in words) == (409, True), words
    answer = api.delete(path.format(pc) + "?force=true")
    assert answer.status_code == 200, answer.content
    assert answer.json()["closed"][0]["initiator"] == connected
    line = trail(layout, "worker.disk.delete")[-1]
    assert line["closed"][0]["initiator"] == connected


@pytest.mark.case(72)
def test_a_target_of_a_node_names_who_was_cut_off(
    api: APIClient, layout: Layout, pc: str, connected: str
) -> None:
    answer = api.delete(f"/agents/s/luns?iqn={BASE}:{pc}.debian&force=true")
    assert answer.json()["closed"][0]["initiator"] == connected
    assert trail(layout, "lun.delete")[-1]["closed"][0]["initiator"] == connected


@pytest.mark.usefixtures("impatient")
@pytest.mark.case(83)
def test_a_node_that_hangs_does_not_keep_the_page_away(
    layout: Layout, browser: Client, pc: str
) -> None:
    with fakes.silent() as base_url:
        from agents.services import agent_update
        from ipxeready.actors import SYSTEM

        agent_update(actor=SYSTEM, agent_id="s", base_url=base_url, token="t")
        text = browser.get(f"/admin/workers/worker/{pc}/delete/").content.decode()
    assert "dhcp-hosts.conf" in text
