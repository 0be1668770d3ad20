"""The API through a browser's session: roles, and forms that another site cannot send."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from ipxeready.actors import Actor
from ipxeready.storage.paths import Layout
from ipxeready.users import services
from tests.workers.helpers import M1, ledger

PASSWORD = "correct horse battery"


@pytest.fixture(autouse=True)
def people(layout: Layout, administrator: Actor) -> None:
    for name, role in (("oscar", "operator"), ("victor", "viewer")):
        services.user_create(
            actor=administrator, username=name, password=PASSWORD, role=role
        )


def login(name: str) -> tuple[Client, dict[str, Any]]:
    client = Client(enforce_csrf_checks=True)
    client.get("/admin/login/")
    token = client.cookies["csrftoken"].value
    body = {"username": name, "password": PASSWORD, "csrfmiddlewaretoken": token}
    assert client.post("/admin/login/", body).status_code == 302
    return client, {"HTTP_X_CSRFTOKEN": client.cookies["csrftoken"].value}


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("post", "/workers", {"worker_id": "a", "mac": M1}),
        ("put", "/workers/a/mac", {"mac": M1}),
        ("put", "/workers/a/default-os", {"menu_timeout": 1}),
        ("delete", "/workers/a", None),
        (
            "post",
            "/workers/a/luns/disk",
            {"type": "empty", "os": "ubuntu", "size": 512},
        ),
        ("delete", "/workers/a/luns/disk/ubuntu", None),
        ("put", "/settings/auto-register", {"enabled": True}),
    ],
)
def test_a_viewer_looks_only(
    layout: Layout, method: str, path: str, body: dict[str, Any] | None
) -> None:
    client, token = login("victor")
    assert client.get("/workers").json() == []
    call = getattr(client, method)
    more = {"content_type": "application/json"} if body else {}
    answer = call(path, body, **more, **token)
    assert answer.status_code == 403
    assert "role operator" in answer.json()["detail"]
    assert ledger(layout) == {}


def test_an_operator_writes_and_is_named_in_the_audit(layout: Layout) -> None:
    client, token = login("oscar")
    body = {"worker_id": "a", "mac": M1}
    refused = client.post("/workers", body, content_type="application/json")
    assert refused.status_code == 403
    assert "CSRF" in refused.json()["detail"]
    form = {**body, "csrfmiddlewaretoken": token["HTTP_X_CSRFTOKEN"]}
    assert client.post("/workers", form).status_code == 201
    assert '"user": "oscar"' in layout.operations.read_text().replace(':"', ': "')
