"""The pages in a real browser: a room that is served, and windows in which people of each role look at it.

A window (`page_as`) notes what its pages complain of (scripts, the content security policy, requests that fail,
addresses elsewhere) and fails the test for it at the end; `page.allowed` takes words of complaints that are meant.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser import chromium
from tests.browser.pictures import JUDGED
from tests.browser.product import PASSWORD, PEOPLE, Product
from tests.browser.windows import PATIENCE, Window

HERE = Path(__file__).parent
Register = Callable[..., str]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """All tests of this folder drive the browser."""
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    # Playwright keeps an event loop in this thread, at which Django would take tests
    # that run after these for asynchronous code.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    # As patient as a window's clicks are: a machine that has other work answers late.
    expect.set_options(timeout=PATIENCE)
    with chromium.launched() as found:
        yield found


@pytest.fixture(scope="session")
def room(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Product]:
    """The whole product with a filled room, shared by the tests of this process.

    Look at what is there, change what you made (`room.worker()` makes one).
    """
    product = Product(tmp_path_factory.mktemp("room"))
    try:
        product.start()
        product.furnish()
        yield product
    finally:
        product.end()


@pytest.fixture
def own_room(tmp_path: Path) -> Iterator[Product]:
    """The same for one test alone: to break files, to switch settings, to take nodes down."""
    product = Product(tmp_path)
    try:
        product.start()
        product.furnish()
        yield product
    finally:
        product.end()


@pytest.fixture
def register(room: Product) -> Iterator[Register]:
    """Registers a node with the room for one test."""
    names: list[str] = []

    def make(stem: str, base_url: str, **fields: Any) -> str:
        name = f"{stem}-{os.getpid()}-{len(names)}"
        room.call("POST", "/agents", {"id": name, "base_url": base_url, **fields})
        names.append(name)
        return name

    yield make
    for name in names:
        with contextlib.suppress(OSError):  # the test may have deleted it
            room.call("DELETE", f"/agents/{name}")


class PageAs(Protocol):
    """Opens a window."""

    def __call__(
        self,
        role: str | None,
        lang: str = "en",
        *,
        js: bool = True,
        width: int = chromium.WIDE,
        dark: bool = False,
        product: Product | None = None,
    ) -> Page: ...


@pytest.fixture
def page_as(request: pytest.FixtureRequest, browser: Browser) -> Iterator[PageAs]:
    """`page_as("operator", "zh", js=False)`: a window of somebody with that role (None: nobody), in that language.

    Addresses are relative: `page.goto("/admin/")`. `product` is the room, unless it is another one.
    """
    windows: list[Window] = []

    def open_window(
        role: str | None,
        lang: str = "en",
        *,
        js: bool = True,
        width: int = chromium.WIDE,
        dark: bool = False,
        product: Product | None = None,
    ) -> Page:
        place = product or request.getfixturevalue("room")
        window = Window(browser, place, lang=lang, js=js, width=width, dark=dark)
        windows.append(window)
        if role is not None:
            window.log_in(PEOPLE[role], PASSWORD)
        return window.page

    yield open_window
    faults = []
    for window in windows:
        faults += window.faults()
        window.close()
    assert faults == []


@pytest.fixture
def every_look() -> list[dict[str, Any]]:
    """Ways to look at a page in which each language, width and theme meets each other one."""
    return [
        {"lang": look.lang, "width": look.width, "dark": look.dark} for look in JUDGED
    ]
