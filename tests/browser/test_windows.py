"""The windows of these tests themselves: what leads to another page is followed until that page is whole."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.browser.conftest import PageAs
from tests.browser.windows import follow

ROWS = 40


class _Slow(BaseHTTPRequestHandler):
    """A link, and behind it a page that comes in pieces."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(
            b"<!doctype html><link rel=icon href=data:,><a href=/rows>rows</a>"
        )
        if self.path == "/rows":
            for number in range(ROWS):
                self.wfile.write(b"<p>%d</p>" % number)
                self.wfile.flush()
                time.sleep(0.02)

    def log_message(self, *_args: object) -> None:
        pass


@pytest.fixture
def slow() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Slow) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_a_page_that_is_followed_is_read_whole(page_as: PageAs, slow: str) -> None:
    page = page_as(None, js=False)
    page.goto(slow)
    follow(page, page.locator("a"))
    assert page.locator("p").count() == ROWS
