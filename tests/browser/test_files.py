"""The file browser as people use it: down, up, along the way back, and a file fetched, whatever its name is."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chromium import CODES, NARROW
from tests.browser.conftest import PageAs
from tests.browser.looking import assert_accessible, assert_fits
from tests.browser.product import Product
from tests.browser.windows import follow
from tests.ipxeready.files.odd import ODD

TOP = "/admin/files/"


@pytest.fixture(scope="module")
def odd(room: Product) -> Path:
    """A folder of odd names, each with a file of that name inside."""
    folder = room.root / "public" / "odd"
    for name in ODD:
        (folder / name).mkdir(parents=True)
        (folder / name / name).write_bytes(os.fsencode(name))
    return folder


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("js", [True, False])
def test_down_to_a_file_and_back(
    page_as: PageAs, odd: Path, lang: str, js: bool
) -> None:
    (odd / "debian").mkdir(exist_ok=True)
    (odd / "debian" / "kernel").write_bytes(b"x" * 3072)
    page = page_as("viewer", lang, js=js)
    page.goto("/admin/")
    page.locator("nav.areas a", has_text="Files" if lang == "en" else "文件").click()
    expect(page.locator("html")).to_have_attribute("lang", CODES[lang])
    page.get_by_role("link", name="odd/", exact=True).click()
    page.get_by_role("link", name="debian/", exact=True).click()
    expect(page.locator("#folder .num").last).to_have_text("3 KiB")
    with page.expect_download() as fetched:
        page.get_by_role("link", name="kernel", exact=True).click()
    assert fetched.value.path().read_bytes() == b"x" * 3072
    page.locator(".breadcrumbs a", has_text="odd").click()
    page.locator("#folder tbody a").first.click()
    expect(page).to_have_url(re.compile(f"{TOP}$"))


def test_odd_names_are_text_and_lead_to_their_files(page_as: PageAs, odd: Path) -> None:
    page = page_as("viewer")
    page.on("dialog", _refuse)
    page.goto(f"{TOP}odd/")
    rows = page.locator("#folder tbody a")
    addresses = [row.get_attribute("href") for row in rows.all()[1:]]
    for address in addresses:
        if address == f"{TOP}odd/debian/":
            continue
        page.goto(address)
        with page.expect_download() as fetched:
            page.locator("#folder tbody a").nth(1).click()
        content = fetched.value.path().read_bytes()
        assert content in {os.fsencode(name) for name in ODD}
        follow(page, page.locator("#folder tbody a").first)
        expect(page).to_have_url(re.compile(f"{TOP}odd/$"))


def test_odd_names_fit_a_telephone(page_as: PageAs, odd: Path) -> None:
    page = page_as("viewer", width=NARROW, dark=True)
    page.goto(f"{TOP}odd/")
    assert_fits(page)
    assert_accessible(page)


def _refuse(dialog: object) -> None:
    raise AssertionError(f"a dialog opened: {dialog}")


def test_a_folder_that_is_gone_says_so(page_as: PageAs) -> None:
    page: Page = page_as("viewer")
    page.allowed.append("404")
    answer = page.goto(f"{TOP}nothing/")
    assert answer is not None
    assert answer.status == 404
