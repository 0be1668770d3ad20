"""What every page must be, whatever is on it: usable by everybody, no wider than the window, in one language.

Each waits for the whole page first: one whose style sheet is still on its way is judged without it.
"""

from __future__ import annotations

import json
import re
from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

_AXE = Axe()
#: What breaks a page for somebody; the rest is taste.
_GRAVE = frozenset({"serious", "critical"})
_WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def assert_accessible(page: Page) -> None:
    """axe-core finds nothing serious or critical on the page as it stands now."""
    options = {
        "resultTypes": ["violations"],
        # It would fetch and inline style sheets, which the content security policy refuses.
        "preload": False,
        "runOnly": {"type": "tag", "values": _WCAG},
    }
    page.wait_for_load_state()
    found: dict[str, Any] = _AXE.run(page, options=options).response
    grave = [
        {
            "rule": each["id"],
            "help": each["help"],
            "where": [
                [node["html"][:200], *(why["message"] for why in node["any"])]
                for node in each["nodes"][:5]
            ],
        }
        for each in found["violations"]
        if each["impact"] in _GRAVE
    ]
    assert grave == [], f"{page.url}: {json.dumps(grave, indent=1, ensure_ascii=False)}"


def assert_fits(page: Page) -> None:
    """Nothing makes the page scroll sideways; what is wide scrolls in its own box."""
    page.wait_for_load_state()
    spare = page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    if spare <= 0:
        return
    wide = page.evaluate(
        """() => [...document.querySelectorAll("body *")]
            .filter((each) => each.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
            .slice(0, 5).map((each) => each.outerHTML.slice(0, 160))"""
    )
    raise AssertionError(f"{page.url} is {spare} pixels too wide: {wide}")


def assert_readable_in_focus(page: Page) -> None:
    """Each button and link can be read while it has the focus, as after a press; axe sees only the one that has it."""
    page.wait_for_load_state()
    poor = page.evaluate(
        """(least) => {
            const channels = (text) => text.match(/[\\d.]+/g).map(Number);
            const bright = ([r, g, b]) => [r, g, b]
                .map((v) => v / 255)
                .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
                .reduce((sum, v, at) => sum + v * [0.2126, 0.7152, 0.0722][at], 0);
            const behind = (each) => {
                for (let at = each; at; at = at.parentElement) {
                    const found = channels(getComputedStyle(at).backgroundColor);
                    if (found.length < 4 || found[3] > 0) return found;
                }
                return [255, 255, 255];
            };
            const before = document.activeElement;
            const poor = [];
            for (const each of document.querySelectorAll("a[href], button, input[type=submit], summary")) {
                each.focus({ preventScroll: true });
                if (document.activeElement !== each || !each.offsetParent) continue;
                const [light, dark] = [channels(getComputedStyle(each).color), behind(each)]
                    .map(bright).sort((a, b) => b - a);
                if ((light + 0.05) / (dark + 0.05) < least) poor.push(each.outerHTML.slice(0, 160));
            }
            before?.focus?.({ preventScroll: true });
            if (document.activeElement !== before) document.activeElement.blur();
            return poor;
        }""",
        4.5,
    )
    assert poor == [], f"{page.url}: {poor}"


#: Words that are the same in both languages: names, units, abbreviations.
_SAME = re.compile(
    r"[\w.:/@+=%*-]*[\d._:/@=-][\w.:/@+=%*-]*"  # names, addresses, numbers, files
    r"|\b[A-Z][A-Z0-9]+s?\b"  # abbreviations
)


def english_words(page: Page, known: frozenset[str] = frozenset()) -> list[str]:
    """English words that a Chinese page shows, beside `known` ones: text that was not translated.

    What carries `lang`, `translate=no` or is code is data, not text of ours.
    """
    page.wait_for_load_state()
    text: str = page.evaluate(
        """() => {
            const copy = document.body.cloneNode(true);
            copy.querySelectorAll(
                "[lang], [translate=no], code, pre, script, style, option[value=''], bdi, noscript, svg"
            ).forEach((each) => each.remove());
            return copy.textContent;
        }"""
    )
    words = re.findall(r"[A-Za-z]{3,}", _SAME.sub(" ", text))
    return sorted({word for word in words if word.lower() not in known})
