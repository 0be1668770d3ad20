"""A room whose every file and node is hostile, in a real browser: nothing runs, nothing complains, rows stay in use.

That each page shows it as text, and where each link leads, is looked at page by page in
tests/ipxeready/test_hostile_text.py.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from ipxeready.storage.paths import Layout
from tests.browser.chromium import NARROW
from tests.browser.conftest import PageAs
from tests.browser.looking import assert_fits
from tests.browser.product import Product
from tests.hostile import EVIL_FILE, JOB, MARKUP, furnish, hostile_node

PAGES = (
    "/admin/",
    "/admin/?ask",
    "/admin/workers/worker/",
    "/admin/workers/worker/worker_5F22/change/",
    "/admin/workers/worker/worker_5F22/change/?live=1",
    "/admin/workers/worker/worker_22/disk/ubuntu/delete/",
    "/admin/workers/worker/worker_22/disk/add/",
    "/admin/board/",
    "/admin/agents/agent/?live=1",
    "/admin/agents/agent/node_22/change/",
    "/admin/agents/agent/node_22/images/",
    "/admin/agents/agent/node_22/log/",
    "/admin/jobs/",
    f"/admin/jobs/{JOB[:-1]}0/",
    "/admin/audit/operation/",
    "/admin/audit/operation/1000/change/",
    "/admin/audit/operation/1001/change/",
    "/admin/files/",
    "/admin/users/operator/",
    "/admin/bootvars/setting/",
)


@pytest.fixture
def hostile_room(own_room: Product) -> Iterator[Product]:
    """A room of one's own, overwritten by hand with hostile text."""
    with hostile_node() as node:
        furnish(Layout(own_room.root), node.base_url)
        yield own_room


def _open(page: Page, address: str) -> None:
    answer = page.goto(address)
    assert answer is not None
    assert answer.status == 200, address
    assert page.evaluate("document.querySelectorAll('[data-evil]').length") == 0
    page.locator("body").hover()


def test_nothing_runs_and_nothing_is_wider_than_the_window(
    page_as: PageAs, hostile_room: Product
) -> None:
    for width, lang in ((1280, "en"), (NARROW, "zh")):
        page = page_as("administrator", lang, width=width, product=hostile_room)
        opened: list[str] = []
        page.on("dialog", lambda each, opened=opened: opened.append(each.message))
        for address in PAGES:
            _open(page, address)
            assert_fits(page)
        assert opened == []


def test_what_scripts_put_on_pages_is_text_too(
    page_as: PageAs, hostile_room: Product
) -> None:
    page = page_as("administrator", product=hostile_room)
    opened: list[str] = []
    page.on("dialog", lambda each: opened.append(each.message))
    _open(page, "/admin/audit/operation/")
    page.locator("#trail tr[data-id='1000'] a.entry").click()
    dialog = page.locator("dialog#details")
    expect(dialog).to_contain_text(MARKUP)
    expect(dialog).to_contain_text("\\u202eRTL")
    page.keyboard.press("Escape")
    _open(page, "/admin/files/")
    page.locator("#folder tbody a").first.click()
    with page.expect_download() as fetched:
        page.locator("#folder tbody a").nth(1).click()
    assert fetched.value.path().read_bytes() == b"evil"
    expect(page.locator("h1")).to_contain_text(EVIL_FILE.split("\u202e")[0])
    assert page.evaluate("document.querySelectorAll('[data-evil]').length") == 0
    assert opened == []
