"""A new worker in two steps, and every kind of disk that the second step makes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from ipxeready.actors import Actor
from ipxeready.storage.paths import Layout
from tests.nodes import MIB, RealNode
from tests.workers.helpers import M1, ledger, live_hosts
from tests.workers.page_helpers import LIST, at, logged_in, text_of
from workers.pages import common

Make = Callable[..., dict[str, Any]]


@pytest.fixture
def page(
    layout: Layout, administrator: Actor, monkeypatch: pytest.MonkeyPatch
) -> Client:
    """A browser of an operator, who waits for disks."""
    monkeypatch.setattr(common, "PATIENCE", 30.0)
    return logged_in(administrator, "operator")


@pytest.fixture
def pc(node: RealNode, worker: Make) -> str:
    """A worker, and a node `n` that has room for it."""
    node.register("n")
    name = node.name()
    worker(name)
    return name


def test_the_next_name_is_proposed_and_the_second_step_follows(
    page: Client, worker: Make, layout: Layout
) -> None:
    worker("worker-07")
    assert 'value="worker-08"' in page.get(f"{LIST}add/").content.decode()
    answer = page.post(
        f"{LIST}add/", {"worker_id": "worker-08", "mac": "52-54-00-00-00-01"}
    )
    assert answer["Location"] == f"{at('worker-08', 'disk/add/')}?new=1"
    assert f"{M1},worker-08" in live_hosts(layout)
    step = page.get(answer["Location"])
    assert "Worker worker-08 was registered." in text_of(step)
    answer = page.post(answer["Location"], {"type": "none", "os": "ubuntu"})
    assert answer["Location"] == at("worker-08")
    assert ledger(layout)["worker-08"]["disks"] == []


@pytest.mark.parametrize(
    ("wrong", "field"),
    [
        ({"worker_id": "<b>"}, "worker_id"),
        ({"mac": "ff:ff:ff:ff:ff:ff"}, "mac"),
        ({"hostname": "no_name"}, "hostname"),
    ],
)
def test_what_is_wrong_with_an_identity_stands_beside_its_field(
    wrong: dict[str, str], field: str, page: Client, layout: Layout
) -> None:
    answer = page.post(f"{LIST}add/", {"worker_id": "pc", "mac": M1} | wrong)
    assert answer.status_code == 200
    assert list(answer.context["form"].errors) == [field]
    assert ledger(layout) == {}


def test_an_identity_that_is_taken_is_refused(page: Client, worker: Make) -> None:
    worker("pc", mac=M1)
    answer = page.post(f"{LIST}add/", {"worker_id": "other", "mac": M1})
    assert "is bound to pc" in text_of(answer)


def test_a_second_disk_need_not_be_none(page: Client, pc: str) -> None:
    assert 'value="none"' in page.get(at(pc, "disk/add/?new=1")).content.decode()
    assert 'value="none"' not in page.get(at(pc, "disk/add/")).content.decode()


@pytest.mark.parametrize("place", ["n", ""])
def test_a_master_is_picked_from_a_list_with_sizes(
    place: str, page: Client, pc: str, node: RealNode, layout: Layout
) -> None:
    master = f"{node.name()}_tpl_1.img"
    node.image(master, 3 * MIB)
    address = at(pc, "disk/add/")
    text = page.get(address).content.decode()
    assert f'<option value="{place}/{master}">{master} (3 MiB)</option>' in text
    form = {"type": "master", "os": "debian", "master": f"{place}/{master}"}
    assert page.post(address, form)["Location"] == at(pc)
    (disk,) = ledger(layout)[pc]["disks"]
    assert disk["source"] == {"type": "master", "name": master}
    assert "default_os" not in ledger(layout)[pc]


@pytest.mark.parametrize("route", ["disk/add/", "disk/debian/reset/"])
def test_a_master_that_is_no_raw_disk_is_greyed_with_the_reason(
    route: str, page: Client, pc: str, node: RealNode, layout: Layout
) -> None:
    whole = node.image(f"{node.name()}_tpl_1.img").name
    made = {"type": "master", "os": "debian", "master": f"n/{whole}"}
    assert page.post(at(pc, "disk/add/"), made)["Location"] == at(pc)
    cloud = node.image(f"{node.name()}_tpl_2.img", content=b"QFI\xfb").name
    text = text_of(page.get(at(pc, route)))
    options = dict(re.findall(r'<option value="([^"]*)"([^>]*)>', text))
    ways = {way for way in options if way.endswith(cloud)}
    assert ways
    assert {options[way].strip() for way in ways} == {"disabled"}
    assert f"{cloud} (1 MiB): {cloud} is qcow2 inside, no raw disk. Convert it" in text
    assert not any(options[way].strip() for way in options if way.endswith(whole))
    # Who sends it all the same is told the same, and does not have to choose anew.
    form = {**made, "os": "ubuntu", "master": min(ways)}
    answer = page.post(at(pc, route), form)
    assert "is qcow2 inside" in answer.content.decode()
    assert f'<option value="{min(ways)}" selected>' in answer.content.decode()
    assert [disk["os"] for disk in ledger(layout)[pc]["disks"]] == ["debian"]


def test_a_kept_image_is_offered_whatever_its_machine_wrote_into_it(
    page: Client, pc: str, node: RealNode, layout: Layout
) -> None:
    name = node.image(f"{pc}.debian.img", content=b"QFI\xfb").name
    text = page.get(at(pc, "disk/add/")).content.decode()
    assert f'<option value="n/{name}">' in text
    form = {"type": "image", "os": "debian", "image": f"n/{name}"}
    assert page.post(at(pc, "disk/add/"), form)["Location"] == at(pc)
    (disk,) = ledger(layout)[pc]["disks"]
    assert disk["filename"] == name


def test_an_empty_disk_goes_to_the_node_that_is_chosen(
    page: Client, pc: str, other_node: RealNode, layout: Layout
) -> None:
    other_node.register("m")
    form = {"type": "empty", "os": "debian", "size": "2M", "disk_agent": "m"}
    page.post(at(pc, "disk/add/"), form | {"set_default": "on"})
    (disk,) = ledger(layout)[pc]["disks"]
    assert disk["agent"] == "m"
    assert ledger(layout)[pc]["default_os"] == "debian"


def test_an_image_is_taken_as_it_is_or_renamed(
    page: Client, pc: str, node: RealNode, layout: Layout
) -> None:
    node.image(f"{pc}.debian.img")
    node.image(f"{pc}-old.img")
    address = at(pc, "disk/add/")
    text = page.get(address).content.decode()
    for name in (f"{pc}.debian.img", f"{pc}-old.img"):
        assert f'value="n/{name}"' in text
    for os, name in (("debian", f"{pc}.debian.img"), ("ubuntu", f"{pc}-old.img")):
        page.post(address, {"type": "image", "os": os, "image": f"n/{name}"})
    kept, renamed = ledger(layout)[pc]["disks"]
    assert kept["source"]["type"] == "existing"
    assert renamed["source"] == {"type": "import", "name": f"{pc}-old.img"}


@pytest.mark.parametrize(
    ("form", "field"),
    [
        ({"type": "empty"}, "size"),
        ({"type": "empty", "size": "much"}, "size"),
        ({"type": "master"}, "master"),
        ({"type": "master", "master": "n/../x.img"}, "master"),
        ({"type": "master", "master": "n/x_tpl_.img", "disk_agent": "m"}, "disk_agent"),
        ({"type": "image", "image": "x.img"}, "image"),
        ({"type": "image", "image": "n/<b>"}, "image"),
        ({"type": "other"}, "type"),
    ],
)
def test_what_is_wrong_with_a_disk_stands_beside_its_field(
    form: dict[str, str],
    field: str,
    page: Client,
    pc: str,
    other_node: RealNode,
    layout: Layout,
) -> None:
    other_node.register("m")
    answer = page.post(at(pc, "disk/add/"), {"os": "debian", **form})
    assert answer.status_code == 200
    assert list(answer.context["form"].errors) == [field]
    assert ledger(layout)[pc]["disks"] == []


@pytest.mark.usefixtures("impatient")
def test_a_node_that_is_dead_or_disabled_is_named_with_the_reason(
    page: Client, pc: str
) -> None:
    from agents.services import agent_register
    from ipxeready.actors import SYSTEM

    dead = {"base_url": "http://127.0.0.1:9", "token": "t"}
    agent_register(actor=SYSTEM, agent_id="dead", **dead)
    agent_register(actor=SYSTEM, agent_id="resting", **dead, enabled=False)
    text = text_of(page.get(at(pc, "disk/add/")))
    assert "its masters are missing below: dead" in text
    assert re.search("not here: [^<]*unreachable", text)
    assert "not here: is disabled" in text
    assert "the scheduler picks: n now" in text


def test_without_a_node_the_page_says_how_one_comes(page: Client, worker: Make) -> None:
    worker("pc")
    assert "no storage node yet" in text_of(page.get(at("pc", "disk/add/")))


def test_pages_of_disks_need_no_script(page: Client, pc: str) -> None:
    script = Path("static/ipxeready/depends.js").read_text()
    text = page.get(at(pc, "disk/add/")).content.decode()
    assert "hidden" in script
    # All fields are there, whatever is chosen.
    for name in ("size", "master", "image", "disk_agent", "set_default"):
        assert f'name="{name}"' in text
