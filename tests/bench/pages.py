"""What each page costs a person who is logged in: the lists, the forms, the start page."""

from __future__ import annotations

import http.client
import re
import time
from contextlib import closing
from urllib.parse import urlencode

from ipxeready.storage.paths import Layout
from tests.bench.processes import Server

#: Title and address of what people open; the ones with objects take the second worker, which has a disk or two.
PAGES = {
    "start page": "/admin/",
    "workers": "/admin/workers/worker/",
    "workers, searched": "/admin/workers/worker/?q=worker-0",
    "workers, filtered by state": "/admin/workers/worker/?state=ready",
    "workers without a disk": "/admin/workers/worker/?has_disk=false",
    "workers, last page first": "/admin/workers/worker/?o=-1",
    "a worker": "/admin/workers/worker/worker-02/change/",
    "a new worker": "/admin/workers/worker/add/",
    "a new disk": "/admin/workers/worker/worker-02/disk/add/",
    "deletion of a worker": "/admin/workers/worker/worker-02/delete/",
    "board": "/admin/board/",
    "nodes": "/admin/agents/agent/",
    "a node": "/admin/agents/agent/node-1/change/",
    "images of a node": "/admin/agents/agent/node-1/images/",
    "jobs": "/admin/jobs/",
    "operations": "/admin/audit/operation/",
    "files": "/admin/files/",
    "settings": "/admin/bootvars/setting/",
    "users": "/admin/users/operator/",
}
_TOKEN = re.compile(rb'name="csrfmiddlewaretoken" value="([^"]+)"')


class Visitor:
    """The first administrator, logged in over a kept connection."""

    def __init__(self, server: Server, layout: Layout) -> None:
        self._connection = http.client.HTTPConnection(
            "127.0.0.1", server.port, timeout=120
        )
        self._cookies: dict[str, str] = {}
        _, page = self._ask("GET", "/admin/login/")
        token = _TOKEN.search(page)
        if token is None:
            raise RuntimeError("the login page has no form")
        password = layout.first_login.read_text(encoding="utf-8").strip()
        form = {
            "username": "admin",
            "password": password,
            "csrfmiddlewaretoken": token[1].decode(),
        }
        status, _ = self._ask("POST", "/admin/login/", urlencode(form))
        if status != 302:
            raise RuntimeError(f"the login answers {status}")

    def _ask(
        self, method: str, path: str, body: str | None = None
    ) -> tuple[int, bytes]:
        headers = {
            "Cookie": "; ".join(f"{k}={v}" for k, v in self._cookies.items()),
            "Accept": "text/html",
        }
        if body is not None:
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        self._connection.request(method, path, body, headers)
        answer = self._connection.getresponse()
        content = answer.read()
        for line in answer.headers.get_all("Set-Cookie") or []:
            name, _, rest = line.partition("=")
            self._cookies[name] = rest.partition(";")[0]
        return answer.status, content

    def visit(self, path: str) -> float | None:
        """Seconds until the whole page was there; None where there is no such page."""
        begin = time.perf_counter()
        status, _ = self._ask("GET", path)
        took = time.perf_counter() - begin
        if status == 404:
            return None
        if status != 200:
            raise RuntimeError(f"{path} answers {status}")
        return took

    def close(self) -> None:
        """Hang up."""
        self._connection.close()


def measure(server: Server, layout: Layout, times: int) -> dict[str, list[float]]:
    """Seconds of each visit by title, after one in each process that is not counted."""
    found: dict[str, list[float]] = {}
    with closing(Visitor(server, layout)) as visitor:
        for title, path in PAGES.items():
            for _ in range(4):
                visitor.visit(path)
            took = [visitor.visit(path) for _ in range(times)]
            found[title] = [seconds for seconds in took if seconds is not None]
    return found
