"""Names that are paths are refused by the control plane itself: no node is asked, nothing is reserved."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import quote

import pytest
from rest_framework.test import APIClient

from ipxeready.storage.paths import Layout
from tests.nodes import BASE
from tests.workers.helpers import snapshot
from tests.workers.stub import Stub, stub_node

MAC = "52:54:00:00:00:01"
EVIL = [
    "../../etc/passwd",
    "/etc/passwd",
    "",
    ".",
    "..",
    "a/../b.img",
    "%2e%2e%2f",
    "%2e%2e%2fx_tpl_.img",
    "a\0.img",
    "..\\x_tpl_.img",
    ".hidden_tpl_.img",
    "a,b_tpl_.img",
    "../x_tpl_.img",
    "sub/x_tpl_.img",
]


@pytest.fixture
def stub(layout: Layout) -> Iterator[Stub]:
    with stub_node() as found:
        found.register("s")
        yield found


@pytest.fixture
def site(api: APIClient, stub: Stub) -> APIClient:
    """A worker and a node that must not be asked for a change."""
    role = {"role": {"disk": True, "cd": True}}
    assert api.put("/agents/s", role).status_code == 200
    assert api.post("/workers", {"worker_id": "pc1", "mac": MAC}).status_code == 201
    return api


@pytest.mark.case(94)
@pytest.mark.parametrize("name", EVIL)
def test_a_path_is_no_name_anywhere(
    site: APIClient, layout: Layout, stub: Stub, name: str
) -> None:
    before = snapshot(layout)
    disk = {"os": "debian", "disk_agent": "s", "name": name}
    batch = {"type": "master", "os": "debian", "name": name}
    targets = {"targets": [{"worker_id": "pc1", "agent": "s"}]}
    iqn = f"{BASE}:{name}"
    good = f"{BASE}:pc9.debian"
    asked = [
        site.post("/workers/pc1/luns/disk", {**disk, "type": "master"}),
        site.post("/workers/luns/disk/batch", {**batch, **targets}),
        site.post("/workers/pc1/luns/cd", {"iso": name, "agent": "s"}),
        site.post("/agents/s/luns/disk", {"iqn": good, "master": name}),
        site.post("/agents/s/luns/disk", {"iqn": iqn, "size": "1M"}),
        site.post("/agents/s/luns/cd", {"iso": name}),
        site.delete(f"/agents/s/luns?iqn={quote(iqn)}&delete_file=true"),
    ]
    if name:  # without a name: the image of its own name
        existing = site.post("/workers/pc1/luns/disk", {**disk, "type": "existing"})
        asked.append(existing)
    for answer in asked:
        assert answer.status_code == 400, (answer.request["PATH_INFO"], answer.content)
    assert stub.asked("POST") == stub.asked("DELETE") == []
    assert snapshot(layout) == before


@pytest.mark.case(94)
@pytest.mark.parametrize("name", EVIL)
def test_a_path_is_no_filename(site: APIClient, stub: Stub, name: str) -> None:
    """The file's name follows from the target's, and the node compares them; a path does not get that far."""
    body = {"iqn": f"{BASE}:pc9.debian", "size": "1M", "filename": name}
    answer = site.post("/agents/s/luns/disk", body)
    assert answer.status_code == 400, answer.content
    assert stub.asked("POST") == []
