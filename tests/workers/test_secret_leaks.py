"""Nothing that is answered, shown, written down or indexed carries a worker's secret."""

from __future__ import annotations

import logging
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver
from rest_framework.test import APIClient

from bootvars import notes
from ipxeready.actors import Actor
from ipxeready.storage.paths import Layout
from ipxeready.users.services import user_create
from tests.conftest import TOKEN
from tests.nodes import RealNode
from tests.shell import run
from tests.workers.test_access import give, secrets

Make = Callable[..., dict[str, Any]]
#: Where a secret may be.
ITS_PLACES = ("config/chap-secrets.yml", "state/backup/chap-secrets.yml")


def addresses(patterns: Any, before: str = "") -> Iterator[str]:
    """Every address of the control plane, with its parameters as `<name>`."""
    for each in patterns:
        text = before + _plain(str(each.pattern))
        if isinstance(each, URLResolver):
            yield from addresses(each.url_patterns, text)
        elif isinstance(each, URLPattern):
            yield text


def _plain(pattern: str) -> str:
    text = re.sub(r"\(\?P<(\w+)>[^)]*\)", r"<\1>", pattern)
    text = re.sub(r"<\w+:(\w+)>", r"<\1>", text)
    return text.lstrip("^").removesuffix(r"\Z").replace("/?", "")


@pytest.fixture
def site(
    api: APIClient,
    node: RealNode,
    worker: Make,
    layout: Layout,
    administrator: Actor,
) -> tuple[str, set[str]]:
    """A worker whose secret was made, changed, refused and sent; all secrets that there ever were."""
    notes.forget()
    node.register("n", access="chap")
    name = node.name()
    worker(name)
    give(api, name)
    known = {secrets(layout)[name]["secret"]}
    assert api.put(f"/workers/{name}/access", {"rotate": True}).status_code == 200
    known.add(secrets(layout)[name]["secret"])
    # A hand edit, a file that does not parse and one whose record is wrong; a node that refuses.
    good = layout.chap_secrets_yml.read_text()
    for text in (
        good + "# by hand\n",
        good + "  x: {\n",
        good.replace("secret", "sec"),
    ):
        layout.chap_secrets_yml.write_text(text)
        api.put(f"/workers/{name}/access", {"access": "chap"})
        api.get("/healthz?verbose=1")
    layout.chap_secrets_yml.write_text(good)
    assert api.put(f"/workers/{name}/access", {"access": "chap"}).status_code == 200
    user_create(
        actor=administrator,
        username="ada",
        password="correct horse",
        role="administrator",
    )
    return name, known


@pytest.mark.case(96)
def test_no_address_shows_a_secret(
    site: tuple[str, set[str]], layout: Layout, caplog: pytest.LogCaptureFixture
) -> None:
    name, known = site
    caplog.set_level(logging.DEBUG)
    client = Client(headers={"Authorization": f"Bearer {TOKEN}"})
    person = Client()
    person.post("/admin/login/", {"username": "ada", "password": "correct horse"})
    values = {
        "worker_id": name,
        "agent_id": "n",
        "object_id": name,
        "os": "debian",
        "path": "../config/chap-secrets.yml",
    }
    seen = 0
    for address in sorted(set(addresses(get_resolver().url_patterns))):
        path = "/" + re.sub(
            r"<(\w+)>", lambda found: values.get(found[1], "1"), address
        )
        if "logout" in path or "\\" in path:
            continue
        for query in (
            "",
            "?verbose=1",
            f"?hostname={name}",
            "?live=true",
            "?format=json",
        ):
            for browser in (client, person):
                answer = browser.get(path + query)
                body = (
                    b"".join(answer.streaming_content)  # type: ignore[attr-defined]
                    if answer.streaming
                    else answer.content
                )
                seen += answer.status_code == 200
                _clean(body.decode("utf-8", "replace"), known, path + query)
    assert seen > 60
    _clean(caplog.text, known, "log")


def test_no_file_but_its_own_has_a_secret(
    site: tuple[str, set[str]], layout: Layout, node: RealNode
) -> None:
    _, known = site
    for path in layout.root.rglob("*"):
        if not path.is_file():
            continue
        place = str(path.relative_to(layout.root))
        if place.startswith(ITS_PLACES):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, place
            continue
        _clean(path.read_bytes().decode("utf-8", "replace"), known, place)
    index = Path(str(connections["default"].settings_dict["NAME"]))
    for path in index.parent.glob(f"{index.name}*"):
        _clean(path.read_bytes().decode("latin-1"), known, path.name)
    for path in node.folder.parent.rglob("*"):
        if path.is_file() and path.name != ".chap.json":
            _clean(path.read_bytes().decode("latin-1"), known, str(path))


def test_no_command_shows_a_secret(site: tuple[str, set[str]]) -> None:
    name, known = site
    for words in (
        ("list_workers", "--json"),
        ("agents", "list", "--live", "--json"),
        ("checkstate", "--json"),
        ("reindex", "--verify", "--json"),
        ("access", "chap", "--worker", name, "--json"),
        ("access", "chap", "--node", "n", "--json"),
    ):
        ended = run(*words)
        _clean(ended.out + ended.err, known, " ".join(words))


def _clean(text: str, known: set[str], where: str) -> None:
    assert not [secret for secret in known if secret in text], where
