"""Fixtures of all tests: a root of one's own, callers of each role."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from rest_framework.test import APIClient

from ipxeready import conf, startup
from ipxeready.actors import ADMINISTRATOR, OPERATOR, VIEWER, Actor
from ipxeready.index import freshness
from ipxeready.jobs.runner import runner
from ipxeready.storage.paths import Layout
from ipxeready.web.authentication import TokenUser
from workers.dnsmasq import Reloading

TOKEN = "token-of-the-tests"


@pytest.fixture(scope="session")
def django_db_setup() -> None:
    """No test database: each test has an index of its own, built from its own files."""


@pytest.fixture
def layout(tmp_path: Path, settings: Any, django_db_blocker: Any) -> Iterator[Layout]:
    """A prepared IPXE_ROOT with an index of its own; the settings point to it."""
    root = tmp_path / "root"
    config = conf.load(
        {
            "IPXE_ROOT": str(root),
            "IPXE_CP_TOKEN": TOKEN,
            "IPXE_CP_DNSMASQ_RELOAD": "none",
        }
    )
    layout = Layout(root)
    startup.prepare(config, layout)
    settings.IPXE = config
    settings.IPXE_LAYOUT = layout
    known = connections.databases["default"]["NAME"]
    connections.databases["default"]["NAME"] = str(tmp_path / "index.sqlite3")
    connections["default"].settings_dict["NAME"] = str(tmp_path / "index.sqlite3")
    freshness.forget()
    with django_db_blocker.unblock():
        freshness.ensure_fresh(wait=True)
        yield layout
        # Their threads use this index.
        assert runner().idle(60), "a job of this test does not end"
        assert Reloading.idle(60), "a reload of this test does not end"
        connections["default"].close()
    connections.databases["default"]["NAME"] = known
    connections["default"].settings_dict["NAME"] = known
    freshness.forget()


@pytest.fixture
def api(layout: Layout) -> APIClient:
    """A client with the bearer token; it speaks JSON."""
    client = APIClient(HTTP_AUTHORIZATION=f"Bearer {TOKEN}")
    client.default_format = "json"
    return client


@pytest.fixture
def stranger(layout: Layout) -> APIClient:
    """A client without credentials."""
    client = APIClient()
    client.default_format = "json"
    return client


@pytest.fixture
def administrator() -> Actor:
    """May do everything."""
    return Actor("alice", ADMINISTRATOR, "192.0.2.1")


@pytest.fixture
def operator() -> Actor:
    """May change workers and disks."""
    return Actor("oscar", OPERATOR, "192.0.2.2")


@pytest.fixture
def viewer() -> Actor:
    """May look."""
    return Actor("victor", VIEWER, "192.0.2.3")


def _client(role: str) -> APIClient:
    client = APIClient()
    client.default_format = "json"
    client.force_authenticate(TokenUser(username=role, role=role))
    return client


@pytest.fixture
def as_operator(layout: Layout) -> APIClient:
    """A client of an operator."""
    return _client(OPERATOR)


@pytest.fixture
def as_viewer(layout: Layout) -> APIClient:
    """A client of a viewer."""
    return _client(VIEWER)


@pytest.fixture
def impatient(layout: Layout, settings: Any) -> None:
    """One second for a quick call to a node."""
    settings.IPXE = dataclasses.replace(settings.IPXE, agent_timeout=1.0)
