"""Fixtures of the boot tests: what a machine asks, and switches of the site."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client
from rest_framework.test import APIClient

from bootvars import notes
from ipxeready.actors import OPERATOR, VIEWER
from ipxeready.storage.paths import Layout
from ipxeready.web.authentication import TokenUser

Ask = Callable[[str], str]


@pytest.fixture(autouse=True)
def _nothing_noted_yet() -> None:
    notes.forget()


@pytest.fixture
def boot(layout: Layout) -> Ask:
    """The script for a query; every answer is checked to be one that firmware can take."""
    client = Client()

    def ask(query: str) -> str:
        return well_formed(client.get(f"/boot-vars?{query}"))

    return ask


@pytest.fixture
def configured(layout: Layout, settings: Any) -> Callable[..., None]:
    """Change the configuration of this test's site."""

    def change(**values: Any) -> None:
        settings.IPXE = dataclasses.replace(settings.IPXE, **values)

    return change


@pytest.fixture
def as_viewer(layout: Layout) -> APIClient:
    """A client of a viewer."""
    return _client(VIEWER)


@pytest.fixture
def as_operator(layout: Layout) -> APIClient:
    """A client of an operator."""
    return _client(OPERATOR)


def _client(role: str) -> APIClient:
    client = APIClient()
    client.default_format = "json"
    client.force_authenticate(TokenUser(username=role, role=role))
    return client


def well_formed(answer: HttpResponse) -> str:
    """The script, or a failure: what iPXE must be able to read under any condition."""
    body = answer.content
    assert answer.status_code == 200
    assert answer["Content-Type"] == "text/plain"
    assert answer["Content-Length"] == str(len(body))
    assert body.startswith(b"#!ipxe\n")
    assert body.endswith(b"\n")
    assert body.isascii()
    text = body.decode("ascii")
    assert text.isprintable() or all(c.isprintable() or c == "\n" for c in text)
    for line in text.splitlines()[1:]:
        first, _, rest = line.partition(" ")
        assert first in ("#", "set", "echo"), line
        assert not set(rest) & set("${};&|`\\\"'<>*?~"), line
        if first == "set":
            assert len(line.split(" ")) == 3, line
    return text
