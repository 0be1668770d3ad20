"""The board over HTTP, as a plain form: what is chosen, listed, begun and told."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from ipxeready.actors import Actor
from ipxeready.errors import Invalid
from ipxeready.jobs.services import job_wait
from ipxeready.storage.paths import Layout
from ipxeready.users import services
from tests.nodes import RealNode, node, other_node
from tests.workers.helpers import ledger
from tests.workers.stub import stub_node
from workers.pages.chosen import read, written

__all__ = ["node", "other_node"]
PASSWORD = "correct horse battery"
BOARD = "/admin/board/"


@pytest.fixture
def login(layout: Layout, administrator: Actor) -> Callable[[str], Client]:
    """Logs somebody in."""
    for name, role in (("oscar", "operator"), ("victor", "viewer")):
        services.user_create(
            actor=administrator, username=name, password=PASSWORD, role=role
        )

    def login(name: str) -> Client:
        client = Client()
        given = {"username": name, "password": PASSWORD}
        assert client.post("/admin/login/", given).status_code == 302
        return client

    return login


@pytest.fixture
def oscar(login: Callable[[str], Client]) -> Client:
    """An operator's browser."""
    return login("oscar")


@pytest.fixture
def pcs(layout: Layout, node: RealNode, other_node: RealNode) -> list[str]:
    """Four workers; nodes `a` and `b`."""
    node.register("a")
    other_node.register("b")
    names = sorted(node.name("board") for _ in range(4))
    lines = [f"  {name}:\n    hostname: {name}\n" for name in names]
    layout.workers_yml.write_text("workers:\n" + "".join(lines))
    return names


def _text(answer: Any) -> str:
    return str(answer.content.decode())


def _begin(client: Client, what: str, form: dict[str, Any]) -> Any:
    """List it, then press the button."""
    listed = client.post(f"{BOARD}{what}/", {**form, "asked": "1"})
    assert listed.status_code == 200, _text(listed)
    digest = re.search(r'name="begin" value="([^"]+)"', _text(listed))
    assert digest, _text(listed)
    form = {**form, "asked": "1", "begin": digest[1]}
    answer = client.post(f"{BOARD}{what}/", form)
    assert answer.status_code == 302, _text(answer)
    job = re.search(r"/jobs/([^/]+)/", answer["Location"])
    assert job
    return job_wait(job[1], 30)


def test_a_choice_is_one_field() -> None:
    chosen = {"pc1": "a", "pc2": "", "pc3": "a"}
    assert read(written(chosen)) == chosen
    assert written({}) == ""
    for text in ("*a <b>", "*../x pc1", "pc1/2"):
        with pytest.raises(Invalid):
            read(text)


def test_rows_say_what_they_are_and_filters_narrow_down(
    oscar: Client, pcs: list[str]
) -> None:
    page = _text(oscar.get(BOARD))
    for name in pcs:
        assert f'value="{name}"' in page
    page = _text(oscar.get(BOARD, {"search": pcs[0]}))
    assert f'data-worker="{pcs[0]}"' in page
    assert f'data-worker="{pcs[1]}"' not in page
    assert "No worker matches" in _text(oscar.get(BOARD, {"has_disk": "true"}))
    assert oscar.get(BOARD, {"state": "nonsense"}).status_code == 400


def test_ticked_rows_get_their_nodes_from_buttons_without_javascript(
    oscar: Client, pcs: list[str]
) -> None:
    form = {f"node:{name}": "" for name in pcs} | {"worker": pcs[:3]}
    page = _text(oscar.post(BOARD, {**form, "share": "1", "on": ["a", "b"]}))
    assert page.count('<option value="a" selected>') == 2
    assert page.count('<option value="b" selected>') == 1
    for fact in ("3 chosen", "2 on a", "1 on b"):
        assert fact in page
    page = _text(oscar.post(BOARD, {**form, "take": "b"}))
    assert page.count('<option value="b" selected>') == 3
    answer = oscar.post(BOARD, {**form, "share": "1"})
    assert "Tick the nodes that take part" in _text(answer)


def test_ticks_of_other_pages_come_along_and_the_page_has_the_last_word(
    oscar: Client, pcs: list[str]
) -> None:
    form = {
        "chosen": f"*a {pcs[0]} {pcs[1]} *b {pcs[3]}",
        f"node:{pcs[0]}": "a",
        f"node:{pcs[1]}": "b",
        "worker": [pcs[1]],
    }
    page = _text(oscar.post(f"{BOARD}boot/", form))
    assert f'name="chosen" value="*b {pcs[3]} {pcs[1]}"' in page


def test_all_that_match_are_chosen_without_javascript(
    oscar: Client, pcs: list[str]
) -> None:
    form = {"all": "1", "filters": f"search={pcs[2]}"}
    page = _text(oscar.post(f"{BOARD}delete/", form))
    assert pcs[2] in page
    assert pcs[1] not in page


def test_what_will_happen_is_listed_then_done_and_told_for_each(
    oscar: Client, pcs: list[str], layout: Layout
) -> None:
    form = {
        "os": "debian",
        "type": "empty",
        "size": "1M",
        "chosen": f"*a {pcs[0]} *b {pcs[1]} nobody",
    }
    page = _text(oscar.post(f"{BOARD}disks/", form))
    for words in ("2 disks are made", "1 on a", "1 on b", "1 will be refused"):
        assert words in page
    assert "there is no worker" in page
    assert ledger(layout)[pcs[0]].get("disks") in (None, [])
    job = _begin(oscar, "disks", form)
    assert [item["agent"] for item in job.result["succeeded"]] == ["a", "b"]
    page = _text(oscar.get(f"{BOARD}jobs/{job.id}/"))
    for words in ("2 succeeded", "1 failed", "nobody", "Try the failed ones again"):
        assert words in page
    assert 'name="chosen" value="*b nobody"' in page
    assert f"{BOARD}jobs/{job.id}/" in _text(oscar.get(f"/admin/jobs/{job.id}/"))
    page = _text(oscar.post(f"{BOARD}disks/", form))
    assert "2 have such a disk already and will be skipped" in page
    assert 'name="begin"' not in page


def test_what_was_not_listed_does_not_begin(
    oscar: Client, pcs: list[str], layout: Layout
) -> None:
    form = {"os": "debian", "type": "empty", "size": "1M", "asked": "1"}
    chosen = {"chosen": f"*a {pcs[0]}"}
    page = _text(oscar.post(f"{BOARD}disks/", form | chosen))
    digest = re.search(r'name="begin" value="([^"]+)"', page)
    assert digest
    for change in ({"chosen": f"*b {pcs[0]}"}, {"size": "2M"}, {"os": "ubuntu"}):
        given = {**form, **chosen, **change, "begin": digest[1]}
        answer = oscar.post(f"{BOARD}disks/", given)
        assert answer.status_code == 200
        assert "Something has changed" in _text(answer)
    assert ledger(layout)[pcs[0]].get("disks") in (None, [])


def test_a_disk_that_was_not_listed_does_not_go(
    oscar: Client, pcs: list[str], layout: Layout, node: RealNode
) -> None:
    form = {"chosen": f"* {pcs[0]}", "delete_disk": "on", "asked": "1"}
    page = _text(oscar.post(f"{BOARD}delete/", form))
    digest = re.search(r'name="begin" value="([^"]+)"', page)
    assert digest
    disks = {"os": "debian", "type": "empty", "size": "1M", "chosen": f"*a {pcs[0]}"}
    _begin(oscar, "disks", disks)
    answer = oscar.post(f"{BOARD}delete/", {**form, "begin": digest[1]})
    assert answer.status_code == 200
    assert "Something has changed" in _text(answer)
    assert f"with its image {pcs[0]}.debian.img" in _text(answer)
    assert (node.folder / f"{pcs[0]}.debian.img").exists()
    _begin(oscar, "delete", form)
    assert pcs[0] not in ledger(layout)


def test_a_button_pressed_twice_leads_to_the_same_job(
    oscar: Client, pcs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    go = threading.Event()

    def slow(**_given: Any) -> dict[str, Any]:
        go.wait(30)
        return {"succeeded": [], "failed": []}

    monkeypatch.setattr("workers.jobs.workers_delete", slow)
    form = {"chosen": f"* {pcs[0]} {pcs[1]}", "asked": "1"}
    page = _text(oscar.post(f"{BOARD}delete/", form))
    digest = re.search(r'name="begin" value="([^"]+)"', page)
    assert digest
    pressed = {**form, "begin": digest[1]}
    try:
        first = oscar.post(f"{BOARD}delete/", pressed)
        # By now the first has begun to delete.
        oscar.post(f"/admin/workers/worker/{pcs[0]}/delete/", {})
        second = oscar.post(f"{BOARD}delete/", pressed)
    finally:
        go.set()
    assert first.status_code == second.status_code == 302
    assert second["Location"].split("?")[0] == first["Location"].split("?")[0]


def test_a_master_is_chosen_among_those_of_every_chosen_node(
    oscar: Client, pcs: list[str], node: RealNode, other_node: RealNode
) -> None:
    for each, name in (
        (node, "board_tpl_x.img"),
        (other_node, "board_tpl_x.img"),
        (node, "board_tpl_a.img"),
    ):
        if not (each.folder / name).exists():
            each.image(name)
        if not (each.folder / "board_tpl_q.img").exists():
            each.image("board_tpl_q.img", content=b"QFI\xfb")
    form = {"chosen": f"*a {pcs[0]} *b {pcs[1]}", "type": "master", "os": "debian"}
    page = _text(oscar.post(f"{BOARD}disks/", form))
    assert '<option value="board_tpl_x.img">' in page
    assert '<option value="board_tpl_q.img">' not in page
    assert "board_tpl_q.img is not offered: a: board_tpl_q.img is qcow2 inside" in page
    answer = oscar.post(f"{BOARD}disks/", {**form, "name": "board_tpl_q.img"})
    assert answer.status_code == 400
    assert "a: board_tpl_q.img is qcow2 inside" in _text(answer)
    assert 'name="begin"' not in _text(answer)
    assert '<option value="board_tpl_a.img">' not in page
    assert "board_tpl_a.img is not offered: it is not on b" in page
    answer = oscar.post(f"{BOARD}disks/", {**form, "name": "board_tpl_a.img"})
    assert answer.status_code == 400
    assert "is not on b" in _text(answer)
    assert 'name="begin"' not in _text(answer)
    found = oscar.get(f"{BOARD}masters/", {"node": ["a", "b"]}).json()
    assert "board_tpl_x.img" in [each["name"] for each in found["masters"]]
    assert "board_tpl_a.img" not in [each["name"] for each in found["masters"]]
    assert oscar.get(f"{BOARD}masters/", {"node": "none"}).status_code == 404


def test_deletion_lists_what_goes_and_what_stays_first(
    oscar: Client, pcs: list[str], layout: Layout, node: RealNode
) -> None:
    disks = {"os": "debian", "type": "empty", "size": "1M", "chosen": f"*a {pcs[0]}"}
    _begin(oscar, "disks", disks)
    form: dict[str, Any] = {"chosen": f"* {pcs[0]} {pcs[1]}"}
    page = _text(oscar.post(f"{BOARD}delete/", form))
    assert "2 workers go" in page
    assert f"the image {pcs[0]}.debian.img on a" in page
    page = _text(oscar.post(f"{BOARD}delete/", {**form, "delete_disk": "on"}))
    assert "1 image is deleted for good" in page
    assert f"with its image {pcs[0]}.debian.img" in page
    job = _begin(oscar, "delete", {**form, "delete_disk": "on"})
    assert len(job.result["succeeded"]) == 2
    assert sorted(ledger(layout)) == pcs[2:]
    assert not (node.folder / f"{pcs[0]}.debian.img").exists()


def test_a_machine_that_is_connected_stays_or_is_named_as_cut_off(
    oscar: Client, layout: Layout
) -> None:
    iqn = "iqn.2026-07.com.controller:busy.debian"
    entry = f"{{agent: stub, os: debian, iqn: '{iqn}', filename: busy.debian.img, backing: /x}}"
    layout.workers_yml.write_text(
        f"workers:\n  busy:\n    hostname: busy\n    disks:\n      - {entry}\n  idle:\n    hostname: idle\n"
    )
    with stub_node() as stub:
        stub.register()
        who = {"initiator": "iqn.2010-04.org.ipxe:busy", "address": "192.0.2.77"}
        stub.targets[iqn] = [who]
        form: dict[str, Any] = {"chosen": "* busy idle"}
        page = _text(oscar.post(f"{BOARD}delete/", form))
        assert "1 worker goes" in page
        assert "1 is in use and stays" in page
        assert f"all of it: in use by {who['initiator']} (192.0.2.77)" in page
        page = _text(oscar.post(f"{BOARD}delete/", {"chosen": "* busy"}))
        assert 'name="begin"' not in page
        page = _text(oscar.post(f"{BOARD}delete/", {**form, "force": "on"}))
        assert "2 workers go" in page
        assert "1 is in use and is cut off" in page
        assert f"CUT OFF: {who['initiator']} (192.0.2.77)" in page
        job = _begin(oscar, "delete", form)
    assert [item["worker_id"] for item in job.result["succeeded"]] == ["idle"]
    (failed,) = job.result["failed"]
    assert failed["worker_id"] == "busy"
    page = _text(oscar.get(f"{BOARD}jobs/{job.id}/"))
    assert who["initiator"] in page


def test_boot_access_and_reset_of_many_begin_from_the_board_too(
    oscar: Client, pcs: list[str], layout: Layout
) -> None:
    chosen = {"chosen": f"*a {pcs[0]} {pcs[1]}"}
    keep = {"default_os": "keep", "menu_default": "keep"}
    page = _text(oscar.post(f"{BOARD}boot/", chosen))
    assert "nothing is changed yet" in page
    assert 'name="begin"' not in page
    job = _begin(oscar, "boot", {**chosen, **keep, "menu_timeout": "5000"})
    assert len(job.result["succeeded"]) == 2
    assert ledger(layout)[pcs[0]]["boot"]["menu_timeout"] == 5000
    job = _begin(oscar, "boot", {**chosen, **keep, "clear_timeout": "on"})
    assert "menu_timeout" not in ledger(layout)[pcs[0]].get("boot", {})
    job = _begin(oscar, "access", {**chosen, "access": "acl"})
    assert len(job.result["succeeded"]) == 2
    page = _text(oscar.post(f"{BOARD}reset/", {**chosen, "os": "debian"}))
    assert "has no such disk: is refused" in page
    assert "size afterwards, also where it was grown" in page
    assert 'name="begin"' not in page


def test_a_choice_is_told_in_numbers_while_it_is_made(
    oscar: Client, pcs: list[str]
) -> None:
    form = {"chosen": f"*a {pcs[0]} * {pcs[1]} nobody", "os": "debian"}
    told = oscar.post(f"{BOARD}plan/", form).json()
    assert told["gone"] == ["nobody"]
    assert told["facts"] == ["2 chosen", "1 on any node", "1 on a"]
    told = oscar.post(f"{BOARD}plan/", {**form, "share": "1", "on": ["b", "a"]}).json()
    assert read(told["placed"])[pcs[0]] == "b"
    assert oscar.post(f"{BOARD}plan/", {"chosen": "<x>"}).status_code == 400
    assert oscar.get(f"{BOARD}ids/", {"search": pcs[0]}).json() == {"ids": [pcs[0]]}
    assert oscar.get(f"{BOARD}nodes/").json()["a"]["ok"] is True


def test_nothing_chosen_leads_back(oscar: Client, pcs: list[str]) -> None:
    for what in ("disks", "delete", "boot", "access", "reset"):
        answer = oscar.post(f"{BOARD}{what}/", {"filters": "os=debian"}, follow=True)
        assert answer.redirect_chain == [(f"{BOARD}?os=debian", 302)]
        assert "tick workers first" in _text(answer)
        assert oscar.get(f"{BOARD}{what}/").status_code == 302
    assert oscar.post(f"{BOARD}nonsense/", {}).status_code == 404


def test_a_viewer_has_no_board_but_sees_what_became_of_a_batch(
    login: Callable[[str], Client], pcs: list[str]
) -> None:
    form = {"os": "debian", "type": "empty", "size": "1M", "chosen": "*a nobody"}
    chosen = {**form, "chosen": f"*a {pcs[0]} nobody"}
    job = _begin(login("oscar"), "disks", chosen)
    victor = login("victor")
    for path in ("", "ids/", "masters/", "nodes/", "disks/"):
        assert victor.get(f"{BOARD}{path}").status_code == 403
    for path in ("", "plan/", "disks/", "delete/"):
        assert victor.post(f"{BOARD}{path}", form).status_code == 403
    page = _text(victor.get(f"{BOARD}jobs/{job.id}/"))
    assert "1 failed" in page
    assert "Try the failed ones again" not in page
    assert f'href="{BOARD}"' not in page
