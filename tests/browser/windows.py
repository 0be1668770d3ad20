"""A window of the browser with somebody logged in, and what its pages complained of."""

from __future__ import annotations

import re
import urllib.parse
import urllib.request
from http.cookiejar import CookieJar

from playwright.sync_api import Browser, ConsoleMessage, Locator, Page, Request

from tests.browser import chromium
from tests.browser.product import Product

_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')

#: Milliseconds for which a page is waited for.
PATIENCE = 15_000


def follow(page: Page, leads: Locator) -> None:
    """Press what leads to another page, and come back when that page is whole.

    A click alone comes back as soon as the page begins to come. `expect` waits for what it names, but what is read at
    once (`count`, `all`, `content`, `evaluate`) is then read from a part of the page.
    """
    with page.expect_navigation():
        leads.click()


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
        self.page: Page = self.context.new_page()
        #: Words of complaints that the test means to cause.
        self.page.allowed = []

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
