"""POST /workers/luns/disk/batch: many disks, each on its own, the ledger written once for a hundred."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rest_framework.test import APIClient

from agents.services import agent_register
from ipxeready.actors import SYSTEM
from ipxeready.storage import inflight
from ipxeready.storage.paths import Layout
from tests.agents.fakes import http_server
from tests.ipxeready.jobs.helpers import Told
from tests.nodes import BASE, MIB, RealNode, serving
from tests.workers.helpers import ledger, refusal, snapshot, trail
from workers import batches
from workers.settle import settle_all

PATH = "/workers/luns/disk/batch"
Make = Callable[..., dict[str, Any]]


@pytest.fixture
def pcs(node: RealNode, layout: Layout) -> list[str]:
    """Three workers whose names no other test has on the node, which is registered as `n`."""
    node.register("n")
    return _workers(layout, [node.name() for _ in range(3)])


def _workers(layout: Layout, names: list[str]) -> list[str]:
    """Workers by an edit of the file."""
    lines = [f"  {name}:\n    hostname: {name}\n" for name in names]
    layout.workers_yml.write_text("workers:\n" + "".join(lines))
    return names


def _to(names: list[str], agent: str = "n") -> list[dict[str, str]]:
    return [{"worker_id": name, "agent": agent} for name in names]


def _post(api: APIClient, targets: Any, **body: Any) -> Any:
    given = {"type": "empty", "os": "debian", "size": "1M", **body}
    given = {key: value for key, value in given.items() if value is not None}
    return api.post(PATH, {**given, "targets": targets})


def test_each_worker_gets_a_disk_and_boots_it(
    api: APIClient, layout: Layout, node: RealNode, pcs: list[str]
) -> None:
    answer = _post(api, _to([pcs[2].upper(), pcs[0], pcs[1]], "N"), os="Debian")
    assert answer.status_code == 200, answer.content
    order = [pcs[2], pcs[0], pcs[1]]
    assert answer.json() == {
        "succeeded": [
            {"worker_id": pc, "agent": "n", "iqn": f"{BASE}:{pc}.debian"}
            for pc in order
        ],
        "skipped": [],
        "failed": [],
    }
    for pc in pcs:
        record = ledger(layout)[pc]
        assert (record["default_os"], record["state"]) == ("debian", "ready")
        (disk,) = record["disks"]
        assert "status" not in disk
        assert disk["backing"] == str(node.folder / f"{pc}.debian.img")
        assert disk["source"] == {"type": "empty", "size": MIB}
        assert f"{BASE}:{pc}.debian" in node.targets()
    lines = trail(layout, "worker.disk.create")
    assert sorted((line["worker_id"], line["status"]) for line in lines) == sorted(
        (pc, status) for pc in pcs for status in ("started", "ok")
    )
    assert {line["client"] for line in lines} == {"127.0.0.1"}
    assert len(trail(layout, "agent.create_disk")) == 3


@pytest.mark.case(64)
def test_clones_have_the_masters_bytes_and_holes(
    api: APIClient, layout: Layout, node: RealNode, pcs: list[str]
) -> None:
    master = f"{node.name('m')}_tpl_v1.img"
    node.image(master, 64 * MIB, b"the master")
    answer = _post(api, _to(pcs), type="master", name=master, size=None)
    assert len(answer.json()["succeeded"]) == 3, answer.json()
    for pc in pcs:
        clone = node.folder / f"{pc}.debian.img"
        assert clone.read_bytes() == (node.folder / master).read_bytes()
        assert clone.stat().st_blocks * 512 < 2 * MIB
    for line in trail(layout, "agent.create_disk"):
        assert line["how"].startswith(("reflink", "full copy, because "))
        assert 0 <= line["bytes"] < 2 * MIB
        assert line["seconds"] >= 0
    (disk,) = ledger(layout)[pcs[0]]["disks"]
    assert not {"how", "seconds", "bytes"} & set(disk)


def test_kept_images_are_attached_by_their_own_names(
    api: APIClient, layout: Layout, node: RealNode, pcs: list[str]
) -> None:
    for pc in pcs[:2]:
        node.image(f"{pc}.debian.img")
    answer = _post(api, _to(pcs), type="existing", size=None).json()
    assert [each["worker_id"] for each in answer["succeeded"]] == pcs[:2]
    assert [each["worker_id"] for each in answer["failed"]] == pcs[2:]
    own = f"{pcs[0]}.debian.img"
    assert ledger(layout)[pcs[0]]["disks"][0]["source"]["name"] == own
    assert ledger(layout)[pcs[2]]["disks"] == []
    assert trail(layout, "worker.disk.create")[-1]["status"] == "rollback"


@pytest.mark.case(60)
@pytest.mark.case(100)
def test_what_cannot_be_made_stops_nobody(
    api: APIClient, layout: Layout, node: RealNode, pcs: list[str]
) -> None:
    node.register("off", enabled=False)
    node.register("cds", role={"disk": False, "cd": True})
    there = node.image(f"{pcs[1]}.debian.img", content=b"somebody's")
    identity = there.stat().st_ino
    assert len(_post(api, _to(pcs[:1])).json()["succeeded"]) == 1
    targets = [
        {"worker_id": pcs[0], "agent": "n"},
        {"worker_id": "nobody", "agent": "n"},
        {"worker_id": pcs[1], "agent": "n"},
        {"worker_id": pcs[2], "agent": "off"},
        {"worker_id": "bad id!", "agent": "n"},
    ]
    answer = _post(api, targets).json()
    assert answer["succeeded"] == []
    reason = f"{pcs[0]} has a debian disk already on node n"
    assert answer["skipped"] == [{"worker_id": pcs[0], "reason": reason}]
    assert [each["worker_id"] for each in answer["failed"]] == [
        "nobody",
        pcs[1],
        pcs[2],
        "bad id!",
    ]
    for failed, words in zip(
        answer["failed"], ["no worker", "exists already", "disabled", ""], strict=True
    ):
        assert words in failed["error"]
    assert (there.stat().st_ino, there.read_bytes()[:9]) == (identity, b"somebody'")
    assert ledger(layout)[pcs[1]] == {"hostname": pcs[1]} or not ledger(layout)[
        pcs[1]
    ].get("disks")
    assert ledger(layout)[pcs[1]].get("default_os") is None
    for agent, words in (("nobody", "no node"), ("cds", "takes no disks")):
        (failed,) = _post(api, _to(pcs[2:], agent)).json()["failed"]
        assert failed["agent"] == agent
        assert words in failed["error"]


def test_a_worker_named_twice_gets_one_disk(
    api: APIClient, node: RealNode, pcs: list[str]
) -> None:
    answer = _post(api, _to([pcs[0], pcs[1], pcs[0].upper()])).json()
    assert [each["worker_id"] for each in answer["succeeded"]] == pcs[:2]
    assert [each["worker_id"] for each in answer["skipped"]] == [pcs[0]]
    assert "earlier in this request" in answer["skipped"][0]["reason"]


def test_a_disk_that_is_worked_on_fails_alone(
    api: APIClient, layout: Layout, pcs: list[str]
) -> None:
    with inflight.claim(layout.run, f"disk-{pcs[1]}.debian"):
        answer = _post(api, _to(pcs)).json()
    assert [each["worker_id"] for each in answer["succeeded"]] == [pcs[0], pcs[2]]
    assert "is being worked on" in answer["failed"][0]["error"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"targets": []}, "targets"),
        ({"targets": [{"worker_id": "a", "agent": "n"}] * 10_001}, "1 to 10000"),
        ({"targets": [{"worker_id": "a"}]}, "agent"),
        ({"targets": [{"worker_id": "a", "agent": "n", "size": 1}]}, "unknown field"),
        ({"targets": "a"}, "targets"),
        ({"targets": None}, "targets"),
        ({"os": "templeos"}, "os"),
        ({"type": "magic"}, "type"),
        ({"size": "0"}, "size"),
        ({"size": "1000"}, "size"),
        ({"size": None}, "size"),
        ({"name": "x_tpl_.img"}, "name"),
        ({"type": "master", "size": None}, "name"),
        ({"type": "master", "name": "plain.img", "size": None}, "name"),
        ({"disk_agent": "n"}, "unknown field"),
    ],
)
def test_a_malformed_batch_does_nothing(
    api: APIClient, layout: Layout, pcs: list[str], body: dict[str, Any], words: str
) -> None:
    before = snapshot(layout)
    given = {"type": "empty", "os": "debian", "size": "1M", "targets": _to(pcs)}
    status, said = refusal(api, "post", PATH, {**given, **body})
    assert (status, words in said) == (400, True), said
    assert snapshot(layout) == before
    assert not trail(layout, "worker.disk.create")


def test_roles(
    api: APIClient, as_viewer: APIClient, stranger: APIClient, pcs: list[str]
) -> None:
    assert _post(stranger, _to(pcs)).status_code == 401
    assert _post(as_viewer, _to(pcs)).status_code == 403
    assert api.get(PATH).status_code == 405
    given = {"type": "empty", "os": "debian", "size": "1M", "targets": _to(pcs)}
    assert api.post(f"/api/cp{PATH}/", given).status_code == 200


def test_a_broken_ledger_answers_as_a_whole(
    api: APIClient, layout: Layout, node: RealNode, pcs: list[str]
) -> None:
    api.get("/workers")
    layout.workers_yml.write_bytes(layout.workers_yml.read_bytes() + b'x: "\n')
    before = layout.workers_yml.read_bytes()
    answer = _post(api, _to(pcs))
    assert answer.status_code == 503, answer.content
    assert "workers.yml" in answer.json()["detail"]
    assert layout.workers_yml.read_bytes() == before
    assert not any(pcs[0] in iqn for iqn in node.targets())


def test_the_ledger_is_written_once_to_reserve_and_once_to_confirm(
    api: APIClient,
    layout: Layout,
    node: RealNode,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    node.register("n")
    names = _workers(layout, [node.name() for _ in range(12)])
    monkeypatch.setattr(batches, "CHUNK", 6)
    opened: list[str] = []
    real = batches.writing

    def counting(**given: Any) -> Any:
        opened.append(given["op"])
        return real(**given)

    monkeypatch.setattr(batches, "writing", counting)
    told: list[int] = []
    answer = batches.disk_batch(
        actor=SYSTEM,
        type="empty",
        os="ubuntu",
        size="1M",
        targets=[(name, "n") for name in names],
        watch=Told(told),
    )
    assert [each["worker_id"] for each in answer["succeeded"]] == names
    assert len(opened) == 4
    assert told == list(range(1, 13))


@pytest.mark.usefixtures("impatient")
def test_a_hung_node_costs_its_own_items_only(
    api: APIClient, layout: Layout, node: RealNode, pcs: list[str]
) -> None:
    """It is asked once; what waits for it is not tried, and the other node's disks are made."""
    agent_register(
        actor=SYSTEM, agent_id="dead", base_url="http://127.0.0.1:9", token="t"
    )
    targets = [*_to(pcs[:1]), *_to(pcs[1:], "dead")]
    answer = _post(api, targets).json()
    assert [each["worker_id"] for each in answer["succeeded"]] == pcs[:1]
    assert [each["worker_id"] for each in answer["failed"]] == pcs[1:]
    assert all("unreachable" in each["error"] for each in answer["failed"])
    assert not ledger(layout)[pcs[1]].get("disks")


def test_a_lost_answer_is_asked_for_again(api: APIClient, layout: Layout) -> None:
    """The node makes it and drops the connection: the disk is found by its target."""
    _workers(layout, ["pc1", "pc2"])
    made: list[str] = []

    def answer(method: str, path: str) -> tuple[int, dict[str, str], bytes]:
        if method == "POST":
            made.append(path)
            return 201, {}, b"no json"
        if path == "/lun":
            iqn = f"{BASE}:pc1.debian"
            lun = {"lun": 1, "backing": "/x/pc1", "size": 1, "type": "disk"}
            return (
                200,
                {},
                json.dumps([{"iqn": iqn, "luns": [lun], "sessions": []}]).encode(),
            )
        return 200, {}, b'{"status": "ok"}'

    with http_server(answer) as fake:
        agent_register(actor=SYSTEM, agent_id="n", base_url=fake.base_url, token="t")
        found = _post(api, _to(["pc1", "pc2"])).json()
    assert [each["worker_id"] for each in found["succeeded"]] == ["pc1"]
    assert [each["worker_id"] for each in found["failed"]] == ["pc2"]
    assert ledger(layout)["pc1"]["disks"][0]["backing"] == "/x/pc1"
    assert not ledger(layout)["pc2"].get("disks")
    assert len(made) == 2


@pytest.mark.case(93)
def test_a_node_that_dies_in_the_middle_of_fifty(
    api: APIClient, layout: Layout, tmp_path: Path
) -> None:
    """After its restart ledger and node agree; the same batch then finishes the work."""
    names = _workers(layout, [f"pc{number:02d}" for number in range(50)])
    root = tmp_path / "dying"
    with serving(root, "files") as node:
        agent_register(
            actor=SYSTEM, agent_id="n", base_url=node.base_url, token=node.token
        )

        def kill() -> None:
            while len(list(node.folder.glob("*.debian.img"))) < 20:
                pass
            node.kill()

        killer = threading.Thread(target=kill)
        killer.start()
        answer = _post(api, _to(names))
        killer.join()
    assert answer.status_code == 200, answer.content
    body = answer.json()
    assert body["failed"], "it died too late"
    assert len(body["succeeded"]) >= 18
    assert len(body["succeeded"]) + len(body["failed"]) == 50
    with serving(root, "files") as again:
        api.put("/agents/n", {"base_url": again.base_url, "token": again.token})
        settle_all()
        iqns = set(again.targets())
        listed = {
            disk["iqn"]: disk.get("status")
            for record in ledger(layout).values()
            for disk in record.get("disks") or []
        }
        assert set(listed.values()) == {None}
        # What it had finished without saying so was adopted: nothing is on one side only.
        assert set(listed) == iqns
        images = {path.name for path in again.folder.glob("[!.]*")}
        assert images == {f"{iqn.rpartition(':')[2]}.img" for iqn in iqns}
        second = _post(api, _to(names)).json()
        assert second["failed"] == []
        assert [each["worker_id"] for each in second["skipped"]] == [
            name for name in names if f"{BASE}:{name}.debian" in iqns
        ]
        assert len(second["succeeded"]) + len(second["skipped"]) == 50
        assert len(again.targets()) == 50


@pytest.mark.case(93)
def test_what_a_crash_left_is_settled_by_the_next_batch(
    api: APIClient, layout: Layout, node: RealNode, pcs: list[str]
) -> None:
    """One was made before the crash, the other not: the first is skipped, the second made."""
    _post(api, _to(pcs[:1]))
    text = layout.workers_yml.read_text()
    for pc in pcs[:2]:
        record = {
            "hostname": pc,
            "disks": [
                {
                    "agent": "n",
                    "iqn": f"{BASE}:{pc}.debian",
                    "filename": f"{pc}.debian.img",
                    "os": "debian",
                    "status": "creating",
                }
            ],
        }
        text = "workers:\n" if pc == pcs[0] else text
        text += f"  {pc}: {json.dumps(record)}\n"
    layout.workers_yml.write_text(text)
    answer = _post(api, _to(pcs[:2])).json()
    assert [each["worker_id"] for each in answer["skipped"]] == pcs[:1]
    assert [each["worker_id"] for each in answer["succeeded"]] == pcs[1:2]
