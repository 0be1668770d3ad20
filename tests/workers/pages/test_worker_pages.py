"""The list and the page of a worker: what they show, what their buttons do, and to whom they are closed."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from ipxeready.actors import Actor
from ipxeready.storage.paths import Layout
from tests.agents.node import node_lab
from tests.nodes import BASE, MIB, RealNode
from tests.workers.helpers import M1, M2, ledger, live_hosts, snapshot, trail
from tests.workers.page_helpers import LIST, at, logged_in, text_of
from workers.pages import common

Make = Callable[..., dict[str, Any]]
#: Markup, quotes, an apostrophe, right to left, an override, a control character.
HOSTILE = "<b onclick='x'>\"&amp;</b>'\u05d0\u202e/\u0007%2F"


@pytest.fixture
def page(
    layout: Layout, administrator: Actor, monkeypatch: pytest.MonkeyPatch
) -> Client:
    """A browser of an operator, who waits for disks."""
    monkeypatch.setattr(common, "PATIENCE", 30.0)
    return logged_in(administrator, "operator")


@pytest.fixture
def pc(api: APIClient, node: RealNode, worker: Make) -> str:
    """A worker with an empty debian disk on a node `n`."""
    node.register("n", access="acl")
    name = node.name()
    worker(name)
    _disk(api, name, "debian")
    return name


def _disk(api: APIClient, name: str, os: str) -> None:
    body = {"type": "empty", "os": os, "size": "2M", "disk_agent": "n"}
    answer = api.post(f"/workers/{name}/luns/disk", body)
    assert answer.status_code == 201, answer.json()


def rows(answer: Any) -> list[str]:
    """The workers of a list, in its order."""
    return [row["url"].split("/")[-3] for row in answer.context["table"]["rows"]]


# --- the list -------------------------------------------------------------------


@pytest.fixture
def room(layout: Layout) -> None:
    """Workers that differ in all that the list filters and orders by."""
    disk = {"iqn": f"{BASE}:b.debian", "os": "debian", "agent": "n2"}
    other = {"iqn": f"{BASE}:c.ubuntu", "os": "ubuntu", "agent": "n1"}
    records = {
        "a": {"hostname": "a"},
        "b": {"hostname": "b", "disks": [disk], "default_os": "debian"},
        "c": {"hostname": "c", "disks": [other], "access": "chap"},
        "d": {"hostname": "seat", "cd": {"agent": "n1", "iqn": f"{BASE}:seat.cd"}},
    }
    layout.workers_yml.write_text(json.dumps({"workers": records}))
    layout.dhcp_hosts.write_text(f"{M2},a\n{M1},c\n")


@pytest.mark.usefixtures("room")
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("", ["a", "b", "c", "d"]),
        ("q=seat", ["d"]),
        ("q=00:00:02", ["a"]),
        ("state=installing", ["d"]),
        ("has_disk=false", ["a", "d"]),
        ("os=ubuntu", ["c"]),
        ("agent=n2", ["b"]),
        ("default_os=none", ["a", "c", "d"]),
        ("access=chap", ["c"]),
        ("state=ready&has_disk=true&default_os=debian", ["b"]),
        ("state=&os=&agent=&q=", ["a", "b", "c", "d"]),
        # Words that nothing knows do not filter.
        ("state=asleep&os=%3Cb%3E", ["a", "b", "c", "d"]),
        # MAC-less ones come last whichever way.
        ("o=2", ["c", "a", "b", "d"]),
        ("o=-2", ["a", "c", "b", "d"]),
        ("o=5", ["c", "b", "a", "d"]),
        ("o=-5", ["b", "c", "a", "d"]),
        ("o=4", ["b", "a", "c", "d"]),
        ("o=-0", ["d", "c", "b", "a"]),
    ],
)
def test_the_list_is_searched_filtered_and_ordered(
    query: str, found: list[str], page: Client
) -> None:
    assert rows(page.get(f"{LIST}?{query}")) == found


def test_pages_are_as_long_as_is_chosen(page: Client, layout: Layout) -> None:
    names = [f"w{number:03d}" for number in range(60)]
    records = {name: {"hostname": name} for name in names}
    layout.workers_yml.write_text(json.dumps({"workers": records}))
    assert rows(page.get(f"{LIST}?per=25")) == names[:25]
    assert rows(page.get(f"{LIST}?per=25&p=3")) == names[50:]
    assert rows(page.get(f"{LIST}?per=7")) == names


def test_a_list_of_many_asks_as_often_as_one_of_few(
    page: Client, layout: Layout
) -> None:
    def asked(count: int) -> int:
        records = {}
        for number in range(count):
            disk = {"iqn": f"{BASE}:w{number}.debian", "os": "debian", "agent": "n"}
            records[f"w{number}"] = {"hostname": f"w{number}", "disks": [disk]}
        layout.workers_yml.write_text(json.dumps({"workers": records}))
        page.get(LIST)
        with CaptureQueriesContext(connection) as queries:
            page.get(LIST)
        return len(queries)

    assert asked(3) == asked(90)


def test_leases_say_when_a_machine_was_seen(
    page: Client, worker: Make, layout: Layout, settings: Any
) -> None:
    import dataclasses

    worker("pc", mac=M1)
    leases = layout.root / "leases"
    leases.write_text(f"0 {M1} 192.0.2.7 pc *\n")
    settings.IPXE = dataclasses.replace(settings.IPXE, dnsmasq_leases=leases)
    for address in (LIST, at("pc")):
        assert "192.0.2.7, without end" in text_of(page.get(address))


def test_the_switch_for_unknown_machines_leads_back_to_the_list(
    page: Client, layout: Layout
) -> None:
    assert "Zero-touch registration: on" in text_of(page.get(LIST))
    address = "/admin/bootvars/setting/"
    answer = page.post(address, {"enabled": "false", "next": LIST})
    assert answer["Location"] == LIST
    assert "Zero-touch registration: off" in text_of(page.get(LIST))
    answer = page.post(address, {"enabled": "true", "next": "//evil.example/"})
    assert answer["Location"] == address
    for odd in ({}, {"enabled": ""}, {"enabled": "on"}):
        answer = page.post(address, {**odd, "next": LIST}, follow=True)
        assert "Enabled: must be true, false, 1 or 0" in text_of(answer)
        assert "Zero-touch registration: on" in text_of(page.get(LIST))


@pytest.mark.parametrize("search", ["x" * 10_001, "a " * 11])
def test_a_search_that_cannot_be_made_finds_nothing_and_says_why(
    page: Client, pc: str, search: str
) -> None:
    answer = page.get(LIST, {"q": search})
    assert rows(answer) == []
    assert "Search: " in text_of(answer)
    assert "at most" in text_of(answer)
    answer = page.post(
        "/admin/board/plan/", {"all": "1", "filters": f"search={search}"}
    )
    assert answer.status_code == 400
    assert "search" in answer.json()["detail"]


# --- the worker's page ------------------------------------------------------------


def test_a_page_does_not_wait_for_a_node_that_is_dead(
    page: Client, pc: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def never(*_: Any, **__: Any) -> Any:
        raise AssertionError("a node was asked")

    with monkeypatch.context() as patched:
        patched.setattr("agents.client.NodeClient._exchange", never)
        text = text_of(page.get(at(pc)))
    assert "not asked yet" in text
    assert f'href="{at(pc)}?live=1"' in text
    text = text_of(page.get(f"{at(pc)}?live=1"))
    assert "2 MiB" in text
    assert "nobody" in text


@pytest.mark.usefixtures("impatient")
def test_what_a_node_does_not_say_is_said(
    page: Client, pc: str, node: RealNode, api: APIClient
) -> None:
    from agents.services import agent_update
    from ipxeready.actors import SYSTEM

    api.delete(f"/agents/n/luns?iqn={BASE}:{pc}.debian")
    assert "the target is missing" in text_of(page.get(f"{at(pc)}?live=1"))
    agent_update(actor=SYSTEM, agent_id="n", base_url="http://127.0.0.1:9", token="t")
    assert "does not answer" in text_of(page.get(f"{at(pc)}?live=1"))


@pytest.mark.tgtd
def test_who_is_connected_stands_on_the_page_with_the_time(
    page: Client, stgt_node: RealNode, api: APIClient, worker: Make
) -> None:
    stgt_node.register("n", access="acl")
    name = stgt_node.name()
    worker(name)
    _disk(api, name, "debian")
    assert stgt_node.tgtd
    with node_lab.session(stgt_node.tgtd, f"{BASE}:{name}.debian"):
        text = text_of(page.get(f"{at(name)}?live=1"))
        assert f"{BASE}:{name} (127.0.0.1), 20" in text
        for what in ("grow", "reset"):
            asked = text_of(page.get(at(name, f"disk/debian/{what}/")))
            assert "shut the machine down first" in asked
            assert f"{BASE}:{name} (127.0.0.1), 20" in asked
        refused = page.post(at(name, "disk/debian/grow/"), {"size": "4M"})
        assert "in use" in text_of(refused)


def test_the_mac_is_changed_and_its_history_kept(
    page: Client, pc: str, layout: Layout
) -> None:
    old = live_hosts(layout)[0].split(",")[0]
    assert page.post(at(pc, "mac/"), {"mac": M1})["Location"] == at(pc)
    assert live_hosts(layout) == [f"{M1},{pc}"]
    text = text_of(page.get(at(pc)))
    assert "1 change of the MAC" in text
    assert f'<td class="one">{old}</td><td class="one">{M1}</td>' in text
    page.post(at(pc, "mac/"), {"mac": M1})
    assert "1 change of the MAC" in text_of(page.get(at(pc)))
    before = snapshot(layout)
    answer = page.post(at(pc, "mac/"), {"mac": "<b>"})
    assert answer.status_code == 200
    assert list(answer.context["mac_form"].errors) == ["mac"]
    assert snapshot(layout) == before
    # The language is switched there, or the session had ended.
    for place in ("mac/", "boot/", "disk/debian/default/"):
        assert page.get(at(pc, place))["Location"] == at(pc)


def test_what_boots_is_set_and_a_stale_form_refused(
    page: Client, pc: str, layout: Layout
) -> None:
    digest = page.get(at(pc)).context["record_digest"]
    form = {
        "record_digest": digest,
        "default_os": "debian",
        "menu_default": "shell",
        "menu_timeout": "7000",
    }
    assert page.post(at(pc, "boot/"), form)["Location"] == at(pc)
    record = ledger(layout)[pc]
    assert record["default_os"] == "debian"
    assert record["boot"] == {"menu_default": "shell", "menu_timeout": 7000}
    # A field that is not sent stays as it is.
    assert page.post(at(pc, "boot/"), {"menu_timeout": "0"})["Location"] == at(pc)
    record = ledger(layout)[pc]
    assert record["default_os"] == "debian"
    assert record["boot"] == {"menu_default": "shell", "menu_timeout": 0}
    assert page.post(at(pc, "boot/"), {"menu_default": ""})["Location"] == at(pc)
    assert ledger(layout)[pc]["boot"] == {"menu_timeout": 0}
    assert "give at least one of" in text_of(page.post(at(pc, "boot/"), {}))
    before = snapshot(layout)
    answer = page.post(at(pc, "boot/"), {**form, "menu_timeout": "1"})
    assert "has been changed since you opened the form" in text_of(answer)
    answer = page.post(at(pc, "boot/"), {"default_os": "windows"})
    assert list(answer.context["boot_form"].errors) == ["default_os"]
    for odd in ("1_0", "+5", "\uff11\uff12", "5.0", "1e3", "-1", "9" * 5000):
        answer = page.post(at(pc, "boot/"), {"menu_timeout": odd})
        assert list(answer.context["boot_form"].errors) == ["menu_timeout"], odd
    assert snapshot(layout) == before


def test_a_conflict_of_the_binding_is_said(
    page: Client, pc: str, layout: Layout
) -> None:
    with layout.dhcp_hosts.open("a") as file:
        file.write(f"{M2},{pc}\n")
    text = text_of(page.get(at(pc)))
    assert "Two machines are bound to this hostname" in text
    assert "two machines are bound to the hostname" in text  # what firmware is told
    assert text.count('badge bad">conflict') == 2


def test_the_page_shows_what_firmware_will_be_told_and_no_secret(
    page: Client, pc: str, api: APIClient, layout: Layout
) -> None:
    api.put(f"/workers/{pc}/default-os", {"os": "debian"})
    api.put(f"/workers/{pc}/access", {"access": "chap"})
    mac = live_hosts(layout)[0].split(",")[0]
    text = text_of(page.get(at(pc)))
    told = api.get(f"/boot-vars?mac={mac}").content.decode()
    script = told.split("echo ")[0].strip()
    assert "set menu-default debian" in script
    assert script in text
    assert '"menu_default": "debian"' in text
    assert "told its name and secret" in text
    secret = (layout.config / "chap-secrets.yml").read_text().split("secret:")[1]
    assert secret.split()[0].strip("'\"") not in text
    # Looking is no boot: nothing was noted.
    assert trail(layout, "boot.no_secret") == trail(layout, "boot.no_secret")[:1]


def test_a_disk_becomes_the_default_grows_is_reset_and_goes(
    page: Client, pc: str, node: RealNode, layout: Layout
) -> None:
    page.post(at(pc, "disk/debian/default/"))
    assert ledger(layout)[pc]["default_os"] == "debian"
    page.post(at(pc, "disk/debian/grow/"), {"size": "4M"})
    image = node.folder / f"{pc}.debian.img"
    assert image.stat().st_size == 4 * MIB
    answer = page.post(at(pc, "disk/debian/grow/"), {"size": "1M"})
    assert "size" in answer.context["form"].errors or "larger" in text_of(answer)
    answer = page.post(at(pc, "disk/debian/reset/"), {"master": ""})
    assert "name the one to reset it to" in text_of(answer)
    master = f"{pc}_tpl_1.img"
    node.image(master, 2 * MIB, b"system")
    question = page.get(at(pc, "disk/debian/reset/"))
    assert f'value="{master}"' in question.content.decode()
    assert "it has its master's size afterwards" in text_of(question)
    answer = page.post(at(pc, "disk/debian/reset/"), {"master": master})
    assert answer["Location"] == at(pc)
    assert image.read_bytes()[:6] == b"system"
    assert image.stat().st_size == 2 * MIB
    page.post(at(pc, "disk/debian/delete/"), {})
    assert ledger(layout)[pc]["disks"] == []
    assert image.exists()


def test_a_missing_target_is_tolerated_when_that_is_ticked(
    page: Client, pc: str, api: APIClient, layout: Layout
) -> None:
    api.delete(f"/agents/n/luns?iqn={BASE}:{pc}.debian")
    answer = page.post(at(pc, "disk/debian/delete/"), {})
    assert "has no target" in text_of(answer)
    page.post(at(pc, "disk/debian/delete/"), {"ignore_missing_target": "on"})
    assert ledger(layout)[pc]["disks"] == []


@pytest.mark.tgtd
def test_an_install_cd_is_attached_and_detached(
    page: Client, stgt_node: RealNode, worker: Make, layout: Layout
) -> None:
    name = stgt_node.name()
    iso = f"{name}.iso"
    stgt_node.image(iso, content=b"iso")
    stgt_node.register("cds", role={"disk": True, "cd": True})
    worker(name)
    assert f'value="cds/{iso}"' in page.get(at(name, "cd/attach/")).content.decode()
    page.post(at(name, "cd/attach/"), {"iso": f"cds/{iso}"})
    assert ledger(layout)[name]["cd"]["iso"] == iso
    text = text_of(page.get(f"{at(name)}?live=1"))
    assert "Detach" in text
    assert f"the ISO {iso}" in text_of(page.get(at(name, "cd/detach/")))
    page.post(at(name, "cd/detach/"), {})
    assert ledger(layout)[name]["cd"] is None
    assert (stgt_node.folder / iso).exists()


def test_a_node_without_a_drive_says_why_it_offers_no_iso(
    page: Client, pc: str
) -> None:
    assert "n: takes no install CDs" in text_of(page.get(at(pc, "cd/attach/")))
    answer = page.post(at(pc, "cd/attach/"), {"iso": "n/x.iso"})
    assert answer.status_code == 200
    assert answer.context["form"].errors


def test_a_deletion_tells_before_and_after(
    page: Client, pc: str, api: APIClient, node: RealNode, layout: Layout
) -> None:
    _disk(api, pc, "ubuntu")
    text = text_of(page.get(at(pc, "delete/")))
    for words in (
        f"the record of {pc} in state/workers.yml",
        f"{pc} in dhcp-hosts.conf",
        f"target {BASE}:{pc}.debian on node n",
        f"image {pc}.ubuntu.img, only if you tick it below",
        "images that you do not tick",
    ):
        assert words in text
    answer = page.post(at(pc, "delete/"), {"delete_file": "on"})
    assert answer["Location"] == at(pc, "deleted/")
    text = text_of(page.get(answer["Location"]))
    assert f"target {BASE}:{pc}.debian on node n" in text
    assert text.count("gone; its image too") == 2
    assert not (node.folder / f"{pc}.debian.img").exists()
    assert pc not in ledger(layout)
    assert page.get(at("nobody", "deleted/")).status_code == 404


@pytest.mark.parametrize(
    "place", ["delete/", "disk/debian/delete/", "disk/debian/reset/"]
)
def test_what_was_not_listed_is_not_deleted(
    page: Client, pc: str, api: APIClient, node: RealNode, layout: Layout, place: str
) -> None:
    form = {
        "record_digest": page.get(at(pc, place)).context["record_digest"],
        "delete_file": "on",
        "master": f"{pc}_tpl_1.img",
    }
    node.image(form["master"], 2 * MIB, b"system")
    _disk(api, pc, "ubuntu")
    answer = page.post(at(pc, place), form)
    assert "has been changed since you opened the form" in text_of(answer)
    assert len(ledger(layout)[pc]["disks"]) == 2
    assert (node.folder / f"{pc}.ubuntu.img").exists()
    # What stands there now may be answered.
    form["record_digest"] = answer.context["record_digest"]
    assert page.post(at(pc, place), form).status_code == 302


def test_a_deletion_that_stops_half_way_says_what_went_and_what_is_left(
    page: Client, pc: str, api: APIClient, node: RealNode, layout: Layout
) -> None:
    _disk(api, pc, "ubuntu")
    api.delete(f"/agents/n/luns?iqn={BASE}:{pc}.ubuntu")
    answer = page.post(at(pc, "delete/"), {})
    assert "has no target" in text_of(answer)
    assert len(ledger(layout)[pc]["disks"]) == 2
    answer = page.post(at(pc, "delete/"), {"ignore_missing_target": "on"})
    text = text_of(page.get(answer["Location"]))
    assert text.count("its image stays") == 2


def test_work_under_way_leads_to_its_job(
    page: Client, pc: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import threading

    from ipxeready.actors import SYSTEM
    from ipxeready.jobs.services import Work, job_start, job_wait

    release = threading.Event()
    work = Work(
        kind="worker.disk.reset",
        do=lambda watch: release.wait(30),
        about={"worker_ids": [pc]},
    )
    job = job_start(actor=SYSTEM, work=work)
    try:
        assert f"/admin/jobs/{job.id}/" in text_of(page.get(at(pc)))
        assert "Under way" not in text_of(page.get(at("front")))
    finally:
        release.set()
    job_wait(job.id, 20)
    assert "Under way" not in text_of(page.get(at(pc)))


# --- who may ----------------------------------------------------------------------

CHANGES = {
    "mac/": {"mac": M2},
    "boot/": {"menu_default": "shell"},
    "access/": {"access": "off"},
    "delete/": {},
    "disk/add/": {"type": "empty", "os": "ubuntu", "size": "2M"},
    "disk/debian/default/": {},
    "disk/debian/grow/": {"size": "4M"},
    "disk/debian/reset/": {"master": "x_tpl_.img"},
    "disk/debian/delete/": {},
    "cd/attach/": {"iso": "x.iso"},
    "cd/detach/": {},
}


def test_a_viewer_sees_everything_and_changes_nothing(
    pc: str, administrator: Actor, layout: Layout
) -> None:
    viewer = logged_in(administrator, "viewer")
    text = text_of(viewer.get(f"{at(pc)}?live=1"))
    assert "2 MiB" in text
    for words in ("Grow", "Delete", "Change the MAC", "disk/add/"):
        assert words not in text
    before = snapshot(layout)
    for route, form in CHANGES.items():
        assert viewer.post(at(pc, route), form).status_code == 403, route
    form = {"worker_id": "x", "mac": M2}
    assert viewer.post(f"{LIST}add/", form).status_code == 403
    assert snapshot(layout) == before
    assert "New worker" not in text_of(viewer.get(LIST))


@pytest.mark.parametrize("route", CHANGES)
def test_a_worker_that_is_not_there_is_no_page(route: str, page: Client) -> None:
    assert page.post(at("no_such", route), CHANGES[route]).status_code == 404


def test_an_underscore_in_an_id_is_one_in_every_address(
    page: Client, api: APIClient, worker: Make
) -> None:
    """Django's own pages quote ids, and `_41` unquoted is an A."""
    worker("pc_41", hostname="pc-41")
    answer = page.get(LIST)
    url = answer.context["table"]["rows"][0]["url"]
    text = page.get(url).content.decode()
    assert '<dd translate="no">pc_41</dd>' in text
    for route in ("delete/", "disk/add/", "access/"):
        assert at("pc_41", route) in text
        assert page.get(at("pc_41", route)).status_code == 200
    assert page.post(at("pc_41", "delete/"), {})["Location"] == at("pc_41", "deleted/")
    assert "pc_41" in text_of(page.get(at("pc_41", "deleted/")))


# --- text of others ----------------------------------------------------------------


@pytest.fixture
def hostile(layout: Layout) -> Iterator[str]:
    """A worker whose record has hostile text wherever a hand may write it."""
    disk = {
        "agent": HOSTILE,
        "iqn": f"{BASE}:odd.debian",
        "os": "debian",
        "filename": HOSTILE,
        "backing": HOSTILE,
        "source": {"type": "master", "name": HOSTILE},
    }
    worse = {**disk, "iqn": f"{BASE}:odd.ubuntu", "os": "ubuntu", "source": {"type": HOSTILE}}  # fmt: skip
    record = {
        "hostname": "odd",
        "arch": HOSTILE,
        "disks": [disk, worse],
        "cd": {"agent": HOSTILE, "iqn": f"{BASE}:odd.cd", "iso": HOSTILE},
        "note": HOSTILE,
    }
    layout.workers_yml.write_text(json.dumps({"workers": {"odd": record}}))
    layout.dhcp_hosts.write_text(f"{M1},odd\n")
    with layout.operations.open("a") as file:
        line = {
            "id": 900,
            "ts": "2026-11-30T10:00:00+00:00",
            "op": "worker.mac.update",
            "status": "ok",
            "worker_id": "odd",
            "changed": True,
            "old_mac": HOSTILE,
            "new_mac": HOSTILE,
            "user": HOSTILE,
            "error": HOSTILE,
        }
        file.write(json.dumps(line) + "\n")
    yield "odd"


def test_hostile_text_is_text_and_every_button_of_its_row_works(
    page: Client, hostile: str
) -> None:
    import re

    addresses = [LIST, f"{LIST}?agent=n", at(hostile), f"{at(hostile)}?live=1"]
    addresses += [at(hostile, route) for route in CHANGES if route not in _POSTED]
    for address in addresses:
        answer = page.get(address)
        assert answer.status_code == 200, address
        raw = answer.content.decode()
        assert "<b onclick" not in raw, address
        # What a form sends back is as it was; everything that is read is made visible.
        read = re.sub(r'<option value="[^"]*"', "", raw)
        for character in ("\u202e", "\u0007"):
            assert character not in read, (address, character)
    shown = page.get(at(hostile)).content.decode()
    assert "not in the registry" in shown
    for link in set(re.findall(r'href="(/admin/workers/worker/odd/[^"]*)"', shown)):
        assert page.get(link).status_code in (200, 302), link
    page.post(at(hostile, "disk/debian/default/"))
    assert "boots by default" in text_of(page.get(at(hostile)))
    # The filter by such a node finds its workers.
    options = page.get(LIST).context["fields"]
    (nodes,) = [field for field in options if field["name"] == "agent"]
    assert len(nodes["choices"]) == 1
    found = page.get(LIST, {"agent": nodes["choices"][0][0]})
    assert rows(found) == ["odd"]
    answer = page.post(at(hostile, "delete/"), {"forget": "on"})
    assert answer.status_code == 302, text_of(answer)
    text = text_of(page.get(answer["Location"]))
    assert "taken off the ledger" in text


_POSTED = ("mac/", "boot/", "disk/debian/default/")
