"""Debian's Chromium, in which the pages are tried and pictured; nothing that it asks for leaves this machine."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from urllib.parse import urlsplit

from playwright.sync_api import Browser, Route, sync_playwright

CHROMIUM = "/usr/bin/chromium"
SWITCHES = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
)
LANGUAGES = {"en": "en-GB", "zh": "zh-CN"}
#: What pages call them.
CODES = {"en": "en", "zh": "zh-hans"}
WIDE, NARROW = 1280, 390
HEIGHT = 760


@contextlib.contextmanager
def launched() -> Iterator[Browser]:
    """A browser for the length of a block."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=list(SWITCHES)
        )
        try:
            yield browser
        finally:
            browser.close()


def only_here(route: Route) -> None:
    """Let a request go to the loopback, and no other."""
    if urlsplit(route.request.url).hostname == "127.0.0.1":
        route.continue_()
    else:
        route.abort()
