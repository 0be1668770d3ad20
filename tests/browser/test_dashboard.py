"""The start page as people use it: it asks the nodes by itself, and with a link where there are no scripts."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import PageAs
from tests.browser.looking import assert_accessible, assert_fits
from tests.browser.product import Product


def test_the_page_asks_the_nodes_by_itself(page_as: PageAs) -> None:
    page = page_as("viewer")
    page.goto("/admin/")
    node = page.get_by_role("region", name="Storage nodes").get_by_role(
        "row", name="local"
    )
    expect(node).to_contain_text("healthy")
    expect(node).to_contain_text("GiB")
    expect(node.locator("meter")).to_be_visible()
    assert_accessible(page)


def test_without_scripts_a_link_asks_them(page_as: PageAs) -> None:
    page = page_as("viewer", js=False)
    page.goto("/admin/")
    page.get_by_role("link", name="Ask them now").click()
    node = page.get_by_role("region", name="Storage nodes").get_by_role(
        "row", name="local"
    )
    expect(node).to_contain_text("healthy")
    expect(page).to_have_url(re.compile(r"\?ask$"))


def test_what_is_wrong_leads_to_where_it_is_mended(
    page_as: PageAs, own_room: Product
) -> None:
    path = own_room.root / "state" / "workers.yml"
    before = path.read_text()
    path.write_text(before + '  <b>"x: {hostname: pc1}\n  worker-77: {hostname: 3_3}\n')
    (own_room.root / "config" / "users.yml").chmod(0o644)
    page = page_as("administrator", product=own_room, width=360)
    page.goto("/admin/")
    wrong = page.get_by_role("region", name="What is wrong right now")
    expect(wrong).to_contain_text("2 records are not valid")
    expect(wrong).to_contain_text("chmod 600")
    assert_fits(page)
    assert_accessible(page)
    path.write_text(before)
    (own_room.root / "config" / "users.yml").chmod(0o600)
    page.reload()
    expect(wrong).to_contain_text("Nothing, as far as")


def test_a_number_leads_to_the_workers_that_it_counts(page_as: PageAs) -> None:
    page = page_as("viewer")
    page.goto("/admin/")
    page.get_by_role("link", name="without a disk").click()
    expect(page).to_have_url(re.compile("has_disk=false"))
    expect(page.get_by_text("front-desk").first).to_be_visible()


def test_a_whole_round_by_keyboard(page_as: PageAs) -> None:
    page = page_as("viewer")
    page.goto("/admin/")
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to main content")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    focused = page.locator(":focus")
    assert focused.evaluate("each => !!each.closest('main')")
    outline = focused.evaluate("each => getComputedStyle(each).outlineStyle")
    assert outline == "solid"


@pytest.mark.parametrize("js", [True, False])
def test_the_language_is_switched_in_the_header_and_remembered(
    js: bool, page_as: PageAs
) -> None:
    page = page_as("viewer", js=js)
    page.goto("/admin/jobs/")
    page.get_by_role("button", name="简体中文").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh-hans")
    expect(page).to_have_url(re.compile("/admin/jobs/$"))
    page.goto("/admin/")
    expect(page.locator("html")).to_have_attribute("lang", "zh-hans")
    page.get_by_role("button", name="English").click()
    expect(page.locator("html")).to_have_attribute("lang", "en")


def test_the_theme_is_switched_in_the_header_and_remembered(page_as: PageAs) -> None:
    page = page_as("viewer")
    page.goto("/admin/")
    paper = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(paper) == "rgb(255, 255, 255)"
    page.get_by_role("button", name="Toggle theme").click()
    assert page.evaluate(paper) == "rgb(0, 0, 0)"
    page.goto("/admin/jobs/")
    assert page.evaluate(paper) == "rgb(0, 0, 0)"


def test_the_theme_of_the_system_is_followed_without_scripts(page_as: PageAs) -> None:
    page = page_as("viewer", js=False, dark=True)
    page.goto("/admin/")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == (
        "rgb(0, 0, 0)"
    )
    # What scripts alone can do is not offered.
    expect(page.locator(".theme-toggle")).to_be_hidden()
