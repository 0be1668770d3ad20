"""A node that dies, hangs or refuses while it makes a disk, and how that is settled."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from rest_framework.test import APIClient

from agents import client as agents_client
from agents.client import NodeClient
from agents.protocol.requests import DiskRequest
from agents.selectors import agent_get
from agents.services import agent_register
from ipxeready.actors import SYSTEM
from ipxeready.storage.inflight import claim
from ipxeready.storage.paths import Layout
from tests.nodes import RealNode
from tests.processes import free_port
from tests.workers.helpers import M1, ledger, refusal, trail
from tests.workers.stub import Stub, die, stub_node
from workers import disks
from workers.settle import settle_all

Make = Callable[..., dict[str, Any]]
IQN = "iqn.2026-07.com.controller:pc1.ubuntu"
BODY = {"type": "empty", "os": "ubuntu", "size": "1M"}
PATH = "/workers/pc1/luns/disk"


@pytest.fixture
def stub(layout: Layout, worker: Make) -> Iterator[Stub]:
    with stub_node() as found:
        found.next_iqn = IQN
        found.register()
        worker("pc1", mac=M1)
        yield found


def the_disk(layout: Layout) -> dict[str, Any] | None:
    found = ledger(layout)["pc1"]["disks"]
    return dict(found[0]) if found else None


def statuses(layout: Layout) -> list[str]:
    return [line["status"] for line in trail(layout, "worker.disk.create")]


def boot(client: APIClient) -> str:
    return client.get(f"/boot-vars?mac={M1}").content.decode()


def test_a_node_that_dies_before_it_made_anything(
    api: APIClient, layout: Layout, stub: Stub
) -> None:
    stub.before = die
    status, words = refusal(api, "post", PATH, BODY)
    assert status == 503
    assert "stub" in words
    assert the_disk(layout) is None
    assert statuses(layout) == ["started", "rollback"]
    assert trail(layout, "agent.create_disk")[0]["status"] == "failed"


def test_a_node_that_dies_after_it_made_the_disk(
    api: APIClient, layout: Layout, stub: Stub
) -> None:
    stub.after = die
    answer = api.post(PATH, BODY)
    assert answer.status_code == 201, answer.json()
    disk = the_disk(layout)
    assert disk and "status" not in disk
    assert disk["backing"] == "/images/x.img"


@pytest.mark.case(46)
@pytest.mark.parametrize("made", [True, False])
def test_a_node_that_cannot_be_asked_leaves_the_disk_creating_until_a_retry(
    api: APIClient, layout: Layout, stub: Stub, made: bool
) -> None:
    stub.mute = True
    if made:
        stub.after = die
    else:
        stub.before = die
    status, words = refusal(api, "post", PATH, BODY)
    assert status == 503
    assert "stays `creating`" in words
    disk = the_disk(layout)
    assert disk and disk["status"] == "creating"
    assert statuses(layout) == ["started", "failed"]
    # Firmware is never sent to it.
    assert "base-iqn" not in boot(api)
    assert api.get("/workers/pc1").json()["state"] == "registered"
    assert refusal(api, "put", "/workers/pc1/default-os", {"os": "ubuntu"})[0] == 409
    # While the node cannot be asked, a retry changes nothing.
    assert refusal(api, "post", PATH, BODY)[0] == 503
    assert the_disk(layout) == disk
    stub.mute, stub.before, stub.after = False, None, None
    answer = api.post(PATH, BODY)
    if made:
        assert answer.status_code == 409
        assert "has a ubuntu disk already" in str(answer.json())
    else:
        assert answer.status_code == 201
    disk = the_disk(layout)
    assert disk and "status" not in disk
    assert disk["backing"] == "/images/x.img"
    assert "base-iqn" in boot(api)


def test_a_node_that_never_answers(
    api: APIClient,
    layout: Layout,
    stub: Stub,
    impatient: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(agents_client, "COPY", 1.0)

    def hang(method: str) -> None:
        stub.mute = True
        stub.release.wait(20)

    stub.before = hang
    status, words = refusal(api, "post", PATH, BODY)
    assert (status, "stays `creating`" in words) == (503, True), words
    disk = the_disk(layout)
    assert disk and disk["status"] == "creating"
    assert "base-iqn" not in boot(api)


def test_a_node_that_is_not_there_keeps_nothing_reserved(
    api: APIClient, layout: Layout, worker: Make
) -> None:
    from agents.services import agent_register

    agent_register(
        actor=SYSTEM, agent_id="gone", base_url=f"http://127.0.0.1:{free_port()}"
    )
    worker("pc1", mac=M1)
    for body in (BODY, {**BODY, "disk_agent": "gone"}):
        status, words = refusal(api, "post", PATH, body)
        assert (status, "gone" in words) == (503, True)
        assert the_disk(layout) is None


def test_the_words_and_the_status_of_a_refusal_are_the_nodes(
    api: APIClient, layout: Layout, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        stub,
        "_answer",
        lambda method, path, query: (
            (507, {"detail": "no room " + "x" * 500})
            if method == "POST"
            else Stub._answer(stub, method, path, query)
        ),
    )
    answer = api.post(PATH, BODY)
    assert answer.status_code == 507
    detail = answer.json()["detail"]
    assert detail["agent"] == "stub"
    assert detail["error"].startswith("no room") and len(detail["error"]) == 200
    assert the_disk(layout) is None
    assert statuses(layout) == ["started", "rollback"]


@pytest.mark.parametrize("made", [True, False])
def test_a_crash_between_reservation_and_confirmation_is_settled_at_the_start(
    api: APIClient, layout: Layout, node: RealNode, worker: Make, made: bool
) -> None:
    node.register("node-1")
    name = node.name("crash")
    worker(name, mac=M1)
    iqn = f"iqn.2026-07.com.controller:{name}.ubuntu"
    disk = {
        "agent": "node-1",
        "iqn": iqn,
        "filename": f"{name}.ubuntu.img",
        "backing": "",
        "os": "ubuntu",
        "source": {"type": "empty", "size": 1 << 20},
        "status": "creating",
    }
    disks._reserve(SYSTEM, name, disk)
    if made:
        NodeClient(agent_get("node-1")).create_disk(DiskRequest(iqn, size=1 << 20))
    # Somebody still works on it: left alone.
    with claim(layout.run, f"disk-{name}.ubuntu") as mine:
        assert mine
        settle_all()
        assert ledger(layout)[name]["disks"][0]["status"] == "creating"
        assert refusal(api, "post", f"/workers/{name}/luns/disk", BODY)[0] == 409
    settle_all()
    found = ledger(layout)[name]["disks"]
    last = trail(layout, "worker.disk.create")[-1]
    if made:
        assert found[0]["backing"] == str(node.folder / f"{name}.ubuntu.img")
        assert "status" not in found[0]
        assert (last["status"], last["agent"]) == ("ok", "node-1")
    else:
        assert found == []
        assert last["status"] == "rollback"
    assert "interruption" in last["note"]


def test_a_start_goes_on_where_a_node_is_gone(
    api: APIClient, layout: Layout, stub: Stub
) -> None:
    stub.mute = True
    stub.before = die
    api.post(PATH, BODY)
    settle_all()
    disk = the_disk(layout)
    assert disk and disk["status"] == "creating"
    last = trail(layout, "worker.disk.create")[-1]
    assert last["status"] == "failed" and "not settled" in last["error"]


def test_a_worker_is_not_deleted_while_its_disk_is_made(
    api: APIClient, layout: Layout, stub: Stub
) -> None:
    said: list[tuple[int, str]] = []

    def meanwhile(method: str) -> None:
        from django.db import connection

        said.append(refusal(api, "delete", "/workers/pc1"))
        said.append(refusal(api, "delete", f"{PATH}/ubuntu"))
        connection.close()

    stub.after = meanwhile
    assert api.post(PATH, BODY).status_code == 201
    assert [status for status, _ in said] == [409, 409]
    assert all("being worked on" in words for _, words in said)
    assert the_disk(layout)


def test_a_worker_that_is_taken_out_by_hand_meanwhile_is_told(
    api: APIClient, layout: Layout, stub: Stub
) -> None:
    stub.after = lambda method: layout.workers_yml.write_text("workers: {}\n") and None
    status, words = refusal(api, "post", PATH, BODY)
    assert status == 409
    assert f"node stub has made {IQN}" in words
    assert ledger(layout) == {}
    assert trail(layout, "worker.disk.create")[-1]["status"] == "failed"


def test_a_ledger_that_breaks_meanwhile_is_told_and_settled_when_mended(
    api: APIClient, layout: Layout, stub: Stub
) -> None:
    whole: list[str] = []

    def smash(method: str) -> None:
        whole.append(layout.workers_yml.read_text())
        layout.workers_yml.write_text(whole[0] + "  oops: [\n")

    stub.after = smash
    status, words = refusal(api, "post", PATH, BODY)
    assert status == 503
    assert f"node stub has made {IQN}" in words and "workers.yml" in words
    assert "base-iqn" not in boot(api)
    layout.workers_yml.write_text(whole[0])
    settle_all()
    disk = the_disk(layout)
    assert disk and "status" not in disk


def test_a_named_node_that_hangs_is_not_given_a_day(
    api: APIClient, layout: Layout, impatient: None, worker: Callable[..., Any]
) -> None:
    worker("pc9")
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        agent_register(actor=SYSTEM, agent_id="deaf", base_url=url, token="t")
        began = time.monotonic()
        answer = api.post("/workers/pc9/luns/disk", {**BODY, "disk_agent": "deaf"})
        assert time.monotonic() - began < 5
    assert answer.status_code == 503
    assert "deaf" in answer.json()["detail"]
    assert ledger(layout)["pc9"]["disks"] == []
