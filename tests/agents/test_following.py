"""Long calls to a node: followed as jobs, stopped on a wish, and not given up because the node restarts."""

from __future__ import annotations

import contextlib
import json
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agents import client as client_module
from agents import following
from agents.client import NodeClient
from agents.following import Callbacks
from agents.models import Agent
from agents.protocol.requests import DiskRequest
from ipxeready.errors import NodeRefused, Unavailable, UpstreamFailed
from ipxeready.storage.jobs import Cancelled
from tests.agents.fakes import CAPABILITIES, Fake, http_server
from tests.agents.node.node_lab import BASE, TOKEN
from tests.agents.node.test_node_serve import Agent as Process
from tests.agents.node.test_node_serve import agent
from tests.processes import eventually

MASTER = "debian_tpl_v1.img"
IQN = f"{BASE}:pc1.debian"
WANTED = DiskRequest(iqn=IQN, master=MASTER)
MADE = {"iqn": IQN, "backing": "/images/pc1.debian.img"}
JOB = "20260101-000000-00000000"
pytestmark = pytest.mark.usefixtures("layout")


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "WAIT", 1.0)
    monkeypatch.setattr(following, "FIRST", 0.05)
    monkeypatch.setattr(following, "LAST", 0.1)


# --- a node that is a process, with a disk that takes its time --------------
@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The image folder of the node, with a master."""
    found = tmp_path / "root" / "images"
    found.mkdir(parents=True)
    (found / MASTER).write_bytes(os.urandom(40 << 20))
    return found


@contextlib.contextmanager
def slow_node(tmp_path: Path, **more: str) -> Iterator[tuple[Process, NodeClient]]:
    """A node whose disk writes a piece in 0.1 s."""
    with agent(tmp_path, None, slow=True, SLOW="0.1", **more) as process:
        yield process, client_of(process)


def images(folder: Path) -> list[str]:
    """What lies in the image folder, half files too."""
    names = [p.name for p in folder.iterdir()]
    return sorted(n for n in names if n.endswith(".part") or not n.startswith("."))


def client_of(process: Process) -> NodeClient:
    """A client of it."""
    url = f"http://127.0.0.1:{process.port}"
    return NodeClient(Agent(id="n", base_url=url, token=TOKEN), timeout=5.0)


@pytest.mark.case(65)
def test_copy_that_takes_long_is_followed_to_its_end(
    tmp_path: Path, folder: Path
) -> None:
    seen: list[tuple[int, int | None, str]] = []
    ids: list[str] = []
    with slow_node(tmp_path) as (_, client):
        made = client.create_disk(
            WANTED,
            Callbacks(progress=lambda *now: seen.append(now), on_job=ids.append),
        )
        assert made["iqn"] == IQN
        assert made["backing"] == str(folder / "pc1.debian.img")
        assert (folder / "pc1.debian.img").read_bytes() == (
            folder / MASTER
        ).read_bytes()
        assert seen == sorted(seen)
        assert len({done for done, _, _ in seen}) > 2
        assert seen[-1] == (40 << 20, 40 << 20, "bytes")
        assert [job["id"] for job in client.jobs()] == ids
        assert client.job(ids[0])["state"] == "done"
        assert client.jobs(state="failed") == []


@pytest.mark.case(65)
def test_wish_to_stop_cancels_the_job_and_nothing_is_left(
    tmp_path: Path, folder: Path
) -> None:
    ids: list[str] = []
    with slow_node(tmp_path) as (_, client):
        with pytest.raises(Cancelled) as caught:
            client.create_disk(
                WANTED, Callbacks(stop=lambda: bool(ids), on_job=ids.append)
            )
        assert caught.value.extra == {"agent": "n", "sent": False}
        assert client.job(ids[0])["state"] == "cancelled"
        assert client.targets() == []
        assert images(folder) == [MASTER]


def test_progress_that_says_cancelled_is_the_wish_too(
    tmp_path: Path, folder: Path
) -> None:
    def enough(done: int, total: int | None, unit: str) -> None:
        raise Cancelled("enough")

    with slow_node(tmp_path) as (_, client):
        with pytest.raises(Cancelled, match="nothing is left"):
            client.create_disk(WANTED, Callbacks(progress=enough))
        assert client.targets() == []


@pytest.mark.case(65)
def test_two_clients_with_one_wish_have_one_job(tmp_path: Path, folder: Path) -> None:
    ids: list[str] = []
    with slow_node(tmp_path) as (process, client), ThreadPoolExecutor() as pool:
        both = [
            pool.submit(
                client_of(process).create_disk, WANTED, Callbacks(on_job=ids.append)
            )
            for _ in range(2)
        ]
        assert both[0].result() == both[1].result()
        assert len(client.jobs()) == 1
        assert set(ids) == {client.jobs()[0]["id"]}


@pytest.mark.case(65)
def test_kill_in_the_middle_is_a_refusal_after_the_restart(
    tmp_path: Path, folder: Path
) -> None:
    ids: list[str] = []
    with slow_node(tmp_path) as (process, client), ThreadPoolExecutor() as pool:
        waiting = pool.submit(client.create_disk, WANTED, Callbacks(on_job=ids.append))
        eventually(lambda: ids and client.job(ids[0])["done"] >= (16 << 20), seconds=20)
        process.kill()
        with agent(tmp_path, None, port=process.port):
            with pytest.raises(NodeRefused) as caught:
                waiting.result()
            assert caught.value.status == 503
            assert "the agent was restarted" in caught.value.error
            assert client.targets() == []
            assert images(folder) == [MASTER]
            # The same again is made now.
            assert client.create_disk(WANTED)["iqn"] == IQN


# --- nodes that do what a real one hardly ever does -------------------------
class Scripted:
    """A node that gives a job and then answers as it is told."""

    def __init__(self) -> None:
        self.jobs: list[Any] = []
        self.targets: list[Any] = []
        self.making: list[str] = []
        self.created: Any = (202, job("running"))
        self.cancelled: Any = (202, job("running"))
        self.fake: Fake

    def answer(self, method: str, path: str) -> tuple[int, dict[str, str], bytes]:
        status, body = self._answer(method, path)
        return status, {"Content-Type": "application/json"}, json.dumps(body).encode()

    def _answer(self, method: str, path: str) -> Any:
        if path == "/healthz":
            return 200, {"status": "ok"}
        if path == "/capabilities":
            return 200, {**CAPABILITIES, "making": self.making}
        if path == "/lun":
            return 200, self.targets
        if path == "/lun/disk":
            return self.created
        if method == "DELETE":
            return self.cancelled
        return self.jobs.pop(0) if len(self.jobs) > 1 else self.jobs[0]


def job(state: str, **more: Any) -> dict[str, Any]:
    """A job as a node tells it."""
    return {
        "id": JOB,
        "state": state,
        "done": 1,
        "total": 2,
        "unit": "bytes",
        "result": None,
        "error": None,
        **more,
    }


GONE = (404, {"detail": "there is no job"})


@pytest.fixture
def scripted() -> Iterator[tuple[Scripted, NodeClient]]:
    """A scripted node and a client of it."""
    script = Scripted()
    with http_server(script.answer) as script.fake:
        url = script.fake.base_url
        yield script, NodeClient(Agent(id="n", base_url=url, token="t"), timeout=2.0)


def test_older_node_that_ignores_prefer_is_waited_for(
    scripted: tuple[Scripted, NodeClient],
) -> None:
    script, client = scripted
    script.created = (201, MADE)
    assert client.create_disk(WANTED, Callbacks(stop=lambda: False)) == MADE
    sent = next(h for m, p, h in script.fake.requests if p == "/lun/disk")
    assert sent["Prefer"] == "respond-async, wait=1"


def test_failure_of_the_job_is_the_nodes_refusal(
    scripted: tuple[Scripted, NodeClient],
) -> None:
    script, client = scripted
    error = {"status": 507, "detail": {"master": ["no room"]}}
    script.jobs = [(200, job("failed", error=error))]
    with pytest.raises(NodeRefused) as caught:
        client.create_disk(WANTED)
    assert (caught.value.status, caught.value.error) == (507, "master: no room")


@pytest.mark.parametrize("error", [None, {}, {"status": 200, "detail": "x"}, "x"])
def test_failure_without_a_reason_is_a_failure_all_the_same(
    scripted: tuple[Scripted, NodeClient], error: Any
) -> None:
    script, client = scripted
    script.jobs = [(200, job("failed", error=error))]
    with pytest.raises(NodeRefused) as caught:
        client.create_disk(WANTED)
    assert caught.value.status == 502


def test_node_that_is_silent_for_a_while_is_asked_again(
    scripted: tuple[Scripted, NodeClient],
) -> None:
    script, client = scripted
    busy = (503, {"detail": "this node has not started"})
    script.jobs = [busy, (502, None), (200, []), (200, job("done", result=MADE))]
    assert client.create_disk(WANTED) == MADE


def test_node_that_stays_silent_leaves_the_outcome_open(
    scripted: tuple[Scripted, NodeClient], monkeypatch: pytest.MonkeyPatch
) -> None:
    script, client = scripted
    monkeypatch.setattr(following, "PATIENCE", 0.3)
    script.jobs = [(503, {"detail": "not now"})]
    with pytest.raises(Unavailable) as caught:
        client.create_disk(WANTED)
    assert caught.value.extra == {"agent": "n", "sent": True}
    assert JOB in caught.value.message


@pytest.mark.parametrize(
    ("targets", "making", "outcome"),
    [
        (
            [{"iqn": IQN, "luns": [{"backing": MADE["backing"]}], "sessions": []}],
            [],
            MADE,
        ),
        ([], [], NodeRefused),
        ([], ["pc1.debian.img"], Unavailable),
    ],
)
def test_job_that_the_node_has_forgotten_is_decided_by_its_targets(
    scripted: tuple[Scripted, NodeClient], targets: Any, making: Any, outcome: Any
) -> None:
    script, client = scripted
    script.jobs = [GONE]
    script.targets, script.making = targets, making
    if outcome is MADE:
        assert client.create_disk(WANTED) == MADE
        return
    with pytest.raises(outcome) as caught:
        client.create_disk(WANTED)
    assert caught.value.status == 503
    assert caught.value.extra.get("sent") is (True if outcome is Unavailable else None)


def test_wish_that_comes_too_late_gives_the_result(
    scripted: tuple[Scripted, NodeClient],
) -> None:
    script, client = scripted
    script.cancelled = (409, {"detail": "has ended already"})
    script.jobs = [(200, job("done", result=MADE))]
    wish = threading.Event()
    made = client.create_disk(
        WANTED, Callbacks(stop=wish.is_set, on_job=lambda _: wish.set())
    )
    assert made == MADE


def test_wish_before_the_beginning_asks_the_node_nothing(
    scripted: tuple[Scripted, NodeClient],
) -> None:
    script, client = scripted
    with pytest.raises(Cancelled) as caught:
        client.create_disk(WANTED, Callbacks(stop=lambda: True))
    assert caught.value.extra["sent"] is False
    assert script.fake.requests == []


def test_somebody_elses_cancel_is_cancelled_here_too(
    scripted: tuple[Scripted, NodeClient],
) -> None:
    script, client = scripted
    script.jobs = [(200, job("cancelled"))]
    with pytest.raises(Cancelled):
        client.create_disk(WANTED)


@pytest.mark.parametrize(
    "body",
    [
        None,
        [],
        {},
        job("odd"),
        job("running", id=7),
        job("running", done="x"),
        job("running", total=1.5),
    ],
)
def test_nonsense_in_the_place_of_a_job_is_said_so(
    scripted: tuple[Scripted, NodeClient], body: Any
) -> None:
    script, client = scripted
    script.created = (202, body)
    with pytest.raises(UpstreamFailed):
        client.create_disk(WANTED)
    script.jobs = [(200, {"jobs": [body]})]
    with pytest.raises(UpstreamFailed):
        client.jobs()


@pytest.mark.parametrize("name", ["", "..", "../lun", "a/b", "x" * 65, "a?b", "a%2fb"])
def test_id_that_is_none_never_becomes_an_address(
    scripted: tuple[Scripted, NodeClient], name: str
) -> None:
    script, client = scripted
    for call in (client.job, client.job_cancel):
        with pytest.raises(NodeRefused) as caught:
            call(name)
        assert caught.value.status == 404
    assert script.fake.requests == []
