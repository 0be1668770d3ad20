"""Install CDs of workers: attached from a real tgtd, detached, and nothing half-made when a node says no."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from agents.services import agent_register
from ipxeready.actors import SYSTEM
from ipxeready.storage import inflight
from ipxeready.storage.paths import Layout
from tests.agents.fakes import CAPABILITIES, http_server
from tests.agents.node import node_lab
from tests.nodes import BASE, RealNode
from tests.workers.helpers import M1, M2, ledger, refusal, snapshot, trail

pytestmark = pytest.mark.tgtd
Make = Callable[..., dict[str, Any]]
ROLE = {"disk": True, "cd": True}


@pytest.fixture
def iso(stgt_node: RealNode, layout: Layout) -> str:
    """An ISO on a registered stgt node `cds`."""
    name = f"{stgt_node.name('win')}.iso"
    stgt_node.image(name, content=b"iso")
    stgt_node.register("cds", role=ROLE)
    return name


@pytest.fixture
def pc(stgt_node: RealNode, worker: Make) -> str:
    """A worker whose name no other test has on the node."""
    name = stgt_node.name()
    worker(name)
    return name


def _cd(name: str) -> str:
    return f"{BASE}:{name}.windows.iso"


@pytest.mark.case(78)
def test_a_cd_is_attached_and_detached(
    api: APIClient, layout: Layout, stgt_node: RealNode, iso: str, pc: str
) -> None:
    answer = api.post(f"/workers/{pc}/luns/cd", {"iso": iso})
    assert answer.status_code == 201, answer.content
    backing = str(stgt_node.folder / iso)
    cd = {"agent": "cds", "iqn": _cd(pc), "iso": iso, "backing": backing}
    cd["access"] = "acl"
    assert answer.json()["cd"] == cd
    assert answer.json()["state"] == "installing"
    assert ledger(layout)[pc]["cd"] == cd
    luns = stgt_node.targets()[_cd(pc)]["luns"]
    assert luns[0]["type"] == "cd"  # type: ignore[index]
    (line,) = trail(layout, "lun.create_cd")
    assert (line["worker_id"], line["agent"], line["iso"]) == (pc, "cds", iso)
    script = api.get(f"/boot-vars?mac={answer.json()['mac']}").content.decode()
    assert f"set cd-iqn {_cd(pc)}" in script

    status, words = refusal(api, "post", f"/workers/{pc}/luns/cd", {"iso": iso})
    assert status == 409
    assert "DELETE" in words

    answer = api.delete(f"/workers/{pc}/luns/cd")
    assert answer.status_code == 200, answer.content
    assert (answer.json()["cd"], answer.json()["state"]) == (None, "registered")
    assert _cd(pc) not in stgt_node.targets()
    assert (stgt_node.folder / iso).exists()
    (line,) = trail(layout, "lun.delete")
    assert (line["worker_id"], line["status"]) == (pc, "ok")
    assert refusal(api, "delete", f"/workers/{pc}/luns/cd")[0] == 404


@pytest.mark.case(72)
def test_a_cd_in_use_is_kept_unless_forced(
    api: APIClient, layout: Layout, stgt_node: RealNode, iso: str, pc: str
) -> None:
    assert stgt_node.tgtd
    api.post(f"/workers/{pc}/luns/cd", {"iso": iso})
    before = snapshot(layout)
    initiator = f"{BASE}:{pc}"
    with node_lab.session(stgt_node.tgtd, _cd(pc), initiator=initiator):
        status, words = refusal(api, "delete", f"/workers/{pc}/luns/cd")
        assert (status, initiator in words) == (409, True), words
        status, words = refusal(api, "delete", f"/workers/{pc}")
        assert (status, initiator in words) == (409, True), words
        assert snapshot(layout) == before
        assert _cd(pc) in stgt_node.targets()
        answer = api.delete(f"/workers/{pc}/luns/cd?force=true")
        assert answer.status_code == 200, answer.content
    assert _cd(pc) not in stgt_node.targets()
    assert trail(layout, "lun.delete")[0]["forced"] is True


@pytest.mark.case(98)
def test_a_deleted_worker_takes_its_cd_along(
    api: APIClient, layout: Layout, stgt_node: RealNode, iso: str, pc: str
) -> None:
    api.post(f"/workers/{pc}/luns/cd", {"iso": iso})
    assert api.delete(f"/workers/{pc}").status_code == 200
    assert _cd(pc) not in stgt_node.targets()
    assert (stgt_node.folder / iso).exists()
    assert trail(layout, "lun.delete")[0]["worker_id"] == pc
    assert pc not in ledger(layout)


def test_a_target_that_is_gone_is_no_obstacle(
    api: APIClient, stgt_node: RealNode, iso: str, pc: str
) -> None:
    api.post(f"/workers/{pc}/luns/cd", {"iso": iso})
    assert api.delete(f"/agents/cds/luns?iqn={_cd(pc)}").status_code == 200
    assert api.delete(f"/workers/{pc}/luns/cd").status_code == 200


def test_what_a_crash_left_on_the_node_is_taken_over(
    api: APIClient, stgt_node: RealNode, iso: str, pc: str
) -> None:
    made = api.post("/agents/cds/luns/cd", {"iso": iso, "iqn": _cd(pc)})
    assert made.status_code == 201
    answer = api.post(f"/workers/{pc}/luns/cd", {"iso": iso})
    assert answer.status_code == 201, answer.content
    assert answer.json()["cd"]["backing"] == made.json()["backing"]


def test_another_iso_under_this_name_is_refused(
    api: APIClient, layout: Layout, stgt_node: RealNode, iso: str, pc: str
) -> None:
    api.post("/agents/cds/luns/cd", {"iso": iso, "iqn": _cd(pc)})
    other = f"{stgt_node.name('other')}.iso"
    stgt_node.image(other)
    before = snapshot(layout)
    status, words = refusal(
        api, "post", f"/workers/{pc}/luns/cd", {"iso": other, "agent": "cds"}
    )
    assert (status, "exists already" in words) == (409, True), words
    assert snapshot(layout) == before
    assert trail(layout, "lun.create_cd")[-1]["status"] == "failed"


def test_the_node_that_has_the_iso_is_found(
    api: APIClient, node: RealNode, stgt_node: RealNode, iso: str, pc: str
) -> None:
    node.register("a-files", role=ROLE)
    stgt_node.register("b-disabled", role=ROLE, enabled=False)
    stgt_node.register("c-no-role", role={"disk": True, "cd": False})
    answer = api.post(f"/workers/{pc}/luns/cd", {"iso": iso})
    assert answer.json()["cd"]["agent"] == "cds"
    api.delete(f"/workers/{pc}/luns/cd")
    status, words = refusal(
        api, "post", f"/workers/{pc}/luns/cd", {"iso": "missing.iso"}
    )
    assert status == 404
    for each in (
        "a-files has no CD drive",
        "b-disabled is disabled",
        "c-no-role takes no install CDs",
        "cds refused",
    ):
        assert each in words, words


def test_a_node_that_will_not_do(
    api: APIClient,
    layout: Layout,
    node: RealNode,
    stgt_node: RealNode,
    iso: str,
    pc: str,
) -> None:
    node.register("files", role=ROLE)
    stgt_node.register("off", role=ROLE, enabled=False)
    stgt_node.register("disks", role={"disk": True, "cd": False})
    before = snapshot(layout)

    def ask(**body: Any) -> tuple[int, str]:
        return refusal(api, "post", f"/workers/{pc}/luns/cd", {"iso": iso, **body})

    assert ask(agent="off")[0] == 409
    assert ask(agent="disks")[0] == 400
    assert ask(agent="files") == (
        400,
        "files: the files backend has no CD drive. Attach the ISO on a node with stgt.",
    )
    assert ask(agent="nobody")[0] == 404
    assert ask(iso="none.iso", agent="cds")[0] == 404
    for wrong in ("../x.iso", "x.img", "a,b.iso", "", 5, None):
        assert ask(iso=wrong)[0] == 400, wrong
    assert ask(drive=1)[0] == 400
    assert refusal(api, "post", "/workers/nobody/luns/cd", {"iso": iso})[0] == 404
    assert snapshot(layout) == before
    assert _cd(pc) not in stgt_node.targets()


def test_without_any_node_each_reason_is_told(
    api: APIClient, layout: Layout, worker: Make
) -> None:
    worker("pc1")
    status, words = refusal(api, "post", "/workers/pc1/luns/cd", {"iso": "a.iso"})
    assert (status, "there is no storage node" in words) == (409, True), words


@pytest.mark.usefixtures("impatient")
def test_a_lost_node(api: APIClient, layout: Layout, worker: Make) -> None:
    worker("pc1")
    layout.workers_yml.write_text(
        "workers:\n  pc1:\n    hostname: pc1\n    cd:\n      agent: gone\n"
        f"      iqn: {_cd('pc1')}\n      iso: a.iso\n"
    )
    assert refusal(api, "delete", "/workers/pc1/luns/cd")[0] == 503
    assert refusal(api, "post", "/workers/pc1/luns/cd", {"iso": "a.iso"})[0] == 409
    answer = api.delete("/workers/pc1/luns/cd?forget=true")
    assert answer.status_code == 200
    assert answer.json()["cd"] is None
    assert trail(layout, "lun.delete")[-1]["forgotten"] is True


def test_two_at_once_make_one(
    api: APIClient, layout: Layout, iso: str, pc: str
) -> None:
    with inflight.claim(layout.run, f"cd-{pc}") as mine:
        assert mine
        assert refusal(api, "post", f"/workers/{pc}/luns/cd", {"iso": iso})[0] == 409
        assert refusal(api, "delete", f"/workers/{pc}/luns/cd")[0] == 409


def test_roles_prefix_and_typos(
    api: APIClient,
    as_viewer: APIClient,
    as_operator: APIClient,
    stranger: APIClient,
    iso: str,
    pc: str,
) -> None:
    path = f"/api/cp/workers/{pc.upper()}/luns/cd/"
    assert stranger.post(path, {"iso": iso}).status_code == 401
    assert as_viewer.post(path, {"iso": iso}).status_code == 403
    assert as_operator.post(path, {"iso": iso}).status_code == 201
    assert as_viewer.delete(path).status_code == 403
    assert refusal(api, "delete", f"{path}?delete_file=true")[0] == 400
    assert refusal(api, "delete", path, {"force": True})[0] == 400
    assert as_operator.delete(path).status_code == 200


# --- POST /workers with windows_iso --------------------------------------------


def test_a_worker_is_registered_with_its_cd(
    api: APIClient, layout: Layout, stgt_node: RealNode, iso: str
) -> None:
    name = stgt_node.name()
    body = {"worker_id": name, "mac": M1, "windows_iso": iso}
    answer = api.post("/workers", body)
    assert answer.status_code == 201, answer.content
    assert answer.json()["state"] == "installing"
    assert answer.json()["cd"]["iqn"] == _cd(name)
    assert _cd(name) in stgt_node.targets()
    assert ledger(layout)[name]["cd"]["iso"] == iso
    assert trail(layout, "lun.create_cd")[0]["worker_id"] == name

    before, targets = snapshot(layout), stgt_node.targets()
    assert refusal(api, "post", "/workers", body)[0] == 409
    other = {**body, "worker_id": f"{name}b"}
    assert refusal(api, "post", "/workers", other)[0] == 409
    assert snapshot(layout) == before
    assert stgt_node.targets() == targets


@pytest.mark.parametrize(
    ("iso_name", "expected"), [("missing.iso", 404), ("no-iso.img", 400), (7, 400)]
)
def test_a_cd_that_cannot_be_had_registers_nobody(
    api: APIClient, layout: Layout, iso: str, iso_name: Any, expected: int
) -> None:
    before = snapshot(layout)
    body = {"worker_id": "pc1", "mac": M1, "windows_iso": iso_name}
    assert refusal(api, "post", "/workers", body)[0] == expected
    assert snapshot(layout) == before


def test_a_ledger_that_takes_no_writes_leaves_no_cd_behind(
    api: APIClient, layout: Layout, stgt_node: RealNode, iso: str
) -> None:
    name = stgt_node.name()
    layout.dhcp_hosts.unlink()
    ledger_before = layout.workers_yml.read_bytes()
    body = {"worker_id": name, "mac": M2, "windows_iso": iso}
    status, words = refusal(api, "post", "/workers", body)
    assert (status, "dhcp-hosts.conf" in words) == (503, True), words
    assert layout.workers_yml.read_bytes() == ledger_before
    assert _cd(name) not in stgt_node.targets()
    assert trail(layout, "lun.create_cd")[-1]["status"] == "rollback"


def test_what_stays_on_a_node_is_named(
    api: APIClient, layout: Layout, worker: Make
) -> None:
    """A node that makes the CD and then refuses to take it off: the answer names both."""

    def answer(method: str, path: str) -> tuple[int, dict[str, str], bytes]:
        if path == "/capabilities":
            return 200, {}, json.dumps({**CAPABILITIES, "cd": True}).encode()
        if method == "POST":
            layout.dhcp_hosts.unlink()
            return 201, {}, b'{"iqn": "x", "backing": "/x.iso"}'
        return 507, {}, b'{"detail": "no"}'

    with http_server(answer) as fake:
        agent_register(
            actor=SYSTEM, agent_id="n", base_url=fake.base_url, token="t", role=ROLE
        )
        body = {"worker_id": "pc1", "mac": M1, "windows_iso": "a.iso"}
        status, words = refusal(api, "post", "/workers", body)
    assert status == 503
    assert f"Node n keeps the CD's target {_cd('pc1')}" in words
    assert "pc1" not in ledger(layout)
