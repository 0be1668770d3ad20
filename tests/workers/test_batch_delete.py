"""POST /workers/delete/batch: many workers, one save, one reload; one in use fails alone."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from rest_framework.test import APIClient

from agents.services import agent_register
from ipxeready.actors import SYSTEM
from ipxeready.index import writer
from ipxeready.storage import inflight
from ipxeready.storage.paths import Layout
from tests.agents.node import node_lab
from tests.ipxeready.jobs.helpers import Told
from tests.nodes import BASE, RealNode
from tests.workers.helpers import M1, ledger, live_hosts, refusal, snapshot, trail
from workers import removal_batch
from workers.reload import Reloader

PATH = "/workers/delete/batch"
Make = Callable[..., dict[str, Any]]


def _post(api: APIClient, names: list[str], **body: Any) -> Any:
    return api.post(PATH, {"worker_ids": names, **body})


@pytest.fixture
def pcs(node: RealNode, layout: Layout, worker: Make, api: APIClient) -> list[str]:
    """Three workers with a disk each."""
    node.register("n")
    names = [node.name() for _ in range(3)]
    for name in names:
        worker(name)
    targets = [{"worker_id": name, "agent": "n"} for name in names]
    body = {"type": "empty", "os": "debian", "size": "1M", "targets": targets}
    made = api.post("/workers/luns/disk/batch", body).json()
    assert len(made["succeeded"]) == 3, made
    return names


def test_all_of_them_go_in_one_save_and_one_reload(
    api: APIClient,
    layout: Layout,
    worker: Make,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = [f"pc{number}" for number in range(5)]
    for name in names:
        worker(name, hostname=f"seat-{name}")
    worker("stays", mac=M1)
    commits: list[str] = []
    reloads: list[int] = []
    real = writer.Transaction._commit

    def commit(self: Any) -> Any:
        changes = real(self)
        commits.extend(change.path.name for change in changes)
        return changes

    def reload(self: Any, since: int) -> Any:
        reloads.append(since)
        return real_reload(self, since)

    real_reload = Reloader.reload
    monkeypatch.setattr(writer.Transaction, "_commit", commit)
    monkeypatch.setattr(Reloader, "reload", reload)
    answer = _post(api, [names[1].upper(), *names[:1], *names[2:]])
    assert answer.status_code == 200, answer.content
    order = [names[1], names[0], *names[2:]]
    assert answer.json() == {
        "succeeded": [
            {"worker_id": name, "hostname": f"seat-{name}"} for name in order
        ],
        "failed": [],
    }
    assert sorted(commits) == ["dhcp-hosts.conf", "workers.yml"]
    assert len(reloads) == 1
    assert list(ledger(layout)) == ["stays"]
    assert live_hosts(layout) == [f"{M1},stays"]
    lines = trail(layout, "delete_worker")
    assert [line["worker_id"] for line in lines] == order
    assert all(line["removed_lines"] for line in lines)


@pytest.mark.parametrize("delete_disk", [True, False])
def test_disks_go_with_their_images_if_asked(
    api: APIClient, layout: Layout, node: RealNode, pcs: list[str], delete_disk: bool
) -> None:
    answer = _post(api, pcs, delete_disk=delete_disk).json()
    assert [each["worker_id"] for each in answer["succeeded"]] == pcs
    assert ledger(layout) == {}
    for pc in pcs:
        assert f"{BASE}:{pc}.debian" not in node.targets()
        assert (node.folder / f"{pc}.debian.img").exists() is not delete_disk
    told = trail(layout, "worker.disk.delete")
    assert sorted(line["worker_id"] for line in told) == sorted(pcs)


@pytest.mark.case(98)
def test_what_cannot_go_stops_nobody(
    api: APIClient, layout: Layout, node: RealNode, pcs: list[str]
) -> None:
    api.delete(f"/agents/n/luns?iqn={BASE}:{pcs[1]}.debian")
    record = ledger(layout)[pcs[1]]
    answer = _post(api, ["nobody", pcs[0], pcs[1], pcs[0], "bad id!", pcs[2]]).json()
    assert [each["worker_id"] for each in answer["succeeded"]] == [pcs[0], pcs[2]]
    failed = {each["worker_id"]: each["error"] for each in answer["failed"]}
    assert list(failed) == ["nobody", pcs[1], pcs[0], "bad id!"]
    assert "no worker" in failed["nobody"]
    assert "ignore_missing_target" in failed[pcs[1]]
    assert "earlier in this request" in failed[pcs[0]]
    assert ledger(layout) == {pcs[1]: record}
    again = _post(api, [pcs[1]], ignore_missing_target=True).json()
    assert len(again["succeeded"]) == 1, again
    assert ledger(layout) == {}


@pytest.mark.tgtd
@pytest.mark.case(72)
def test_a_worker_in_use_fails_alone(
    api: APIClient, layout: Layout, stgt_node: RealNode, worker: Make
) -> None:
    assert stgt_node.tgtd
    stgt_node.register("s", role={"disk": True, "cd": True})
    names = [stgt_node.name() for _ in range(3)]
    for name in names:
        worker(name)
        body = {"type": "empty", "os": "debian", "size": "1M"}
        assert api.post(f"/workers/{name}/luns/disk", body).status_code == 201
    iso = stgt_node.image(f"{stgt_node.name('win')}.iso")
    cd = api.post(f"/workers/{names[2]}/luns/cd", {"iso": iso.name})
    assert cd.status_code == 201
    before = ledger(layout)[names[0]]
    initiator = f"{BASE}:{names[0]}"
    with node_lab.session(
        stgt_node.tgtd, f"{BASE}:{names[0]}.debian", initiator=initiator
    ):
        answer = _post(api, names, delete_disk=True).json()
    assert [each["worker_id"] for each in answer["succeeded"]] == names[1:]
    (failed,) = answer["failed"]
    assert failed["worker_id"] == names[0]
    assert initiator in failed["error"]
    assert ledger(layout) == {names[0]: before}
    assert len(live_hosts(layout)) == 1
    left = [iqn for iqn in stgt_node.targets() if any(name in iqn for name in names)]
    assert left == [f"{BASE}:{names[0]}.debian"]
    assert (stgt_node.folder / f"{names[0]}.debian.img").exists()
    assert not (stgt_node.folder / f"{names[1]}.debian.img").exists()
    assert iso.exists()
    assert trail(layout, "lun.delete")[-1]["worker_id"] == names[2]


@pytest.mark.usefixtures("impatient")
def test_a_dead_node_costs_its_own_workers_only(
    api: APIClient, layout: Layout, node: RealNode, pcs: list[str]
) -> None:
    agent_register(
        actor=SYSTEM, agent_id="dead", base_url="http://127.0.0.1:9", token="t"
    )
    text = layout.workers_yml.read_text()
    disk = f"{{os: debian, agent: dead, iqn: '{BASE}:lost.debian'}}"
    text += f"  lost: {{hostname: lost, disks: [{disk}]}}\n"
    layout.workers_yml.write_text(text)
    answer = _post(api, ["lost", *pcs]).json()
    assert [each["worker_id"] for each in answer["succeeded"]] == pcs
    (failed,) = answer["failed"]
    assert failed["worker_id"] == "lost"
    assert "node dead" in failed["error"]
    assert list(ledger(layout)) == ["lost"]
    assert "status" not in ledger(layout)["lost"]["disks"][0]


def test_a_node_that_refuses_keeps_its_worker(
    api: APIClient, layout: Layout, node: RealNode, pcs: list[str]
) -> None:
    """The image has a second name: the node does not delete it, and the worker stays as it was."""
    image = node.folder / f"{pcs[0]}.debian.img"
    other = node.folder / f"{node.name('held')}.txt"
    other.hardlink_to(image)
    before = ledger(layout)[pcs[0]]
    answer = _post(api, pcs, delete_disk=True).json()
    assert [each["worker_id"] for each in answer["failed"]] == pcs[:1]
    assert ledger(layout) == {pcs[0]: before}
    assert trail(layout, "delete_worker")[-1]["status"] in ("ok", "failed")


def test_a_disk_that_is_worked_on_fails_alone(
    api: APIClient, layout: Layout, pcs: list[str]
) -> None:
    with inflight.claim(layout.run, f"disk-{pcs[1]}.debian"):
        answer = _post(api, pcs).json()
    assert [each["worker_id"] for each in answer["failed"]] == [pcs[1]]
    assert list(ledger(layout)) == [pcs[1]]
    assert "status" not in ledger(layout)[pcs[1]]["disks"][0]


def test_many_chunks(
    api: APIClient, layout: Layout, pcs: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(removal_batch, "CHUNK", 1)
    told: list[int] = []
    answer = removal_batch.workers_delete(
        actor=SYSTEM, worker_ids=pcs, watch=Told(told)
    )
    assert len(answer["succeeded"]) == 3
    assert told == [1, 2, 3]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"worker_ids": []}, "worker_ids"),
        ({"worker_ids": ["a"] * 10_001}, "1 to 10000"),
        ({"worker_ids": "pc1"}, "worker_ids"),
        ({"worker_ids": [1]}, "worker_ids"),
        ({}, "worker_ids"),
        ({"worker_ids": ["pc1"], "delete_disks": True}, "unknown field"),
        ({"worker_ids": ["pc1"], "force": True}, "unknown field"),
        ({"worker_ids": ["pc1"], "delete_disk": "perhaps"}, "delete_disk"),
    ],
)
def test_a_malformed_batch_does_nothing(
    api: APIClient, layout: Layout, worker: Make, body: dict[str, Any], words: str
) -> None:
    worker("pc1")
    before = snapshot(layout)
    status, said = refusal(api, "post", PATH, body)
    assert (status, words in said) == (400, True), said
    assert snapshot(layout) == before


def test_roles_and_a_broken_file(
    api: APIClient,
    as_viewer: APIClient,
    stranger: APIClient,
    layout: Layout,
    worker: Make,
) -> None:
    worker("pc1")
    assert _post(stranger, ["pc1"]).status_code == 401
    assert _post(as_viewer, ["pc1"]).status_code == 403
    assert api.get(PATH).status_code == 405
    hosts = layout.dhcp_hosts.read_bytes()
    layout.dhcp_hosts.unlink()
    before = layout.workers_yml.read_bytes()
    answer = _post(api, ["pc1"])
    assert answer.status_code == 503
    assert "dhcp-hosts.conf" in answer.json()["detail"]
    assert layout.workers_yml.read_bytes() == before
    layout.dhcp_hosts.write_bytes(hosts)
    assert len(_post(api, ["pc1"]).json()["succeeded"]) == 1
