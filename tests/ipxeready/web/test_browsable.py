"""Every endpoint of the API is a page for browsers and described by /schema."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import requests
from django.urls import URLPattern, URLResolver, get_resolver
from rest_framework.test import APIClient
from rest_framework.views import APIView

from ipxeready.jobs.selectors import store
from ipxeready.storage.paths import Layout
from tests.nodes import BASE, RealNode, node

__all__ = ["node"]

#: Values for the names in paths; the records below exist, jobs and uploads where `filled` makes them.
VALUES = {
    "worker_id": "pc1",
    "os": "debian",
    "agent_id": "n",
    "path": "boot",
    "job_id": "0123456789abcdef",
    "upload_id": "0123456789abcdef",
    "token_id": "a0123456789b",
}


def _views(
    patterns: list[Any] | None = None, prefix: str = ""
) -> Iterator[tuple[str, type[APIView]]]:
    """Each view of the API with its path, `<name>` for its variables."""
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        text = prefix + str(pattern.pattern).lstrip("^")
        if isinstance(pattern, URLResolver):
            yield from _views(pattern.url_patterns, text)
        elif isinstance(pattern, URLPattern):
            view = getattr(pattern.callback, "cls", None)
            if view is not None and issubclass(view, APIView):
                path = re.sub(r"\(\?P<(\w+)>[^)]*\)", r"<\1>", text)
                yield "/" + path.replace(r"/?\Z", "").replace("\\", ""), view


ALL = sorted(dict(_views()).items())
PATHS = [path for path, _ in ALL if not path.startswith(("/api/cp/", "/admin"))]


def _filled(path: str, **values: str) -> str:
    known = {**VALUES, **values}
    return re.sub(r"<(\w+)>", lambda found: known[found[1]], path)


@pytest.fixture
def site(api: APIClient, layout: Layout, node: RealNode) -> APIClient:
    """A site with a worker, a node and a folder."""
    node.register("n")
    (layout.public / "boot").mkdir()
    body = {"worker_id": "pc1", "mac": "52:54:00:00:00:01"}
    assert api.post("/workers", body).status_code == 201
    return api


@pytest.fixture
def filled(site: APIClient, node: RealNode) -> Callable[[str], str]:
    """A path with the ids of what is there; a job or an upload is made for a path that names one."""

    def fill(path: str) -> str:
        if "<upload_id>" in path:
            body = {"name": f"{node.name()}.img", "size": 512}
            made = site.post("/agents/n/uploads", body)
            return _filled(path, upload_id=made.json()["id"])
        if "<job_id>" in path and path.startswith("/agents"):
            master = node.image(f"{node.name()}_tpl_1.img")
            made = requests.post(
                f"{node.base_url}/lun/disk",
                json={"iqn": f"{BASE}:{node.name()}.debian", "master": master.name},
                headers={
                    "Authorization": f"Bearer {node.token}",
                    "Prefer": "respond-async",
                },
                timeout=10,
            )
            return _filled(path, job_id=made.json()["id"])
        if "<job_id>" in path:
            with store().new("lun.scan", by="alice") as running:
                running.finish({"created": [], "skipped": []})
            return _filled(path, job_id=running.job.id)
        return _filled(path)

    return fill


def test_the_endpoints_are_found() -> None:
    assert "/workers/<worker_id>/luns/cd" in PATHS
    assert "/agents/<agent_id>/luns/scan" in PATHS
    assert "/schema" in PATHS
    assert len(PATHS) >= 22
    for path in PATHS:
        if path != "/schema":
            assert f"/api/cp{path}" in dict(ALL)


@pytest.mark.parametrize("path", PATHS)
def test_a_browser_gets_a_page_and_everyone_else_json(
    site: APIClient, filled: Callable[[str], str], path: str
) -> None:
    view = dict(ALL)[path]
    address = filled(path)
    answer = site.get(address)
    page = site.get(address, HTTP_ACCEPT="text/html,application/xhtml+xml,*/*")
    assert "json" in answer["Content-Type"]
    assert page["Content-Type"].startswith("text/html"), page.content[:200]
    assert page.status_code == answer.status_code
    assert answer.status_code == (200 if hasattr(view, "get") else 405)
    text = page.content.decode()
    assert "</html>" in text
    for method in ("post", "put"):
        if hasattr(view, method) and getattr(view, "serializer_class", None):
            fields: Any = view.serializer_class().fields  # type: ignore[attr-defined]
            inputs = [name for name in fields if f'name="{name}"' in text]
            assert inputs, f"no form for {method}"


@pytest.mark.parametrize("path", PATHS)
def test_bodies_have_a_serializer(path: str) -> None:
    """What takes a body has a form on its page; a scan takes none."""
    view: Any = dict(ALL)[path]
    takes = hasattr(view, "post") or hasattr(view, "put")
    if takes and not path.endswith("/scan"):
        assert getattr(view, "serializer_class", None) is not None


@pytest.mark.parametrize("path", PATHS)
def test_strangers_get_401_whatever_they_ask_for(
    stranger: APIClient, path: str
) -> None:
    for accept in ("application/json", "text/html"):
        for method in ("get", "post", "put", "delete"):
            view = dict(ALL)[path]
            if hasattr(view, method):
                answer = getattr(stranger, method)(_filled(path), HTTP_ACCEPT=accept)
                assert answer.status_code == 401, (method, accept)


def test_forms_reach_lists_and_nested_fields(site: APIClient) -> None:
    """What a form writes as `targets[0]agent` is the same as in JSON."""
    form = {
        "type": "empty",
        "os": "debian",
        "size": "1M",
        "targets[0]worker_id": "nobody",
        "targets[0]agent": "n",
    }
    answer = site.post("/workers/luns/disk/batch", form, format="multipart")
    assert answer.status_code == 200, answer.content
    assert answer.json()["failed"][0]["worker_id"] == "nobody"
    form = {"worker_ids": ["nobody", "none"]}
    answer = site.post("/workers/delete/batch", form, format="multipart")
    assert len(answer.json()["failed"]) == 2
    form = {"worker_ids": "nobody", "workers[0]": "x"}
    answer = site.post("/workers/delete/batch", form, format="multipart")
    assert answer.status_code == 400


ODD: list[Any] = [
    [],
    "x",
    5,
    None,
    True,
    {"": 1},
    {"x" * 5000: {}},
    [[[{}]]],
    {"targets": [None, 5, "x", []], "type": {}, "os": [], "size": {}},
    {"targets": {"worker_id": 1}, "worker_ids": {"a": 1}},
    {"worker_ids": [None, {}, []], "delete_disk": []},
    {"worker_id": "\ud800", "mac": "\0", "iso": "\ud800.iso", "id": "\0"},
    {"role": [], "tags": {}, "enabled": {}, "base_url": 5, "token": []},
    {"iqn": "\0", "iso": [], "size": 10**400, "menu_timeout": 10**400, "os": None},
]


@pytest.mark.parametrize("path", PATHS)
def test_a_body_of_another_shape_is_refused(
    site: APIClient, filled: Callable[[str], str], path: str
) -> None:
    view = dict(ALL)[path]
    address = filled(path)
    for method in ("post", "put"):
        for body in ODD:
            if not hasattr(view, method) or (path.endswith("/scan") and not body):
                continue
            answer = getattr(site, method)(
                address, json.dumps(body), content_type="application/json"
            )
            assert 400 <= answer.status_code < 500, (body, answer.content)
            assert list(answer.json()) == ["detail"]
        for text in (b"{", b"\xff", b"[1,", b'{"a": NaN}', b"[" * 100_000):
            if hasattr(view, method):
                answer = getattr(site, method)(
                    address, text, content_type="application/json"
                )
                assert answer.status_code == 400, (text, answer.content)


def test_the_schema_tells_each_operation(api: APIClient, stranger: APIClient) -> None:
    answer = api.get("/schema")
    assert answer.status_code == 200
    schema = answer.json()
    assert schema["openapi"].startswith("3.")
    for path in PATHS:
        if path == "/schema":
            continue
        described = schema["paths"][path.replace("<", "{").replace(">", "}")]
        view = dict(ALL)[path]
        for method in ("get", "post", "put", "delete"):
            assert (method in described) == hasattr(view, method), (path, method)
            if method in described:
                assert {"400", "401", "403"} <= set(described[method]["responses"])
    for open_path in ("/boot-vars", "/file/{path}", "/healthz"):
        assert schema["paths"][open_path]["get"]["security"] == [{}]
    names = [
        operation["operationId"]
        for operations in schema["paths"].values()
        for operation in operations.values()
    ]
    assert len(names) == len(set(names))
    assert stranger.get("/schema").status_code == 401
    yaml = api.get("/schema", HTTP_ACCEPT="application/yaml")
    assert yaml["Content-Type"].startswith("application/yaml")
    assert api.get("/api/schema").status_code == 404


def test_the_schema_is_made_without_a_warning() -> None:
    from drf_spectacular.drainage import GENERATOR_STATS
    from drf_spectacular.generators import SchemaGenerator

    GENERATOR_STATS.reset()
    SchemaGenerator().get_schema(request=None, public=True)
    assert not GENERATOR_STATS._warn_cache
    assert not GENERATOR_STATS._error_cache
