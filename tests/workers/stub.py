"""A storage node that can be told to misbehave: die, hang, hold sessions, answer nonsense."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.agents.fakes import CAPABILITIES, Fake, http_server


class Stub:
    """Its table, and what it does on a POST or DELETE instead of doing it."""

    def __init__(self) -> None:
        self.targets: dict[str, list[dict[str, str]]] = {}
        #: Called before a change; may raise (the connection is closed without an answer) or wait.
        self.before: Callable[[str], None] | None = None
        #: The same behind the change, before the answer.
        self.after: Callable[[str], None] | None = None
        #: Answers GET /lun without an answer.
        self.mute = False
        self.nonsense = False
        #: The answer to a change of access; None: the connection is closed without one.
        self.access: tuple[int, Any] | None = (200, {})
        #: The same, made when it is asked.
        self.set_access: Callable[[], tuple[int, Any]] | None = None
        self.release = threading.Event()
        self.fake: Fake

    def register(self, agent_id: str = "stub") -> None:
        """Make it known to the control plane of this test."""
        from agents.services import agent_register
        from ipxeready.actors import SYSTEM

        agent_register(
            actor=SYSTEM, agent_id=agent_id, base_url=self.fake.base_url, token="t"
        )

    def asked(self, method: str) -> list[str]:
        """Paths of the requests with that method."""
        return [path for verb, path, _ in self.fake.requests if verb == method]

    def answer(self, method: str, path: str) -> tuple[int, dict[str, str], bytes]:
        """The answer of http_server."""
        parts = urlsplit(path)
        query = {key: value[0] for key, value in parse_qs(parts.query).items()}
        status, body = self._answer(method, parts.path, query)
        raw = b"<html>" if self.nonsense else json.dumps(body).encode()
        return status, {"Content-Type": "application/json"}, raw

    def _answer(self, method: str, path: str, query: dict[str, str]) -> tuple[int, Any]:
        if method == "GET":
            if path == "/lun":
                if self.mute:
                    raise ConnectionAbortedError
                return 200, [self._target(iqn) for iqn in self.targets]
            if path == "/capabilities":
                return 200, CAPABILITIES
            if path == "/masters":
                return 200, {"masters": []}
            return 200, {"status": "ok"}
        if path == "/lun/access":
            if self.set_access is not None:
                return self.set_access()
            if self.access is None:
                raise ConnectionAbortedError
            return self.access
        if self.before:
            self.before(method)
        if method == "DELETE":
            iqn = query["iqn"]
            if iqn not in self.targets:
                return 404, {"detail": "no such target"}
            if self.targets[iqn] and query.get("force") != "true":
                return 409, {"detail": "in use"}
            del self.targets[iqn]
            body: Any = {"deleted": iqn, "delete_file": False}
        else:
            iqn = self.next_iqn
            self.targets[iqn] = []
            body = {"iqn": iqn, "backing": "/images/x.img"}
        if self.after:
            self.after(method)
        return (200 if method == "DELETE" else 201), body

    next_iqn = ""

    def _target(self, iqn: str) -> dict[str, Any]:
        lun = {"lun": 1, "backing": "/images/x.img", "size": 512, "type": "disk"}
        return {"iqn": iqn, "tid": 1, "luns": [lun], "sessions": self.targets[iqn]}


def die(method: str) -> None:
    """The node's process ends here."""
    raise ConnectionAbortedError


@contextlib.contextmanager
def stub_node() -> Iterator[Stub]:
    """A stub for the length of a block."""
    stub = Stub()
    with http_server(stub.answer) as fake:
        stub.fake = fake
        try:
            yield stub
        finally:
            stub.release.set()
