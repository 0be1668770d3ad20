"""Workers in the browser: found, registered in two steps, changed and deleted, in both languages, with scripts and without."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PageAs, Register
from tests.browser.looking import assert_accessible, assert_fits
from tests.browser.product import MASTERS, Product
from tests.browser.windows import follow
from tests.nodes import BASE, RealNode, stgt_node

__all__ = ["stgt_node"]
LIST = "/admin/workers/worker/"
WAYS = [("en", True), ("zh", True), ("en", False), ("zh", False)]
ways = pytest.mark.parametrize(("lang", "js"), WAYS)


def at(worker_id: str, page: str = "change/") -> str:
    return f"{LIST}{worker_id}/{page}"


def assert_ids(page: Page, *found: str) -> None:
    """The workers of the list, once it is there."""
    expect(page.locator("#result_list tbody th a")).to_have_text(list(found))


def assert_first(page: Page, worker_id: str) -> None:
    """The worker at the top of the list, once it is there."""
    expect(page.locator("#result_list tbody th a").first).to_have_text(worker_id)


def send(page: Page) -> None:
    """The button of the page's own form."""
    follow(page, page.locator("#content-main form button[type=submit]").first)


def record(room: Product, worker_id: str) -> dict[str, Any]:
    return dict(room.call("GET", f"/workers/{worker_id}"))


def targets(node: RealNode, iqn: str) -> list[Any]:
    """The node's targets with this name: one or none."""
    return [each for name, each in node.targets().items() if name == iqn]


# --- the list ---------------------------------------------------------------------


@ways
def test_somebody_finds_workers_by_words_and_filters(
    lang: str, js: bool, page_as: PageAs
) -> None:
    page = page_as("viewer", lang, js=js)
    page.goto(LIST)
    page.fill("#searchbar", "52:54:00:12:34:03")
    page.press("#searchbar", "Enter")
    assert_ids(page, "worker-03")
    page.fill("#searchbar", "")
    page.select_option("#filter-os", "windows")
    page.select_option("#filter-agent", "local")
    page.select_option("#filter-state", "ready")
    page.locator("form.filters button").click()
    assert_ids(page, "worker-01")
    # What was chosen is still chosen.
    expect(page.locator("#filter-os")).to_have_value("windows")
    page.locator("form.filters a.button").click()
    page.select_option("#filter-has_disk", "false")
    page.select_option("#filter-default_os", "none")
    page.fill("#searchbar", "front")
    page.locator("form.filters button").click()
    assert_ids(page, "front-desk")
    page.fill("#searchbar", "nobody at all")
    page.locator("form.filters button").click()
    expect(page.locator(".empty")).to_be_visible()


def test_somebody_orders_by_a_column_and_keeps_the_filter(page_as: PageAs) -> None:
    page = page_as("viewer")
    page.goto(f"{LIST}?q=worker-0")
    head = page.locator("#result_list thead")
    head.get_by_role("link", name="MAC").click()
    assert_first(page, "worker-01")
    page.locator("#result_list thead th", has_text="MAC").get_by_role("link").click()
    assert_first(page, "worker-06")  # its address ends in 66
    expect(page.locator("th[aria-sort=descending]")).to_have_text(
        re.compile(r"^\s*MAC")
    )
    expect(page.locator("#searchbar")).to_have_value("worker-0")
    expect(page.locator("#result_list")).not_to_contain_text("front-desk")


@ways
def test_somebody_switches_registration_above_the_list(
    lang: str, js: bool, page_as: PageAs, room: Product
) -> None:
    page = page_as("operator", lang, js=js)
    page.goto(LIST)
    before = room.call("GET", "/settings/auto-register")["enabled"]
    for wanted in (not before, before):
        follow(page, page.locator(".switch button"))
        expect(page).to_have_url(re.compile(f"{LIST}$"))
        assert room.call("GET", "/settings/auto-register")["enabled"] is wanted


# --- a new worker ------------------------------------------------------------------


@ways
def test_somebody_registers_a_worker_with_a_disk_of_a_master(
    lang: str, js: bool, page_as: PageAs, room: Product
) -> None:
    page = page_as("operator", lang, js=js)
    page.goto(LIST)
    page.locator(".head a.default").click()
    proposed = page.input_value("#id_worker_id")
    assert re.fullmatch(r"worker-\d\d", proposed)
    name = f"new-{lang}-{'js' if js else 'plain'}"
    page.fill("#id_worker_id", name)
    page.fill("#id_mac", "no mac")
    send(page)
    expect(page.locator(".field-mac .errorlist")).to_be_visible()
    number = WAYS.index((lang, js))
    page.fill("#id_mac", f"52-54-00-cc-00-{number:02x}")
    send(page)
    expect(page.locator("ol.steps [aria-current=step]")).to_be_visible()
    expect(page).to_have_url(re.compile("/disk/add/"))
    page.locator("input[name=type][value=master]").check()
    if js:
        expect(page.locator(".field-size")).to_be_hidden()
    page.select_option("#id_os", "debian")
    page.select_option("#id_master", f"local/{next(iter(MASTERS))}")
    send(page)
    page.wait_for_url(f"**{at(name)}")
    expect(page.locator("#disk-debian")).to_be_visible()
    made = record(room, name)
    assert made["default_os"] == "debian"
    assert made["disks"][0]["source"]["type"] == "master"


@pytest.mark.parametrize("js", [True, False])
def test_somebody_registers_one_without_a_disk_and_gives_it_an_empty_one_later(
    js: bool, page_as: PageAs, room: Product
) -> None:
    page = page_as("operator", js=js)
    page.goto(f"{LIST}add/")
    name = f"late-{'js' if js else 'plain'}"
    page.fill("#id_worker_id", name)
    page.fill("#id_mac", f"52:54:00:cd:00:0{int(js)}")
    send(page)
    page.locator("input[name=type][value=none]").check()
    if js:
        expect(page.locator(".field-os")).to_be_hidden()
    send(page)
    page.wait_for_url(f"**{at(name)}")
    page.goto(at(name, "disk/add/"))
    page.locator("input[name=type][value=empty]").check()
    send(page)
    expect(page.locator(".field-size .errorlist")).to_be_visible()
    page.fill("#id_size", "3M")
    page.select_option("#id_os", "centos")
    send(page)
    page.wait_for_url(f"**{at(name)}")
    assert record(room, name)["disks"][0]["source"] == {
        "type": "empty",
        "size": 3 << 20,
    }


# --- the worker's page ----------------------------------------------------------------


@pytest.fixture
def pc(room: Product) -> str:
    """A worker with two disks of one's own."""
    name = room.worker()
    for os in ("ubuntu", "debian"):
        spec = {"type": "master", "os": os, "name": "ubuntu_tpl_24.04.img"}
        room.call("POST", f"/workers/{name}/luns/disk", spec)
    return name


def test_the_nodes_fill_the_page_in_by_themselves(page_as: PageAs, pc: str) -> None:
    page = page_as("viewer")
    page.goto(at(pc))
    part = page.locator("[data-part=disk-ubuntu]")
    expect(part).to_contain_text("48 MiB")
    expect(page).to_have_url(re.compile(f"{at(pc)}$"))


def test_without_a_script_a_link_asks_the_nodes(page_as: PageAs, pc: str) -> None:
    page = page_as("viewer", js=False)
    page.goto(at(pc))
    part = page.locator("[data-part=disk-ubuntu]")
    expect(part).not_to_contain_text("48 MiB")
    page.locator("p.live a").click()
    expect(part).to_contain_text("48 MiB")


def test_a_node_that_hangs_does_not_keep_the_page_away(
    page_as: PageAs, own_room: Product
) -> None:
    ledger = own_room.root / "state" / "workers.yml"
    text = ledger.read_text()
    assert "agent: local" in text
    ledger.write_text(text.replace("agent: local", "agent: gone"))
    own_room.call(
        "POST",
        "/agents",
        {
            "id": "gone",
            "base_url": "http://127.0.0.1:9",
            "iscsi_server": "192.0.2.1",
            "token": "t",
        },
    )
    page = page_as("operator", product=own_room)
    page.goto(at("worker-01"))
    expect(page.locator("#disk-ubuntu")).to_be_visible()
    expect(page.locator("[data-part=disk-ubuntu] .bad")).to_be_visible()


@ways
def test_somebody_changes_the_mac_and_sees_its_history(
    lang: str, js: bool, page_as: PageAs, room: Product
) -> None:
    name = room.worker()
    old = record(room, name)["mac"]
    page = page_as("operator", lang, js=js)
    page.goto(at(name))
    page.fill("#identity #id_mac", "nonsense")
    page.locator("#identity button").click()
    expect(page.locator("#identity .errorlist")).to_be_visible()
    number = WAYS.index((lang, js))
    page.fill("#identity #id_mac", f"52-54-00-ce-00-0{number}")
    page.locator("#identity button").click()
    page.wait_for_url(f"**{at(name)}")
    assert record(room, name)["mac"] == f"52:54:00:ce:00:0{number}"
    page.locator("#identity summary").click()
    expect(page.locator("#identity tbody")).to_contain_text(old)


@ways
def test_somebody_sets_what_boots_and_sees_what_firmware_is_told(
    lang: str, js: bool, page_as: PageAs, pc: str, room: Product
) -> None:
    page = page_as("operator", lang, js=js)
    page.goto(at(pc))
    page.select_option("#id_default_os", "debian")
    page.fill("#id_menu_timeout", "7000")
    page.locator("#boot button").click()
    page.wait_for_url(f"**{at(pc)}")
    told = page.locator("#boot-variables pre").first
    expect(told).to_contain_text("set menu-default debian")
    expect(told).to_contain_text("set menu-timeout 7000")
    page.locator("#boot-variables summary").click()
    expect(page.locator("#boot-variables details pre")).to_contain_text('"menu_default": "debian"')  # fmt: skip
    page.locator("#disk-ubuntu footer form button").click()
    assert record(room, pc)["default_os"] == "ubuntu"


@ways
def test_somebody_grows_resets_and_deletes_a_disk(
    lang: str, js: bool, page_as: PageAs, pc: str, room: Product
) -> None:
    page = page_as("operator", lang, js=js)
    page.goto(at(pc))
    page.locator("#disk-debian a[href$='/grow/']").click()
    page.fill("#id_size", "1M")
    send(page)
    expect(page.locator(".errorlist")).to_be_visible()
    page.fill("#id_size", "80M")
    send(page)
    page.wait_for_url(f"**{at(pc)}")
    image = room.root / "images" / f"{pc}.debian.img"
    assert image.stat().st_size == 80 << 20
    page.locator("#disk-debian a[href$='/reset/']").click()
    page.select_option("#id_master", "windows_tpl_11.img")
    send(page)
    page.wait_for_url(f"**{at(pc)}")
    source = {disk["os"]: disk["source"] for disk in record(room, pc)["disks"]}
    assert source["debian"]["name"] == "windows_tpl_11.img"
    page.locator("#disk-debian a[href$='/delete/']").click()
    expect(page.locator("ul.goes").first).to_contain_text(f"{pc}.debian")
    page.check("#id_delete_file")
    send(page)
    page.wait_for_url(f"**{at(pc)}")
    expect(page.locator("#disk-debian")).to_have_count(0)
    assert not image.exists()


@ways
def test_a_missing_target_is_tolerated_once_that_is_ticked(
    lang: str, js: bool, page_as: PageAs, pc: str, room: Product
) -> None:
    (iqn,) = [d["iqn"] for d in record(room, pc)["disks"] if d["os"] == "ubuntu"]
    room.call("DELETE", f"/agents/local/luns?iqn={iqn}")
    page = page_as("operator", lang, js=js)
    page.goto(at(pc, "disk/ubuntu/delete/"))
    send(page)
    expect(page.locator(".errorlist")).to_contain_text(iqn)
    page.check("#id_ignore_missing_target")
    send(page)
    page.wait_for_url(f"**{at(pc)}")
    assert [disk["os"] for disk in record(room, pc)["disks"]] == ["debian"]


@ways
def test_somebody_sets_the_access(
    lang: str, js: bool, page_as: PageAs, pc: str, room: Product
) -> None:
    page = page_as("operator", lang, js=js)
    page.goto(at(pc))
    page.locator("#access a").click()
    page.select_option("#id_access", "off")
    send(page)
    page.wait_for_url(f"**{at(pc)}")
    assert record(room, pc)["access"] == "off"


def test_a_node_that_has_no_drive_says_so_where_a_cd_is_attached(
    page_as: PageAs,
) -> None:
    page = page_as("operator")
    page.goto(at("worker-08"))
    page.locator("a[href$='/cd/attach/']").click()
    expect(page.locator("#content-main")).to_contain_text("local: takes no install CDs")


@pytest.fixture
def bare(room: Product, register: Register) -> Iterator[str]:
    """A worker without a disk; it goes before the nodes that the test registered."""
    name = room.worker()
    yield name
    room.call("DELETE", f"/workers/{name}")


@pytest.mark.tgtd
@ways
def test_an_iso_of_a_node_becomes_the_install_cd_and_is_detached_again(
    lang: str,
    js: bool,
    page_as: PageAs,
    room: Product,
    register: Register,
    stgt_node: RealNode,
    bare: str,
) -> None:
    role = {"disk": False, "cd": True}
    ours = register("cds", stgt_node.base_url, token=stgt_node.token, role=role)
    iso = stgt_node.image(f"{stgt_node.name('win')}.iso", content=b"iso")
    iqn = f"{BASE}:{bare}.windows.iso"
    state = {"en": ("registered", "installing"), "zh": ("已注册", "安装中")}[lang]
    page = page_as("operator", lang, js=js)
    page.goto(at(bare))
    badge = page.locator("#identity .badge")
    expect(badge).to_have_text(state[0])
    page.locator("a[href$='/cd/attach/']").click()
    page.select_option("#id_iso", f"{ours}/{iso.name}")
    send(page)
    page.wait_for_url(f"**{at(bare)}")
    for words in (ours, iso.name, iqn):
        expect(page.locator("#cd")).to_contain_text(words)
    expect(badge).to_have_text(state[1])
    # One at a time.
    expect(page.locator("a[href$='/cd/attach/']")).to_have_count(0)
    expect(page.locator("#boot-variables pre").first).to_contain_text(f"set cd-iqn {iqn}")  # fmt: skip
    (lun,) = [each["luns"][0] for each in targets(stgt_node, iqn)]
    assert (lun["type"], lun["backing"]) == ("cd", str(iso))
    made = record(room, bare)
    assert (made["state"], made["cd"]["agent"]) == ("installing", ours)

    page.locator("#cd a[href$='/cd/detach/']").click()
    expect(page.locator("ul.goes").first).to_contain_text(iqn)
    expect(page.locator("ul.stays")).to_contain_text(iso.name)
    send(page)
    page.wait_for_url(f"**{at(bare)}")
    expect(page.locator("#cd")).to_have_count(0)
    expect(badge).to_have_text(state[0])
    expect(page.locator("a[href$='/cd/attach/']")).to_be_visible()
    assert targets(stgt_node, iqn) == []
    assert iso.exists()
    assert record(room, bare)["cd"] is None


def test_an_install_cd_is_detached(page_as: PageAs, own_room: Product) -> None:
    ledger = own_room.root / "state" / "workers.yml"
    cd = {
        "agent": "local",
        "iqn": "iqn.2026-07.com.controller:hand.cd",
        "iso": "w.iso",
        "backing": "",
    }
    hand = json.dumps({"hostname": "hand", "cd": cd})
    ledger.write_text(f"{ledger.read_text()}  hand: {hand}\n")
    page = page_as("operator", product=own_room)
    page.goto(at("hand"))
    expect(page.locator("#cd")).to_contain_text("w.iso")
    page.locator("#cd a[href$='/cd/detach/']").click()
    expect(page.locator("ul.stays")).to_contain_text("w.iso")
    send(page)
    page.wait_for_url(f"**{at('hand')}")
    assert record(own_room, "hand")["cd"] is None


@ways
def test_somebody_deletes_a_worker_and_reads_what_became_of_it(
    lang: str, js: bool, page_as: PageAs, pc: str, room: Product
) -> None:
    page = page_as("operator", lang, js=js)
    page.goto(at(pc))
    page.locator(".head a.danger").click()
    goes = page.locator("ul.goes").first
    for words in ("dhcp-hosts.conf", f"{pc}.ubuntu", f"{pc}.debian.img"):
        expect(goes).to_contain_text(words)
    send(page)
    page.wait_for_url(f"**{at(pc, 'deleted/')}")
    for os in ("ubuntu", "debian"):
        expect(page.locator("table.grid tbody")).to_contain_text(f"{pc}.{os}")
        assert (room.root / "images" / f"{pc}.{os}.img").exists()
    page.locator("#content-main a.default").click()
    page.fill("#searchbar", pc)
    page.press("#searchbar", "Enter")
    expect(page.locator(".empty")).to_be_visible()


# --- looks ---------------------------------------------------------------------------

HOSTILE = "<b onclick='x'>\"&amp;</b>'\u05d0\u202e/\u0007"


def test_hostile_text_is_text_and_its_buttons_work(
    page_as: PageAs, own_room: Product
) -> None:
    ledger = own_room.root / "state" / "workers.yml"
    disk = {
        "agent": HOSTILE,
        "iqn": "iqn.2026-07.com.controller:odd.debian",
        "os": "debian",
        "filename": HOSTILE,
        "source": {"type": "master", "name": HOSTILE},
    }
    odd = json.dumps({"hostname": "odd", "arch": HOSTILE, "disks": [disk]})
    ledger.write_text(f"{ledger.read_text()}  odd: {odd}\n")
    page = page_as("operator", product=own_room)
    for address in (LIST, at("odd"), at("odd", "disk/debian/delete/")):
        page.goto(address)
        assert page.locator("b[onclick]").count() == 0
        assert_fits(page)
    page.goto(at("odd"))
    expect(page.locator("#disk-debian")).to_contain_text("<b onclick='x'>")
    expect(page.locator("#disk-debian")).to_contain_text("\\u202e")
    page.locator("#disk-debian footer form button").click()
    assert record(own_room, "odd")["default_os"] == "debian"
    for route in ("grow", "reset", "delete"):
        page.goto(at("odd"))
        page.locator(f"#disk-debian a[href$='/{route}/']").click()
        expect(page.locator("#content-main form")).to_be_visible()
    page.check("#id_forget")
    send(page)
    page.wait_for_url(f"**{at('odd')}")
    assert record(own_room, "odd")["disks"] == []


@pytest.mark.parametrize("path", [LIST, at("worker-01", "change/?live=1")])
def test_pages_of_workers_fit_a_small_phone(path: str, page_as: PageAs) -> None:
    page = page_as("operator", width=360)
    page.goto(path)
    assert_fits(page)
    assert_accessible(page)


def test_everything_on_a_workers_page_is_reached_by_keyboard(
    page_as: PageAs, pc: str
) -> None:
    page = page_as("operator")
    page.goto(at(pc))
    reached = set()
    for _ in range(80):
        page.keyboard.press("Tab")
        reached.add(
            page.evaluate(
                "document.activeElement.name || document.activeElement.getAttribute('href') || ''"
            )
        )
    assert {"mac", "default_os", "menu_default", "menu_timeout"} <= reached
    for route in ("disk/ubuntu/grow/", "disk/ubuntu/delete/", "cd/attach/", "delete/"):
        assert at(pc, route) in reached
