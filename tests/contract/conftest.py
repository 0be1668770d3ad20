"""A site for each row: a control plane of the test's own, a real node, names that nobody has."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import pytest
import requests
from django.test import Client

from ipxeready.storage.paths import Layout
from tests.conftest import TOKEN
from tests.contract.rows import Call, Row
from tests.nodes import BASE, RealNode, node, stgt_node

__all__ = ["node", "stgt_node"]

MASTER = "debian_tpl_contract.img"
ISO = "contract.iso"


class Answer(NamedTuple):
    """What came back."""

    status: int
    kind: str
    text: str

    @property
    def json(self) -> Any:
        """The body; a failure when it is no JSON."""
        assert self.kind.startswith("application/json"), (self.kind, self.text[:300])
        return json.loads(self.text)


#: method, path with query, JSON body or form, headers -> answer
Send = Callable[..., Answer]


@dataclass
class Site:
    """Something that answers, and the values of the names in the table."""

    send: Send
    values: dict[str, str]
    token: str
    undo: list[Call]

    def fill(self, thing: Any) -> Any:
        """The table's texts with this site's values."""
        if isinstance(thing, str):
            for name, value in self.values.items():
                thing = thing.replace("{" + name + "}", value)
            return thing
        if isinstance(thing, dict):
            return {self.fill(key): self.fill(value) for key, value in thing.items()}
        if isinstance(thing, list | tuple):
            return [self.fill(each) for each in thing]
        if hasattr(thing, "shapes"):
            return type(thing)(*self.fill(thing.shapes))
        return thing

    def prepare(self, calls: tuple[Call, ...]) -> None:
        """What must be there first."""
        for method, path, body in calls:
            answer = self.ask(method, path, body)
            assert answer.status < 300, (method, path, answer)

    def ask(self, method: str, path: str, body: Any = None, **more: Any) -> Answer:
        """With the token."""
        headers = {"Authorization": f"Bearer {self.token}", **more.pop("headers", {})}
        return self.send(
            method, self.fill(path), self.fill(body), headers=headers, **more
        )


def _django(
    method: str,
    path: str,
    body: Any = None,
    *,
    headers: dict[str, str],
    form: bool = False,
) -> Answer:
    client = Client(headers=headers)
    given: dict[str, Any] = {}
    if body is not None:
        given = {"data": json.dumps(body), "content_type": "application/json"}
    if form:
        given = {"data": body}
        if method != "POST":
            from django.test.client import BOUNDARY, MULTIPART_CONTENT, encode_multipart

            given = {
                "data": encode_multipart(BOUNDARY, body),
                "content_type": MULTIPART_CONTENT,
            }
    answer = getattr(client, method.lower())(path, **given)
    raw = (
        b"".join(answer.streaming_content)  # type: ignore[attr-defined]
        if answer.streaming
        else answer.content
    )
    return Answer(answer.status_code, answer["Content-Type"], raw.decode())


def _over(node: RealNode) -> Send:
    def send(
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: dict[str, str],
        form: bool = False,
    ) -> Answer:
        given = {"data" if form else "json": body} if body is not None else {}
        answer = requests.request(
            method, node.base_url + path, headers=headers, timeout=30, **given
        )
        return Answer(
            answer.status_code, answer.headers.get("Content-Type", ""), answer.text
        )

    return send


def _values(node: RealNode) -> dict[str, str]:
    for name in (MASTER, ISO):
        if not (node.folder / name).exists():
            node.image(name)
    return {
        "pc": node.name("row"),
        "n": "n",
        "base": BASE,
        "url": node.base_url,
        "token": node.token,
        "nowhere": "http://127.0.0.1:9",
        "folder": str(node.folder),
        "tpl": MASTER,
        "iso": ISO,
    }


@pytest.fixture
def row_node(request: pytest.FixtureRequest, row: Row) -> RealNode:
    """The node that a row needs."""
    found: RealNode = request.getfixturevalue("stgt_node" if row.cds else "node")
    return found


@pytest.fixture
def control(layout: Layout, row_node: RealNode) -> Site:
    """The control plane; nothing is registered yet."""
    folder = layout.public / "boot"
    folder.mkdir()
    (folder / "vmlinuz").write_bytes(b"kernel")
    return Site(_django, _values(row_node), TOKEN, [])


@pytest.fixture
def agent(row_node: RealNode) -> Iterator[Site]:
    """The node itself; what a test makes is taken off again."""
    site = Site(_over(row_node), _values(row_node), row_node.token, [])
    yield site
    for end in (".debian", ".windows.iso"):
        iqn = f"{BASE}:{site.values['pc']}{end}"
        for query in ("&delete_file=true", ""):
            site.ask("DELETE", f"/lun?iqn={iqn}{query}")
