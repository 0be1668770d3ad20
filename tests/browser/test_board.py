"""The batch board as people use it: rows ticked, nodes dragged on them, what will happen read, the work watched, left and found again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import count

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.conftest import PageAs
from tests.browser.looking import assert_accessible, assert_fits
from tests.browser.product import Product
from tests.browser.windows import follow, settle
from tests.nodes import RealNode, serving
from tests.processes import free_port
from tests.workers.stub import Stub, stub_node

SHARED = "ubuntu_tpl_24.04.img"
ONLY_LOCAL = "windows_tpl_11.img"
_stems = count(1)


@pytest.fixture(scope="module")
def second(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealNode]:
    """A node with one of the two masters of the room's own."""
    with serving(tmp_path_factory.mktemp("second") / "root", "files") as node:
        node.image(SHARED, size=1 << 20)
        yield node


@pytest.fixture(scope="module")
def hall(
    tmp_path_factory: pytest.TempPathFactory, second: RealNode
) -> Iterator[Product]:
    """A room with the nodes `local` and `second`, and `dead`, which does not answer."""
    product = Product(tmp_path_factory.mktemp("hall"))
    try:
        product.start()
        product.furnish()
        for name, url in (
            ("second", second.base_url),
            ("dead", f"http://127.0.0.1:{free_port()}"),
        ):
            node = {"id": name, "base_url": url, "token": second.token}
            product.call("POST", "/agents", {**node, "role": {"disk": True}})
        yield product
    finally:
        product.end()


@pytest.fixture
def pcs(hall: Product) -> list[str]:
    """Five workers of this test's own; the board's search finds them by `stem_of`."""
    stem = f"hall{next(_stems)}x"
    return sorted(hall.worker(stem) for _ in range(5))


def stem_of(pcs: list[str]) -> str:
    """What the names of these workers begin with."""
    return pcs[0].partition("-")[0]


def _open(page: Page, pcs: list[str], **more: str) -> None:
    query = "&".join(f"{key}={value}" for key, value in more.items())
    page.goto(f"/admin/board/?search={stem_of(pcs)}&{query}")


def _row(page: Page, name: str) -> Locator:
    return page.locator(f'tr[data-worker="{name}"]')


def _box(page: Page, name: str) -> Locator:
    return _row(page, name).locator("input[type=checkbox]")


def _node_of(page: Page, name: str) -> Locator:
    return _row(page, name).locator("select")


def _card(page: Page, node: str) -> Locator:
    return page.locator(f'.node[data-node="{node}"]')


def _ticked(page: Page) -> list[str]:
    boxes = page.locator("tr[data-worker] input[type=checkbox]:checked")
    return [str(box.get_attribute("value")) for box in boxes.all()]


def _press(page: Page, what: str) -> None:
    """A button that leads to a question."""
    page.locator(f'#board button[formaction$="/board/{what}/"]').click()
    page.wait_for_url(f"**/admin/board/{what}/")


def _list_and_begin(page: Page) -> None:
    page.locator("button[name=begin]").click()
    page.wait_for_url("**/admin/board/jobs/**")


def _drag(page: Page, grip: Locator, target: Locator) -> None:
    """As a hand does it, once nothing moves any more: down, away, over the target, up."""
    settle(page)
    target.scroll_into_view_if_needed()
    grip.hover(position={"x": 3, "y": 3})
    start = grip.bounding_box()
    assert start
    page.mouse.down()
    page.mouse.move(start["x"] + 20, start["y"] + 20, steps=3)
    # At the edge of the window the page scrolls along.
    end = target.bounding_box()
    assert end
    page.mouse.move(
        end["x"] + end["width"] / 2, end["y"] + min(end["height"] / 2, 12), steps=5
    )
    expect(page.locator(".ghost")).to_be_visible()
    page.mouse.up()
    expect(page.locator(".ghost")).to_have_count(0)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_shift_ticks_all_rows_between_by_mouse_and_by_keyboard(
    lang: str, page_as: PageAs, hall: Product, pcs: list[str]
) -> None:
    page = page_as("operator", lang, product=hall)
    _open(page, pcs)
    _box(page, pcs[1]).click()
    _box(page, pcs[3]).click(modifiers=["Shift"])
    assert _ticked(page) == pcs[1:4]
    expect(page.locator("#count li").first).to_contain_text("3")
    _box(page, pcs[2]).click(modifiers=["Shift"])  # and the other way
    assert _ticked(page) == [pcs[1]]
    _box(page, pcs[1]).focus()
    for _ in range(3):
        page.keyboard.press("Shift+ArrowDown")
    assert _ticked(page) == pcs[1:5]
    expect(_box(page, pcs[4])).to_be_focused()
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Space")
    assert _ticked(page) == [pcs[1], pcs[2], pcs[4]]
    expect(page.locator("#count li").first).to_contain_text("3")


def test_shift_and_space_tick_a_range_too(
    page_as: PageAs, hall: Product, pcs: list[str]
) -> None:
    page = page_as("operator", product=hall)
    _open(page, pcs)
    _box(page, pcs[0]).focus()
    page.keyboard.press("Space")
    _box(page, pcs[2]).focus()
    page.keyboard.press("Shift+Space")
    assert _ticked(page) == pcs[:3]


def test_ticks_survive_pages_and_filters_and_all_that_match_can_be_ticked(
    page_as: PageAs, hall: Product, pcs: list[str]
) -> None:
    page = page_as("operator", product=hall)
    _open(page, pcs)
    _box(page, pcs[0]).check()
    _node_of(page, pcs[1]).select_option("second")  # chooses the row as well
    expect(_box(page, pcs[1])).to_be_checked()
    page.goto(f"/admin/board/?search={pcs[4]}")
    _box(page, pcs[4]).check()
    expect(page.locator("#count li").first).to_have_text("3 chosen")
    _open(page, pcs)
    assert _ticked(page) == [pcs[0], pcs[1], pcs[4]]
    expect(_node_of(page, pcs[1])).to_have_value("second")
    page.locator("button[data-do=none]").click()
    assert _ticked(page) == []
    page.locator("button[data-do=all]").click()
    expect(page.locator("#count li").first).to_have_text("5 chosen")
    assert _ticked(page) == pcs


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_a_node_is_dragged_on_a_row_and_rows_on_a_node(
    lang: str, page_as: PageAs, hall: Product, pcs: list[str]
) -> None:
    page = page_as("operator", lang, product=hall)
    _open(page, pcs)
    _drag(page, _card(page, "second").locator(".grip"), _row(page, pcs[2]))
    expect(_node_of(page, pcs[2])).to_have_value("second")
    assert _ticked(page) == [pcs[2]]
    expect(page.locator("#count")).to_contain_text("second")
    # One row that is not ticked goes alone ...
    _drag(page, _row(page, pcs[0]).locator(".grip"), _card(page, "local"))
    expect(_node_of(page, pcs[0])).to_have_value("local")
    expect(_node_of(page, pcs[2])).to_have_value("second")
    # ... and one of the chosen brings all of them.
    _drag(page, _row(page, pcs[0]).locator(".grip"), _card(page, "second"))
    for name in (pcs[0], pcs[2]):
        expect(_node_of(page, name)).to_have_value("second")
    # Let go beside everything, nothing changes.
    settle(page)
    box = _card(page, "local").locator(".grip").bounding_box()
    assert box
    page.mouse.move(box["x"] + 3, box["y"] + 3)
    page.mouse.down()
    page.mouse.move(5, 5, steps=4)
    page.mouse.up()
    assert _ticked(page) == [pcs[0], pcs[2]]


def test_nodes_share_evenly_or_one_takes_all_by_keyboard(
    page_as: PageAs, hall: Product, pcs: list[str]
) -> None:
    page = page_as("operator", product=hall)
    _open(page, pcs)
    page.locator("button[name=share]").click()
    expect(page.locator("#count")).to_contain_text("tick workers first")
    page.locator("button[data-do=page]").click()
    page.locator("button[name=share]").press("Enter")
    expect(page.locator("#count")).to_contain_text("Tick the nodes")
    for node in ("local", "second"):
        _card(page, node).locator("input[name=on]").press("Space")
    page.locator("button[name=share]").press("Enter")
    facts = page.locator("#count li")
    expect(facts).to_have_text(["5 chosen", "3 on local", "2 on second"])
    _card(page, "second").locator("button[name=take]").press("Enter")
    expect(facts).to_have_text(["5 chosen", "5 on second"])
    for name in pcs:
        expect(_node_of(page, name)).to_have_value("second")


def test_masters_are_offered_only_where_every_chosen_node_has_them(
    page_as: PageAs, hall: Product, pcs: list[str]
) -> None:
    page = page_as("operator", product=hall)
    _open(page, pcs)
    names = page.locator("#id_name option")
    page.locator("button[data-do=page]").click()
    _card(page, "local").locator("button[name=take]").click()
    expect(names).to_have_count(3)
    _node_of(page, pcs[4]).select_option("second")
    expect(names).to_have_count(2)
    expect(names.nth(1)).to_have_attribute("value", SHARED)
    expect(page.locator("#masters")).to_contain_text(f"{ONLY_LOCAL} is not offered")
    expect(page.locator("#masters")).to_contain_text("second")
    _node_of(page, pcs[3]).select_option("dead")
    expect(names).to_have_count(1)
    expect(page.locator("#masters")).to_contain_text("node dead does not say")


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_clones_are_listed_made_and_told_one_by_one(
    lang: str, page_as: PageAs, hall: Product, pcs: list[str], second: RealNode
) -> None:
    spec = {"type": "empty", "os": "debian", "size": "1M", "disk_agent": "local"}
    hall.call("POST", f"/workers/{pcs[0]}/luns/disk", spec)
    page = page_as("operator", lang, product=hall)
    _open(page, pcs)
    page.select_option("#id_os", "debian")
    page.locator("button[data-do=page]").click()
    for node in ("local", "second"):
        _card(page, node).locator("input[name=on]").check()
    page.locator("button[name=share]").click()
    facts = page.locator("#count li")
    expect(facts).to_have_count(4)
    for at, number in enumerate("5321"):  # chosen, local, second, skipped
        expect(facts.nth(at)).to_contain_text(number)
    page.select_option("#id_name", SHARED)
    _press(page, "disks")
    rows = page.locator("table.grid tbody tr")
    expect(rows).to_have_count(5)
    assert_accessible(page)
    _list_and_begin(page)
    expect(page.locator(".status-done")).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(5)
    expect(page.locator("#count li").first).to_contain_text("4")
    expect(page.locator("tr", has_text=pcs[0])).to_contain_text("local")
    assert (second.folder / f"{pcs[1]}.debian.img").exists()
    assert_accessible(page)
    # It is found again under jobs, and the board is empty.
    job = page.url.rstrip("/").rpartition("/")[2]
    page.goto(f"/admin/jobs/{job}/")
    page.locator(f'a[href$="/board/jobs/{job}/"]').click()
    expect(page.locator("tbody tr")).to_have_count(5)
    _open(page, pcs)
    assert _ticked(page) == []


def test_work_is_watched_left_found_again_and_cancelled(
    page_as: PageAs, hall: Product, pcs: list[str]
) -> None:
    page = page_as("operator", product=hall)
    with stub_node() as stub:
        _slow(stub)
        node = {"id": "slow", "base_url": stub.fake.base_url, "token": "t"}
        hall.call("POST", "/agents", {**node, "role": {"disk": True}})
        _open(page, pcs)
        page.select_option("#id_type", "empty")
        page.fill("#id_size", "1M")
        page.locator("button[data-do=page]").click()
        _card(page, "slow").locator("button[name=take]").click()
        expect(page.locator("#count")).to_contain_text("5 on slow")
        _press(page, "disks")
        _list_and_begin(page)
        expect(page.locator("progress")).to_be_visible()
        expect(page.locator("tbody")).to_contain_text("is being made")
        job = page.url
        page.goto("/admin/jobs/")
        page.locator("main a", has_text=re.compile("disks of many", re.I)).first.click()
        page.get_by_role("link", name="Each worker").click()
        expect(page).to_have_url(job)
        page.get_by_role("link", name="Cancel it").click()
        page.locator("main form [type=submit]").click()
        page.goto(job)
        expect(page.locator(".state")).to_contain_text("is being cancelled")
        stub.release.set()
        expect(page.locator(".status-cancelled")).to_be_visible(timeout=30_000)
        expect(page.locator("tbody")).to_contain_text("cancelled: not tried")
        expect(page.get_by_role("button", name="Try the failed")).to_be_visible()
    # Nobody waits for it from here on.
    del node["id"]
    hall.call("PUT", "/agents/slow", {**node, "enabled": False})


def _slow(stub: Stub) -> None:
    def wait(method: str) -> None:
        stub.release.wait(30)

    stub.before = wait


def test_a_failure_says_why_and_is_tried_again(
    page_as: PageAs, hall: Product, pcs: list[str]
) -> None:
    page = page_as("operator", product=hall)
    _open(page, pcs)
    page.select_option("#id_os", "ubuntu")
    page.select_option("#id_type", "empty")
    page.fill("#id_size", "1M")
    _node_of(page, pcs[0]).select_option("local")
    _node_of(page, pcs[1]).select_option("dead")
    expect(page.locator("#count li").first).to_have_text("2 chosen")
    _press(page, "disks")
    _list_and_begin(page)
    failed = page.locator("tr", has_text=pcs[1])
    expect(failed).to_contain_text("dead")
    expect(failed.locator(".badge.bad")).to_be_visible()
    expect(failed).to_contain_text("refused")
    expect(page.locator("tr", has_text=pcs[0]).locator(".bad")).to_have_count(0)
    page.get_by_role("button", name="Try the failed").click()
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text(pcs[1])
    # Back on the board it can be given to another node.
    page.get_by_role("button", name="Back to the board").click()
    expect(_box(page, pcs[1])).to_be_checked()


@pytest.mark.parametrize("js", [True, False])
@pytest.mark.parametrize("lang", ["en", "zh"])
def test_deletion_lists_what_goes_and_what_stays_and_then_does_it(
    lang: str, js: bool, page_as: PageAs, hall: Product, pcs: list[str]
) -> None:
    spec = {"type": "empty", "os": "debian", "size": "1M", "disk_agent": "local"}
    hall.call("POST", f"/workers/{pcs[0]}/luns/disk", spec)
    page = page_as("operator", lang, js=js, product=hall)
    _open(page, pcs)
    for name in pcs[:2]:
        _box(page, name).check()
    _press(page, "delete")
    rows = page.locator("tbody tr")
    expect(rows).to_have_count(2)
    image = f"{pcs[0]}.debian.img"
    goes, stays = rows.nth(0).locator("td").all()
    expect(stays).to_contain_text(image)
    page.check("[name=delete_disk]")
    # What was not listed is not done.
    page.locator("button[name=begin]").click()
    expect(goes).to_contain_text(image)
    expect(stays).not_to_contain_text(image)
    _list_and_begin(page)
    expect(page.locator(".status-done")).to_be_visible()
    expect(page.locator("tbody tr")).to_have_count(2)
    assert not (hall.root / "images" / image).exists()
    _open(page, pcs)
    expect(page.locator("tr[data-worker]")).to_have_count(3)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_everything_works_as_a_plain_form(
    lang: str, page_as: PageAs, hall: Product, pcs: list[str]
) -> None:
    page = page_as("operator", lang, js=False, product=hall)
    _open(page, pcs)
    for name in pcs[:2]:
        _box(page, name).check()
    for node in ("local", "second"):
        _card(page, node).locator("input[name=on]").check()
    follow(page, page.locator("button[name=share]"))
    expect(_node_of(page, pcs[0])).to_have_value("local")
    expect(_node_of(page, pcs[1])).to_have_value("second")
    assert _ticked(page) == pcs[:2]
    _node_of(page, pcs[0]).select_option("second")
    page.select_option("#id_os", "debian")
    page.locator('button[formaction$="/board/disks/"]').click()
    # The master is chosen here: every node that is chosen has it.
    expect(page.locator("button[name=begin]")).to_have_count(0)
    page.select_option("#id_name", SHARED)
    page.locator("fieldset button").click()
    expect(page.locator("tbody tr")).to_have_count(2)
    _list_and_begin(page)
    expect(page.locator(".status-done")).to_be_visible()
    expect(page.locator("tbody tr").nth(0)).to_contain_text("second")
    # All that match, though they are not ticked.
    _open(page, pcs)
    page.check("input[name=all]")
    _press(page, "boot")
    page.select_option("[name=menu_default]", "shell")
    page.locator("fieldset button").click()
    expect(page.locator("tbody tr")).to_have_count(5)
    _list_and_begin(page)
    expect(page.locator(".status-done")).to_be_visible()
    record = hall.call("GET", f"/workers/{pcs[4]}")
    assert record["boot"]["menu_default"] == "shell"


def test_a_phone_has_the_board_too(
    page_as: PageAs, hall: Product, pcs: list[str]
) -> None:
    page = page_as("operator", "zh", width=360, dark=True, product=hall)
    _open(page, pcs)
    _box(page, pcs[0]).check()
    expect(page.locator("#count li").first).to_contain_text("1")
    assert_fits(page)
    assert_accessible(page)
    _press(page, "delete")
    assert_fits(page)
    assert_accessible(page)


def test_a_viewer_has_no_board(page_as: PageAs, hall: Product) -> None:
    page = page_as("viewer", product=hall)
    page.goto("/admin/")
    expect(page.locator('nav a[href="/admin/board/"]')).to_have_count(0)
    page.allowed = ["403"]
    answer = page.goto("/admin/board/")
    assert answer
    assert answer.status == 403
