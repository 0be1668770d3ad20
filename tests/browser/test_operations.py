"""The audit trail as people read it: filtered, scrolled back to its beginning, opened, exported, told of what is new."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.browser.chromium import NARROW
from tests.browser.conftest import PageAs
from tests.browser.looking import assert_accessible, assert_fits
from tests.browser.product import Product
from tests.browser.windows import PATIENCE, follow
from tests.processes import eventually

LIST = "/admin/audit/operation/"
OWN = "trail-test"
ENTRIES = 350
MARKUP = "<script>alert(1)</script>\"'\u202etxt\x1b[31m"


@pytest.fixture(scope="module")
def trail(room: Product) -> Product:
    """The room with many entries of one worker that is not there, as a hand may add them; each sixth failed."""
    path = room.root / "state" / "operations.jsonl"
    last = json.loads(path.read_text().splitlines()[-1])["id"]
    with path.open("a") as stream:
        for number in range(1, ENTRIES + 1):
            line = {
                "id": last + number,
                "ts": f"2026-01-{1 + number // 40:02d}T10:00:{number % 60:02d}+00:00",
                "op": "worker.boot.set",
                "status": "ok" if number % 6 else "failed",
                "user": "=1+1",
                "worker_id": OWN,
                "number": number,
                "error": MARKUP,
            }
            stream.write(json.dumps(line) + "\n")
    return room


def _numbers(page: Page) -> list[int]:
    """The numbers that the summaries of the rows say."""
    texts = page.locator("#trail tbody tr td:last-child").all_inner_texts()
    return [int(re.search(r"number: (\d+)", text)[1]) for text in texts]


def _goto(page: Page, query: str = "") -> None:
    page.on("dialog", lambda dialog: pytest.fail(f"a dialog opened: {dialog}"))
    page.goto(f"{LIST}?worker_id={OWN}{query}")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_older_entries_come_as_one_scrolls_down_to_the_first(
    page_as: PageAs, trail: Product, lang: str
) -> None:
    page = page_as("viewer", lang)
    _goto(page)
    rows = page.locator("#trail tbody tr")

    def all_here() -> bool:
        page.mouse.wheel(0, 20_000)
        page.wait_for_timeout(200)
        return rows.count() == ENTRIES

    eventually(all_here, PATIENCE / 1000)
    assert _numbers(page) == list(range(ENTRIES, 0, -1))
    expect(page.locator("#older a")).to_have_count(0)
    expect(page.locator("#older span")).to_have_count(1)


def test_the_place_is_kept_when_one_comes_back(page_as: PageAs, trail: Product) -> None:
    page = page_as("viewer")
    _goto(page)
    row = page.locator("#trail tbody tr").nth(150)

    def here() -> bool:
        page.mouse.wheel(0, 2_000)
        page.wait_for_timeout(150)
        return row.count() == 1

    eventually(here, PATIENCE / 1000)
    row.evaluate("each => each.scrollIntoView()")
    number = row.get_attribute("data-id")
    expect(page).to_have_url(re.compile("before="))
    page.goto("/admin/files/")
    page.go_back()
    seen = page.locator(f"#trail tr[data-id='{number}']")
    expect(seen).to_be_in_viewport()
    page.reload()
    expect(page.locator(f"#trail tr[data-id='{number}']")).to_be_in_viewport()
    page.get_by_role("link", name="Newest").click()
    expect(page.locator("#trail tbody tr").first).to_contain_text("number: 350")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_without_scripts_links_lead_from_page_to_page(
    page_as: PageAs, trail: Product, lang: str
) -> None:
    page = page_as("viewer", lang, js=False)
    _goto(page)
    seen = _numbers(page)
    while page.locator("#older a[rel=next]").count():
        follow(page, page.locator("#older a[rel=next]"))
        seen += _numbers(page)
    assert seen == list(range(ENTRIES, 0, -1))
    follow(page, page.locator("a[rel=prev]"))
    assert _numbers(page) == list(range(150, 50, -1))
    follow(page, page.locator("a[rel=first]"))
    assert _numbers(page)[0] == ENTRIES


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("js", [True, False])
def test_filters_by_form(page_as: PageAs, trail: Product, lang: str, js: bool) -> None:
    page = page_as("operator", lang, js=js)
    page.goto(LIST)
    page.select_option("#id_op", "worker.boot.set")
    page.select_option("#id_status", "failed")
    page.fill("#id_worker_id", OWN)
    page.fill("#id_user", "=1+1")
    page.fill("#id_from_time", "2026-01-02T00:00:00")
    page.fill("#id_to_time", "2026-01-04T00:00:00")
    page.fill("#id_search", "alert script")
    follow(page, page.locator("form.filters button"))
    expect(page.locator("form.filters a")).to_have_count(1)
    assert _numbers(page) == list(range(114, 39, -6))
    expect(page.locator("#id_status")).to_have_value("failed")
    expect(page.locator("#id_from_time")).to_have_value(re.compile("^2026-01-02T00:00"))
    follow(page, page.locator("form.filters a"))
    expect(page.locator("form.filters a")).to_have_count(0)
    expect(page.locator("#id_status")).to_have_value("")
    page.select_option("#id_period", "24h")
    page.fill("#id_worker_id", OWN)
    page.locator("form.filters button").click()
    expect(page.locator(".empty")).to_have_count(1)
    expect(page.locator("#trail")).to_have_count(0)


def test_an_entry_opens_in_place_and_leads_to_its_neighbours(
    page_as: PageAs, trail: Product
) -> None:
    page = page_as("viewer")
    _goto(page, "&status=failed")
    before = page.url
    page.locator("#trail a.entry").nth(1).click()
    dialog = page.locator("dialog#details")
    expect(dialog).to_be_visible()
    expect(dialog).to_contain_text("342")
    expect(dialog).to_contain_text(
        r"<script>alert(1)</script>\"'\u202etxt\u001b[31m".replace('\\"', '"')
    )
    assert_accessible(page)
    dialog.locator("a[rel=prev]").click()
    expect(dialog.locator("dl")).to_contain_text("341")
    dialog.locator("a[rel=next]").click()
    expect(dialog.locator("dl")).to_contain_text("342")
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(page).to_have_url(before)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_an_entry_has_a_page_of_its_own(
    page_as: PageAs, trail: Product, lang: str
) -> None:
    page = page_as("viewer", lang, js=False)
    _goto(page)
    page.locator("#trail a.entry").first.click()
    expect(page.locator("#entry dl")).to_contain_text(OWN)
    page.locator("#entry a[rel=prev]").click()
    expect(page.locator("#entry dl")).to_contain_text("349")


def test_new_entries_are_told_and_nothing_jumps(
    page_as: PageAs, trail: Product
) -> None:
    worker = trail.worker("told")
    page = page_as("viewer")
    page.clock.install()
    page.goto(f"{LIST}?worker_id={worker}")
    expect(page.locator("#trail tbody tr")).to_have_count(1)
    trail.call("PUT", f"/workers/{worker}/default-os", {"menu_timeout": 100})
    trail.call("PUT", f"/workers/{worker}/default-os", {"menu_timeout": 200})
    page.clock.run_for(11_000)
    told = page.locator("#fresh a")
    expect(told).to_have_text("2 newer entries, show")
    expect(page.locator("#trail tbody tr")).to_have_count(1)
    told.click()
    expect(page.locator("#trail tbody tr")).to_have_count(3)


@pytest.mark.parametrize("js", [True, False])
def test_export_of_what_the_filters_match(
    page_as: PageAs, trail: Product, js: bool
) -> None:
    page = page_as("viewer", js=js)
    _goto(page, "&status=failed")
    buttons = page.locator(".head a.button")
    with page.expect_download() as fetched:
        buttons.nth(0).click()
    assert re.fullmatch(
        r"operations-\d{4}-\d\d-\d\d\.csv", fetched.value.suggested_filename
    )
    text = Path(fetched.value.path()).read_text("utf-8-sig")
    lines = list(csv.DictReader(text.splitlines(keepends=True)))
    assert len(lines) == ENTRIES // 6
    assert {line["user"] for line in lines} == {"'=1+1"}
    assert json.loads(lines[0]["details"]) == {"number": 6, "error": MARKUP}
    with page.expect_download() as fetched:
        buttons.nth(1).click()
    assert fetched.value.suggested_filename.endswith(".jsonl")
    text = Path(fetched.value.path()).read_text()
    found = [json.loads(line)["number"] for line in text.splitlines()]
    assert found == list(range(6, ENTRIES, 6))


def test_it_fits_a_telephone(page_as: PageAs, trail: Product) -> None:
    page = page_as("viewer", width=NARROW, dark=True)
    _goto(page)
    assert_fits(page)
    assert_accessible(page)
    page.locator("#trail a.entry").first.click()
    expect(page.locator("dialog#details")).to_be_visible()
    assert_fits(page)
