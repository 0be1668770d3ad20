"""Pictures of every page for docs/screenshots; fails where a page does not answer, overflows or complains.

`python -m tests.browser.screenshots` renews the pictures of the documentation;
`--review FOLDER` takes every page in both widths, themes and languages, for looking at.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page

from ipxeready.conf import REPOSITORY
from tests.browser.chromium import LANGUAGES, NARROW, WIDE, launched
from tests.browser.product import PASSWORD, Product

FOLDER = REPOSITORY / "docs" / "screenshots"
LARGEST = 120_000

#: Name of the picture and address of the page.
PAGES = {
    "start": "/admin/",
    "workers": "/admin/workers/worker/",
    "worker-add": "/admin/workers/worker/add/",
    "worker": "/admin/workers/worker/worker-01/change/",
    "worker-delete": "/admin/workers/worker/worker-01/delete/",
    "disk-add": "/admin/workers/worker/worker-06/disk/add/",
    "disk-first": "/admin/workers/worker/worker-06/disk/add/?new=1",
    "disk-grow": "/admin/workers/worker/worker-01/disk/windows/grow/",
    "disk-reset": "/admin/workers/worker/worker-01/disk/windows/reset/",
    "disk-delete": "/admin/workers/worker/worker-01/disk/windows/delete/",
    "cd-attach": "/admin/workers/worker/worker-01/cd/attach/",
    "worker-access": "/admin/workers/worker/worker-01/access/",
    "board": "/admin/board/",
    "nodes": "/admin/agents/agent/",
    "node-add": "/admin/agents/agent/add/",
    "node": "/admin/agents/agent/local/change/",
    "node-delete": "/admin/agents/agent/store-02/delete/",
    "operations": "/admin/audit/operation/",
    "operation": "/admin/audit/operation/1/change/",
    "files": "/admin/files/",
    "users": "/admin/users/operator/",
    "user-add": "/admin/users/operator/add/",
    "user": "/admin/users/operator/oscar/change/",
    "user-delete": "/admin/users/operator/victor/delete/",
    "settings": "/admin/bootvars/setting/",
    "password": "/admin/password_change/",
    "api": "/workers",
}
#: Taken besides the plain ones: page, width, theme, language.
EXTRA = (
    ("workers", WIDE, "dark", "en"),
    ("worker", WIDE, "dark", "en"),
    ("start", NARROW, "light", "en"),
    ("workers", NARROW, "light", "en"),
    ("worker", NARROW, "dark", "en"),
    ("start", WIDE, "light", "zh"),
    ("workers", WIDE, "light", "zh"),
    ("worker", WIDE, "light", "zh"),
)
#: Pages with a scheme of their own, not ours to lay out.
NOT_OURS = frozenset({"api"})


@dataclass(frozen=True)
class Look:
    """How pages are looked at."""

    width: int
    theme: str
    language: str

    def suffix(self) -> str:
        """What tells this look from the plain one, for a file's name."""
        words = []
        if self.width != WIDE:
            words.append(str(self.width))
        if self.theme != "light":
            words.append(self.theme)
        if self.language != "en":
            words.append(self.language)
        return "".join(f".{word}" for word in words)


class Visit:
    """One logged-in browser window with one look."""

    def __init__(
        self, browser: Browser, product: Product, look: Look, folder: Path
    ) -> None:
        self.product, self.look, self.folder = product, look, folder
        self.faults: list[str] = []
        self.context = browser.new_context(
            viewport={"width": look.width, "height": 760},
            color_scheme=look.theme,
            locale=LANGUAGES[look.language],
            timezone_id="UTC",
        )
        self.page: Page = self.context.new_page()
        self.page.on("console", self._said)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))

    def _said(self, message: object) -> None:
        if message.type == "error":
            self.faults.append(f"{self.page.url}: {message.text}")

    def login(self, *, picture: bool) -> None:
        """Log in as the administrator; the page before is a page too."""
        self.page.goto(f"{self.product.url}/admin/login/")
        if picture:
            self._picture("login")
        self.page.fill("#id_username", "alice")
        self.page.fill("#id_password", PASSWORD)
        self.page.click("input[type=submit]")
        self.page.wait_for_selector("#user-tools")

    def take(self, name: str, path: str) -> None:
        """Open the page, look for faults, take the picture."""
        answer = self.page.goto(self.product.url + path)
        if answer is None or answer.status != 200:
            self.faults.append(f"{path} answers {answer and answer.status}")
        self._picture(name)

    def _picture(self, name: str) -> None:
        spare = self.page.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        if spare > 0 and name not in NOT_OURS:
            self.faults.append(f"{name}{self.look.suffix()} is {spare} pixels too wide")
        path = self.folder / f"{name}{self.look.suffix()}.png"
        self.page.screenshot(path=path, full_page=self._height() <= 1600)

    def _height(self) -> int:
        height: int = self.page.evaluate("document.documentElement.scrollHeight")
        return height

    def broken_file(self) -> None:
        """What pages say while a file does not parse."""
        path = self.product.root / "state" / "workers.yml"
        before = path.read_bytes()
        try:
            path.write_bytes(before + b"  worker-99: [\n")
            self.take("broken-file", "/admin/workers/worker/")
        finally:
            path.write_bytes(before)

    def close(self) -> None:
        """Close the window."""
        self.context.close()


def looks(review: bool) -> Iterator[tuple[Look, list[str]]]:
    """Each look with the names of its pages."""
    if review:
        for language in LANGUAGES:
            for theme in ("light", "dark"):
                for width in (WIDE, NARROW):
                    yield Look(width, theme, language), list(PAGES)
        return
    wanted: dict[Look, list[str]] = {Look(WIDE, "light", "en"): list(PAGES)}
    for name, width, theme, language in EXTRA:
        wanted.setdefault(Look(width, theme, language), []).append(name)
    yield from wanted.items()


def take_all(product: Product, folder: Path, *, review: bool) -> list[str]:
    """Take all pictures; returns what was wrong."""
    faults: list[str] = []
    with launched() as browser:
        for look, names in looks(review):
            visit = Visit(browser, product, look, folder)
            plain = review or look == Look(WIDE, "light", "en")
            visit.login(picture=plain)
            for name in names:
                visit.take(name, PAGES[name])
            if plain:
                visit.broken_file()
            visit.close()
            faults += visit.faults
    return faults


def main() -> int:
    """Start the product, take the pictures, end it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--review", type=Path, help="a folder for every look of every page"
    )
    review = parser.parse_args().review
    folder: Path = review or FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ipxeready-screenshots-") as temporary:
        product = Product(Path(temporary))
        try:
            product.start()
            product.furnish()
            faults = take_all(product, folder, review=bool(review))
        finally:
            product.end()
    if not review:
        faults += [
            f"{path.name} has {path.stat().st_size} bytes, more than {LARGEST}"
            for path in sorted(folder.glob("*.png"))
            if path.stat().st_size > LARGEST
        ]
    for fault in faults:
        print(fault, file=sys.stderr)  # noqa: T201
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
