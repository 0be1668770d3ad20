"""Storage nodes in the browser: cards and their switch, registering in two steps, a node's targets, jobs and log, as people do it.

Texts are looked for by what they are (fields, addresses), so that both languages are tried alike.
"""

from __future__ import annotations

import os
import re
import time
from typing import Any
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from tests.agents import fakes
from tests.agents.node import node_lab
from tests.browser.conftest import PageAs, Register
from tests.browser.looking import assert_accessible, assert_fits
from tests.browser.product import Product
from tests.browser.windows import follow
from tests.nodes import BASE, RealNode, node, stgt_node

__all__ = ["node", "stgt_node"]
LIST = "/admin/agents/agent/"
#: Both languages, and the forms with and without scripts.
WAYS = [("en", True), ("zh", True), ("en", False), ("zh", False)]


def _save(page: Page) -> None:
    follow(page, page.locator("#content-main form button.button[type=submit]"))


def _usable(page: Page, js: bool) -> None:
    if js:  # axe is a script itself
        assert_accessible(page)


@pytest.mark.parametrize(("lang", "js"), WAYS)
def test_nodes_are_asked_at_the_switch_and_a_dead_one_holds_up_no_page(
    page_as: PageAs, register: Register, node: RealNode, lang: str, js: bool
) -> None:
    page = page_as("viewer", lang, js=js)
    with fakes.silent() as base_url:
        hung = register("hung", base_url)
        well = register("well", node.base_url, token=node.token)
        began = time.monotonic()
        page.goto(f"{LIST}?search={os.getpid()}&order=state")
        assert time.monotonic() - began < 3
        expect(page.locator(".card")).to_have_count(2)
        _usable(page, js)
        page.locator('[data-ask="on"]').click()
        expect(page.locator(f"#node-{well} meter")).to_be_visible(timeout=15_000)
        expect(page.locator(f"#node-{hung}.bad .problems")).to_be_visible()
        # The filters and the order are as they were.
        first = page.locator(".card").first
        expect(first).to_have_id(f"node-{hung}")
        expect(page.locator("#f-search")).to_have_value(str(os.getpid()))
        asked = expect(page)
        if js:
            asked.not_to_have_url(re.compile("live=1"))
        else:
            asked.to_have_url(re.compile("live=1"))
        if js:
            # The choice is remembered, and the page is there before the nodes have answered.
            began = time.monotonic()
            page.goto(f"{LIST}?search={os.getpid()}")
            assert time.monotonic() - began < 3
            expect(page.locator('[data-ask="on"][aria-current]')).to_be_visible()
            page.locator('[data-ask="off"]').click()
            expect(page.locator('[data-ask="off"][aria-current]')).to_be_visible()


@pytest.mark.parametrize(("lang", "js"), WAYS)
def test_a_node_is_added_in_two_steps_changed_disabled_and_deleted(
    page_as: PageAs, room: Product, node: RealNode, lang: str, js: bool
) -> None:
    name = f"new-{os.getpid()}-{lang}-{js}".lower()
    page = page_as("administrator", lang, js=js)
    page.goto(LIST)
    page.locator(f'a[href="{LIST}add/"]').click()
    page.fill("#id_base_url", node.base_url)
    page.fill("#id_token", "not-the-token")
    _save(page)
    expect(page.locator(".errorlist").first).to_be_visible()
    page.fill("#id_token", node.token)
    _save(page)
    expect(page.locator("dl.rows")).to_contain_text(BASE)
    assert node.token not in page.content()
    _usable(page, js)
    page.fill("#id_id", name)
    page.fill("#id_iscsi_server", "192.0.2.77")
    page.check("#id_enabled")
    _save(page)
    page.wait_for_url(f"**{LIST}{name}/change/")
    expect(page.locator("#content-main")).to_contain_text("192.0.2.77")

    page.locator(f'a[href="{LIST}{name}/edit/"]').click()
    page.fill("#id_tags", "fast files")
    _save(page)
    page.wait_for_url(f"**{LIST}{name}/change/")
    assert room.call("GET", f"/agents/{name}")["tags"] == ["fast", "files"]
    page.goto(f"{LIST}{name}/edit/")
    page.fill("#id_base_url", "http://127.0.0.1:9")
    _save(page)
    expect(page.locator(".field-token .errorlist")).to_be_visible()

    page.goto(f"{LIST}?search={name}&order=disks")
    page.locator(f"#node-{name} form button").click()
    page.wait_for_url(f"**?search={name}&order=disks")
    assert room.call("GET", f"/agents/{name}")["enabled"] is False
    page.goto(f"{LIST}{name}/change/")
    page.locator(f'form[action="{LIST}{name}/enabled/"] button').click()
    page.wait_for_url(f"**{LIST}{name}/change/")
    assert room.call("GET", f"/agents/{name}")["enabled"] is True

    page.locator(f'a[href="{LIST}{name}/delete/"]').click()
    _save(page)
    page.wait_for_url(f"**{LIST}")
    assert name not in [each["id"] for each in room.call("GET", "/agents")]


def test_a_node_in_use_is_kept_and_names_who_uses_it(
    page_as: PageAs, room: Product
) -> None:
    page = page_as("administrator")
    page.goto(f"{LIST}local/delete/")
    expect(page.locator("#content-main form")).to_have_count(0)
    # The first of them by name: other tests have made some in this room.
    link = page.locator("ul.links a").first
    name = link.inner_text()
    disks = room.call("GET", f"/workers/{name}")["disks"]
    assert "local" in [each["agent"] for each in disks]
    link.click()
    page.wait_for_url(f"**/admin/workers/worker/{name}/change/")


@pytest.mark.parametrize(("lang", "js"), WAYS)
def test_targets_are_made_opened_scanned_and_deleted(
    page_as: PageAs,
    register: Register,
    room: Product,
    node: RealNode,
    lang: str,
    js: bool,
) -> None:
    ours = register("box", node.base_url, token=node.token)
    master = node.image(f"{node.name()}_tpl_1.img")
    stem = node.name()
    root = f"{LIST}{ours}/"
    page = page_as("operator", lang, js=js)
    page.goto(f"{root}change/")
    page.locator(f'a[href="{root}luns/disk/add/"]').click()
    page.fill("#id_name", f"{stem}.debian")
    page.check('input[name=source][value="empty"]')
    page.fill("#id_size", "3M")
    _save(page)
    page.wait_for_url(f"**{root}change/")
    page.goto(f"{root}luns/disk/add/")
    page.fill("#id_name", f"{stem}.ubuntu")
    page.check('input[name=source][value="master"]')
    page.select_option("#id_master", master.name)
    _save(page)
    page.wait_for_url(f"**{root}change/")
    page.goto(f"{root}change/?search={stem}")
    rows = page.locator("#content-main table.grid tbody tr", has_text=stem)
    expect(rows).to_have_count(2)
    empty = f"{BASE}:{stem}.debian"
    row = rows.filter(has_text=empty)
    expect(row).to_contain_text("3 MiB")
    _usable(page, js)
    assert_fits(page)

    row.locator('a[href*="luns/access"]').click()
    page.check('input[name=access][value="off"]')
    _save(page)
    page.wait_for_url(f"**{root}change/")
    assert node.targets()[empty]["access"] == "off"

    page.goto(f"{root}change/?search={stem}")
    row.locator('a[href*="luns/delete"]').click()
    page.check("#id_delete_file")
    _usable(page, js)
    _save(page)
    page.wait_for_url(f"**{root}change/")
    assert empty not in node.targets()
    assert not (node.folder / f"{stem}.debian.img").exists()

    node.image(f"{stem}.centos.img")
    page.locator(f'a[href="{root}scan/"]').click()
    _save(page)
    page.wait_for_url("**/admin/jobs/*/")
    expect(page.locator("#content-main")).to_contain_text(
        f"{BASE}:{stem}.centos", timeout=20_000
    )
    page.goto(f"{root}log/")
    expect(page.locator("table.grid")).to_contain_text(f"{stem}.debian")
    _usable(page, js)
    page.goto(f"{root}images/")
    row = page.locator("table.grid tbody tr", has_text=f"{stem}.centos.img")
    expect(row).to_contain_text(f"{BASE}:{stem}.centos")
    _usable(page, js)


def test_a_workers_disk_leads_to_the_worker(page_as: PageAs) -> None:
    page = page_as("operator")
    page.goto(f"{LIST}local/change/?search=worker-02")
    row = page.locator("table.grid tbody tr", has_text="worker-02.ubuntu")
    expect(row.locator('a[href*="luns/delete"]')).to_have_count(0)
    row.locator("a.button").click()
    page.wait_for_url("**/admin/workers/worker/worker-02/change/")


def test_what_the_backend_cannot_is_greyed_and_says_why(page_as: PageAs) -> None:
    page = page_as("operator")
    page.goto(f"{LIST}local/change/")
    button = page.locator("button[aria-describedby=no-cd]")
    expect(button).to_be_disabled()
    expect(page.locator("#no-cd")).to_contain_text("files")


@pytest.mark.tgtd
@pytest.mark.parametrize(("lang", "js"), [("en", True), ("zh", False)])
def test_a_cd_is_put_in_and_whoever_is_connected_is_named_before_a_deletion(
    page_as: PageAs, register: Register, stgt_node: RealNode, lang: str, js: bool
) -> None:
    assert stgt_node.tgtd
    ours = register(
        "tgt",
        stgt_node.base_url,
        token=stgt_node.token,
        role={"disk": True, "cd": True},
    )
    root = f"{LIST}{ours}/"
    iso = stgt_node.image(f"{stgt_node.name()}.iso", 4096)
    stem = stgt_node.name()
    page = page_as("operator", lang, js=js)
    page.goto(f"{root}luns/cd/add/")
    page.select_option("#id_iso", iso.name)
    page.fill("#id_name", f"{stem}.windows.iso")
    _save(page)
    page.wait_for_url(f"**{root}change/")
    row = page.locator("tbody tr", has_text=f"{stem}.windows.iso")
    expect(row).to_contain_text("4 KiB")

    iqn = f"{BASE}:{stem}.debian"
    page.goto(f"{root}luns/disk/add/")
    page.fill("#id_name", f"{stem}.debian")
    page.check('input[name=source][value="empty"]')
    page.fill("#id_size", "1M")
    _save(page)
    page.wait_for_url(f"**{root}change/")
    with node_lab.session(stgt_node.tgtd, iqn):
        page.goto(f"{root}change/")
        row = page.locator("tbody tr", has_text=iqn)
        expect(row).to_contain_text("127.0.0.1")
        row.locator('a[href*="luns/delete"]').click()
        expect(page.locator(".notice.danger")).to_contain_text(f"{BASE}:{stem}")
        page.allowed = ["409"]
        _save(page)
        expect(page.locator(".errorlist")).to_contain_text(f"{BASE}:{stem}")
        assert iqn in stgt_node.targets()
        page.check("#id_force")
        _save(page)
        page.wait_for_url(f"**{root}change/")
    assert iqn not in stgt_node.targets()


@pytest.mark.parametrize("js", [True, False])
def test_a_file_with_an_odd_name_is_shown_as_text_and_its_button_deletes_it(
    page_as: PageAs, register: Register, node: RealNode, js: bool
) -> None:
    ours = register("odd", node.base_url, token=node.token)
    name = f'<b>&amp;"q"\'s 100%25+\u202e{node.name()}.qcow2'
    file = node.image(name)
    page = page_as("operator", js=js)
    page.goto(f"{LIST}{ours}/images/")
    row = page.locator("table.grid tbody tr", has_text="&amp;")
    expect(row.locator("th")).to_contain_text('<b>&amp;"q"\'s 100%25+\\u202e')
    row.locator("a.danger").click()
    expect(page.locator("ul.goes")).to_contain_text("100%25+")
    _save(page)
    page.wait_for_url(f"**{LIST}{ours}/images/")
    assert not file.exists()


def test_every_page_of_a_node_is_good_to_use_in_every_look(
    page_as: PageAs, every_look: list[dict[str, Any]], room: Product
) -> None:
    iqn = f"{BASE}:spare-{os.getpid()}.debian"
    room.call("POST", "/agents/local/luns/disk", {"iqn": iqn, "size": "1M"})
    paths = ["", "?live=1", "add/"]
    paths += [
        f"local/{path}"
        for path in (
            "change/",
            "edit/",
            "delete/",
            "log/",
            "scan/",
            "images/",
            "luns/disk/add/",
            "luns/cd/add/",
            f"luns/delete/?iqn={quote(iqn)}",
            f"luns/access/?iqn={quote(iqn)}",
        )
    ]
    try:
        for look in every_look:
            page = page_as("administrator", **look)
            for path in paths:
                answer = page.goto(LIST + path)
                assert answer is not None
                assert answer.status == 200, path
                assert_fits(page)
                assert_accessible(page)
    finally:
        room.call("DELETE", f"/agents/local/luns?iqn={quote(iqn)}&delete_file=true")
