"""What the tests of the workers' pages share: a browser of each role, and where pages are."""

from __future__ import annotations

import html
from typing import Any

from django.contrib.admin.utils import quote
from django.test import Client

from ipxeready.actors import Actor
from ipxeready.users.services import user_create

LIST = "/admin/workers/worker/"
PASSWORD = "correct horse"


def logged_in(administrator: Actor, role: str) -> Client:
    """A browser of somebody with that role."""
    name = f"the-{role}"
    user_create(actor=administrator, username=name, password=PASSWORD, role=role)
    client = Client()
    form = {"username": name, "password": PASSWORD}
    assert client.post("/admin/login/", form).status_code == 302
    return client


def at(worker_id: str, page: str = "change/") -> str:
    """A worker's page."""
    django = page.split("/")[0] in ("change", "delete", "history")
    return f"{LIST}{quote(worker_id) if django else worker_id}/{page}"


def text_of(answer: Any) -> str:
    """What people read of an answer, more or less."""
    return html.unescape(answer.content.decode())
