"""The pages that say who may log in: of a worker, and of a node with all that follow it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import yaml
from django.test import Client
from rest_framework.test import APIClient

from ipxeready.actors import Actor
from ipxeready.storage.paths import Layout
from ipxeready.users.services import user_create
from tests.nodes import BASE, RealNode
from tests.workers.test_access import give, secrets

Make = Callable[..., dict[str, Any]]


@pytest.fixture
def page(layout: Layout, administrator: Actor) -> Client:
    """A browser of an administrator."""
    user_create(
        actor=administrator,
        username="alma",
        password="correct horse",
        role="administrator",
    )
    client = Client()
    form = {"username": "alma", "password": "correct horse"}
    assert client.post("/admin/login/", form).status_code == 302
    return client


@pytest.fixture
def pc(api: APIClient, node: RealNode, worker: Make) -> str:
    """A worker with a disk on a node whose access is acl."""
    node.register("n", access="acl")
    name = node.name()
    worker(name)
    give(api, name)
    return name


def test_a_workers_page_says_what_holds_and_leads_to_the_choice(
    page: Client, pc: str
) -> None:
    text = page.get(f"/admin/workers/worker/{pc}/change/").content.decode()
    assert f"{BASE}:{pc}.debian</code>" in text
    assert "<dt>Access</dt><dd>acl</dd>" in text
    assert f"/admin/workers/worker/{pc}/access/" in text
    page.post("/admin/agents/agent/n/edit/", {**_node(page), "access": "off"})
    text = page.get(f"/admin/workers/worker/{pc}/change/").content.decode()
    assert "acl, should be off: set it again" in text


def _node(page: Client) -> dict[str, str]:
    form = page.get("/admin/agents/agent/n/edit/").context["form"]
    return {
        name: value for name, value in form.initial.items() if isinstance(value, str)
    } | {"role_disk": "on", "enabled": "on"}


def test_the_choice_is_carried_out_and_shows_no_secret(
    page: Client, pc: str, node: RealNode, layout: Layout
) -> None:
    address = f"/admin/workers/worker/{pc}/access/"
    answer = page.post(address, {"access": "chap"}, follow=True)
    assert "The access was set." in answer.content.decode()
    assert node.targets()[f"{BASE}:{pc}.debian"]["access"] == "chap"
    secret = secrets(layout)[pc]["secret"]
    for where in (address, f"/admin/workers/worker/{pc}/change/", "/admin/"):
        assert secret not in page.get(where).content.decode()
    answer = page.post(address, {"access": "", "rotate": "on"})
    assert "no secret to change" in answer.content.decode()
    # What is not sent stays as it is: a new secret, not another access.
    page.post(address, {"rotate": "on"})
    assert node.targets()[f"{BASE}:{pc}.debian"]["access"] == "chap"
    assert secrets(layout)[pc]["secret"] != secret
    page.post(address, {"access": ""})
    assert node.targets()[f"{BASE}:{pc}.debian"]["access"] == "acl"


def test_a_nodes_page_asks_before_it_changes_what_is_there(
    page: Client, pc: str, node: RealNode, layout: Layout
) -> None:
    iqn = f"{BASE}:{pc}.debian"
    assert "set-access" in page.get("/admin/agents/agent/n/change/").content.decode()
    address = "/admin/workers/worker/of-node/n/set-access/"
    text = page.post(address, {"access": "off"}).content.decode()
    assert "These targets get access off:" in text
    assert iqn in text
    assert node.targets()[iqn]["access"] == "acl"
    # What was confirmed is what is done: another choice is asked about again.
    page.post(address, {"access": "chap", "confirmed": "off"})
    assert node.targets()[iqn]["access"] == "acl"
    answer = page.post(address, {"access": "off", "confirmed": "off"}, follow=True)
    assert "1 targets were set, 0 failed." in answer.content.decode()
    assert node.targets()[iqn]["access"] == "off"
    agents = yaml.safe_load(layout.agents_yml.read_text())["agents"]
    assert agents["n"]["access"] == "off"


def test_a_node_that_is_gone_is_said_on_its_page(page: Client, api: APIClient) -> None:
    body = {"id": "dead", "base_url": "http://127.0.0.1:9", "token": "t"}
    assert api.post("/agents", body).status_code == 201
    address = "/admin/workers/worker/of-node/dead/set-access/"
    text = page.post(address, {"access": "off", "confirmed": "off"}).content.decode()
    assert "unreachable" in text
    assert api.get("/agents/dead").json()["access"] == "acl"
    assert page.get(address.replace("dead", "none")).status_code == 404
