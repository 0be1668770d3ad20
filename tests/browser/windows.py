"""A window of the browser with somebody logged in, and what its pages complained of."""

from __future__ import annotations

import re
import urllib.parse
import urllib.request
from http.cookiejar import CookieJar

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Request

from tests.browser import chromium
from tests.browser.product import Product
from tests.processes import eventually

_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')

#: Milliseconds for which a page is waited for.
PATIENCE = 15_000
#: Milliseconds without a request after which none is to come; scripts ask 150 ms after the last change.
QUIET = 500


def follow(page: Page, leads: Locator) -> None:
    """Press what leads to another page, and come back when that page is whole.

    A click alone comes back as soon as the page begins to come. `expect` waits for what it names, but what is read at
    once (`count`, `all`, `content`, `evaluate`) is then read from a part of the page.
    """
    with page.expect_navigation():
        leads.click()


def settle(page: Page) -> None:
    """Come back when the page has asked for nothing for a while: what its scripts are told moves what is on it."""
    quiet = 0

    def still() -> bool:
        nonlocal quiet
        page.wait_for_timeout(QUIET / 2)
        quiet = 0 if page.pending else quiet + 1
        return quiet == 2

    eventually(still, PATIENCE / 1000)


class Window:
    """One context of its own: cookies, language, theme, width, with or without scripts."""

    def __init__(
        self,
        browser: Browser,
        product: Product,
        *,
        lang: str = "en",
        js: bool = True,
        width: int = chromium.WIDE,
        dark: bool = False,
    ) -> None:
        self.product = product
        self._said: list[str] = []
        self.context = browser.new_context(
            base_url=product.url,
            viewport={"width": width, "height": chromium.HEIGHT},
            color_scheme="dark" if dark else "light",
            locale=chromium.LANGUAGES[lang],
            timezone_id="UTC",
            java_script_enabled=js,
            reduced_motion="reduce",
        )
        self.context.set_default_timeout(PATIENCE)
        self.context.route("**/*", chromium.only_here)
        self.context.on("console", self._hear)
        self.context.on("weberror", lambda error: self._say(str(error.error)))
        self.context.on("requestfailed", self._missed)
        for event in ("requestfinished", "requestfailed"):
            self.context.on(event, lambda request: self.page.pending.discard(request))
        self.context.on("request", lambda request: self.page.pending.add(request))
        self.page: Page = self.context.new_page()
        #: Words of complaints that the test means to cause.
        self.page.allowed = []
        #: Requests that have no answer yet.
        self.page.pending = set()

    def log_in(self, name: str, password: str) -> None:
        """As the form does, without drawing it; once for all windows of a room."""
        cookies = self.product.logins.get(name)
        if cookies is None:
            cookies = self.product.logins[name] = self._cookies(name, password)
        self.context.add_cookies(
            [
                {"name": key, "value": value, "url": self.product.url}
                for key, value in cookies.items()
            ]
        )

    def _cookies(self, name: str, password: str) -> dict[str, str]:
        jar = CookieJar()
        opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor(jar)
        )
        address = f"{self.product.url}/admin/login/"
        with opener.open(address, timeout=30) as answer:
            token = _TOKEN.search(answer.read().decode())
        assert token, "the login page has no form"
        form = {
            "username": name,
            "password": password,
            "csrfmiddlewaretoken": token[1],
            "next": "/i18n/setlang/",  # no page: there is nothing to draw
        }
        body = urllib.parse.urlencode(form).encode()
        request = urllib.request.Request(address, body, {"Referer": address})  # noqa: S310
        with opener.open(request, timeout=30):
            pass
        cookies = {cookie.name: cookie.value or "" for cookie in jar}
        assert "ipxeready" in cookies, f"{name} cannot log in"
        return cookies

    def _say(self, words: str) -> None:
        self._said.append(f"{self.page.url}: {words}")

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self._say(message.text)

    def _missed(self, request: Request) -> None:
        # A page that is left takes its requests with it.
        if request.failure != "net::ERR_ABORTED":
            self._say(f"{request.url}: {request.failure}")

    def faults(self) -> list[str]:
        """What was said and not meant."""
        return [
            words
            for words in self._said
            if not any(meant in words for meant in self.page.allowed)
        ]

    def close(self) -> None:
        """Close it."""
        self.context.close()
