"""Takes pictures of pages that are the same at every run, and small.

`PICTURES` names the folder; `make screenshots` gives docs/screenshots, all other runs draw into a folder that git ignores.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Page

from ipxeready.conf import REPOSITORY
from tests.browser.chromium import HEIGHT, NARROW, WIDE

#: Bytes of the largest picture, and where a page is cut.
LARGEST = 120_000
_CUTS = (1600, 1400, 1200, 1000, HEIGHT)


@dataclass(frozen=True)
class Look:
    """How a page is looked at."""

    width: int
    dark: bool
    lang: str = "en"

    @property
    def narrow(self) -> bool:
        """As on a phone."""
        return self.width == NARROW

    def file(self, name: str) -> str:
        """The name of the picture: what tells this look from the plain one is in it."""
        words = [name]
        if self.lang != "en":
            words.append(self.lang)
        if self.narrow:
            words.append(str(self.width))
        if self.dark:
            words.append("dark")
        return ".".join([*words, "png"])

    def on(self, page: Page) -> None:
        """Look at the page in this way, without loading it again."""
        page.emulate_media(color_scheme="dark" if self.dark else "light")
        page.set_viewport_size({"width": self.width, "height": HEIGHT})


#: Each page has a picture of each of these,
PLAIN = tuple(Look(width, dark) for width in (WIDE, NARROW) for dark in (False, True))
#: and the main ones of these.
CHINESE = (Look(WIDE, True, "zh"), Look(NARROW, False, "zh"))
#: In these each width, theme and language meets each other one: enough to look for what is wrong.
JUDGED = (Look(WIDE, False), Look(NARROW, True), *CHINESE)


def only_pictures() -> bool:
    """Somebody wants the pictures now, and has the pages judged another time."""
    return "PICTURES" in os.environ


def folder() -> Path:
    """Where pictures go."""
    path = REPOSITORY / os.environ.get("PICTURES", "tests/browser/artifacts")
    path.mkdir(parents=True, exist_ok=True)
    return path


def take(page: Page, path: Path, words: dict[str, str]) -> None:
    """Write the picture; `words` are replaced on the page, they differ from run to run."""
    page.evaluate(_STILL, words)
    width = page.evaluate("document.documentElement.clientWidth")
    height = page.evaluate("document.documentElement.scrollHeight")
    for cut in _CUTS:
        clip = {"x": 0, "y": 0, "width": width, "height": max(min(height, cut), HEIGHT)}
        picture = page.screenshot(
            full_page=True, clip=clip, animations="disabled", caret="hide"
        )
        if len(picture) <= LARGEST:
            break
    path.write_bytes(picture)


#: Times, numbers of jobs, secrets, what is free on this machine's disk: each becomes what it
#: could be elsewhere. Times go back along the page, as lists of ours do.
_STILL = r"""(words) => {
    const noon = Date.UTC(2026, 6, 1, 12, 0, 0);
    let times = 0, jobs = 0;
    const pad = (number) => String(number).padStart(2, "0");
    const time = (separator) => {
        const at = new Date(noon - 97000 * times++).toISOString();
        return at.slice(0, 10) + separator + at.slice(11, 19);
    };
    const still = (text) => {
        for (const [from, to] of Object.entries(words)) text = text.replaceAll(from, to);
        const rooms = [...text.matchAll(/\b\d+(\.\d+)? [GT]iB\b/g)].map((each) => parseFloat(each[0]));
        if (rooms.length === 2)
            text = text.replace(/\b\d+(\.\d+)? [GT]iB\b/g, (all) =>
                parseFloat(all) === Math.max(...rooms) ? "931 GiB" : "412 GiB");
        return text
            .replace(/\b\d{8}-\d{6}-[0-9a-f]{8}\b/g, () => `20260701-1200${pad(jobs++ % 60)}-7c3e90a1`)
            .replace(/\b\d{4}-\d\d-\d\d([ T])\d\d:\d\d:\d\d(\.\d+)?/g, (all, separator) => time(separator))
            .replace(/\b[\w-]{40,}\b/g, (all) => "Ax7".repeat(20).slice(0, all.length))
            .replace(/\b\d+(\.\d+)? (s|ms|seconds?|秒)(?=\W|$)/g, "0.12 $2");
    };
    const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
    for (let node = walker.nextNode(); node; node = walker.nextNode()) {
        const text = still(node.data);
        if (text !== node.data) node.data = text;
    }
    for (const field of document.querySelectorAll("input[type=text], input[type=url], input:not([type])"))
        field.value = still(field.value);
}"""
