"""Every page in every look: it answers, fits, hinders nobody, and complains of nothing."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Page

from tests.browser.chromium import CODES
from tests.browser.conftest import PageAs
from tests.browser.looking import assert_accessible, assert_fits
from tests.browser.screenshots import NOT_OURS, PAGES

OURS = {name: path for name, path in PAGES.items() if name not in NOT_OURS}


@pytest.mark.parametrize("name", OURS)
def test_a_page_is_good_to_use_in_every_look(
    name: str, page_as: PageAs, every_look: list[dict[str, Any]]
) -> None:
    for look in every_look:
        page: Page = page_as("administrator", **look)
        answer = page.goto(OURS[name])
        assert answer is not None
        assert answer.status == 200, look
        assert page.get_attribute("html", "lang") == CODES[look["lang"]]
        assert_fits(page)
        assert_accessible(page)
