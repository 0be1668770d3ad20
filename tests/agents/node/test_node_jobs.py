"""Long work as jobs: what becomes one, what never waits behind it, and how it ends."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from agents.node import copying
from agents.node.jobs import FINISH, HEAVY, Jobs
from agents.node.parts import PART
from ipxeready import ending
from tests.agents.node.node_lab import BASE, SIZE, Lab
from tests.processes import eventually

MASTER = "debian_tpl_v1.img"
ASYNC = "respond-async"
PIECES = 4


class Copies:
    """Full copies that go on piece by piece, when the test says so; several run in the same step."""

    def __init__(self) -> None:
        self.pieces = threading.Semaphore(0)
        self.under_way = 0
        self.most = 0
        self.made: list[str] = []
        self._guard = threading.Lock()

    def copy(
        self, source: int, destination: int, *, progress: Callable[[int], None]
    ) -> int:
        with self._guard:
            self.under_way += 1
            name = os.path.basename(os.readlink(f"/proc/self/fd/{destination}"))
            self.made.append(name.rsplit(".", 2)[0])
            self.most = max(self.most, self.under_way)
        try:
            size = os.fstat(source).st_size
            os.ftruncate(destination, size)
            piece = size // PIECES
            for at in range(PIECES):
                while not self.pieces.acquire(timeout=0.05):
                    progress(0)
                os.pwrite(destination, os.pread(source, piece, at * piece), at * piece)
                progress(piece)
            return size
        finally:
            with self._guard:
                self.under_way -= 1

    def go(self, count: int = 1000) -> None:
        self.pieces.release(count)


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> Iterator[Copies]:
    """No reflink here, and copies that wait for the test."""
    found = Copies()
    monkeypatch.setattr(copying, "reflink", lambda source, destination: "EXDEV")
    monkeypatch.setattr(copying, "sparse_copy", found.copy)
    yield found
    found.go()


@pytest.fixture
def node(files: Lab) -> Lab:
    """A node with a master."""
    files.image(MASTER, content=os.urandom(SIZE))
    return files


def clone(lab: Lab, name: str, prefer: str | None = ASYNC, **more: Any) -> Any:
    """Ask for a clone."""
    body = {"iqn": f"{BASE}:{name}", "master": MASTER, **more}
    headers = {"Prefer": prefer} if prefer else {}
    return lab.client.post(
        "/lun/disk", body, content_type="application/json", headers=headers
    )


def job(lab: Lab, answer: Any) -> dict[str, Any]:
    """The job of a 202 as it is now."""
    found: dict[str, Any] = lab.client.get(answer["Location"]).json()
    return found


def ended(lab: Lab, answer: Any) -> dict[str, Any]:
    """The job of a 202 after its end."""
    eventually(lambda: job(lab, answer)["ended"])
    return job(lab, answer)


def on_file(lab: Lab) -> list[str]:
    """What lies in the folder of the jobs."""
    folder = lab.node.jobs.store.folder
    return sorted(p.name for p in folder.iterdir()) if folder.exists() else []


def hidden(lab: Lab) -> list[str]:
    """Half files."""
    return [p.name for p in lab.folder.iterdir() if p.name.endswith(PART)]


@pytest.mark.case(65)
def test_copy_is_a_job_with_an_id_progress_and_an_end(
    node: Lab, copies: Copies
) -> None:
    answer = clone(node, "pc1.debian")
    assert answer.status_code == 202
    assert answer["Preference-Applied"] == ASYNC
    told = answer.json()
    assert answer["Location"] == f"/jobs/{told['id']}"
    assert (told["kind"], told["unit"]) == ("lun.create_disk", "bytes")
    assert told["about"]["iqn"] == f"{BASE}:pc1.debian"
    copies.go(2)
    eventually(lambda: job(node, answer)["done"] == SIZE // 2)
    now = job(node, answer)
    assert (now["state"], now["total"]) == ("running", SIZE)
    assert node.client.get("/capabilities").json()["making"] == ["pc1.debian.img"]
    copies.go()
    end = ended(node, answer)
    assert (end["state"], end["done"], end["error"]) == ("done", SIZE, None)
    result = dict(end["result"])
    assert result.pop("seconds") >= 0
    assert result == {
        "how": "full copy, because EXDEV",
        "bytes": SIZE,
        "iqn": f"{BASE}:pc1.debian",
        "backing": str(node.folder / "pc1.debian.img"),
    }
    assert node.targets() == {"pc1.debian": "pc1.debian.img"}
    # The end is on file, for the next process too.
    node.restart()
    assert job(node, answer) == end


def test_wait_gives_the_ordinary_answer_when_it_is_over_by_then_and_writes_no_file(
    node: Lab,
) -> None:
    answer = clone(node, "pc1.debian", "respond-async, wait=20")
    assert answer.status_code == 201
    assert answer.json()["backing"] == str(node.folder / "pc1.debian.img")
    empty = node.client.post(
        "/lun/disk",
        {"iqn": f"{BASE}:pc2.debian", "size": SIZE},
        content_type="application/json",
        headers={"Prefer": ASYNC},
    )
    assert empty.status_code == 201
    assert on_file(node) == []
    assert node.client.get("/jobs").json() == {"jobs": []}


def test_wait_that_is_not_enough_gives_the_job(node: Lab, copies: Copies) -> None:
    answer = clone(node, "pc1.debian", 'Wait="1", Respond-Async, foo')
    assert answer.status_code == 202
    assert answer.json()["state"] == "running"
    copies.go()
    assert ended(node, answer)["state"] == "done"


def test_call_without_prefer_waits_and_shows_itself_when_it_takes_long(
    node: Lab, copies: Copies
) -> None:
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(clone, node, "pc1.debian", None)
        eventually(lambda: node.client.get("/jobs").json()["jobs"])
        assert not waiting.done()
        copies.go()
        assert waiting.result().status_code == 201
    assert [j["state"] for j in node.client.get("/jobs").json()["jobs"]] == ["done"]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"iqn": "iqn.2000-01.com.example:a.b"}, 400),
        ({"size": "1M"}, 400),
        ({"master": "none_tpl_x.img"}, 404),
        ({"iqn": f"{BASE}:taken.debian"}, 409),
        ({"iqn": f"{BASE}:left.debian"}, 409),
    ],
)
def test_what_is_known_before_the_copy_is_answered_at_once_and_is_no_job(
    node: Lab, body: dict[str, Any], status: int
) -> None:
    assert node.disk("taken.debian", size=SIZE).status_code == 201
    node.image("left.debian.img")
    answer = clone(node, "pc1.debian", **body)
    assert answer.status_code == status
    assert "detail" in answer.json()
    assert on_file(node) == []


@pytest.mark.case(63)
def test_disk_that_is_full_and_a_master_in_use_are_said_at_once(
    node: Lab, copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node.node.images, "may_reflink", False)
    with (node.folder / MASTER).open("r+b"):
        answer = clone(node, "pc1.debian")
        assert answer.status_code == 409
    monkeypatch.setattr(node.node.images, "room", lambda: (2 * SIZE, 100 * SIZE))
    answer = clone(node, "pc1.debian")
    assert answer.status_code == 507
    assert "no room for pc1.debian.img" in answer.json()["detail"]
    assert on_file(node) == []


@pytest.mark.case(65)
def test_same_request_again_is_the_same_job_and_another_one_is_refused(
    node: Lab, copies: Copies
) -> None:
    first = clone(node, "pc1.debian")
    again = clone(node, "pc1.debian")
    # The same in other words.
    spelled = clone(node, "PC1.Debian", filename="pc1.debian.img")
    assert {a.status_code for a in (first, again, spelled)} == {202}
    assert first["Location"] == again["Location"] == spelled["Location"]
    other = node.disk("pc1.debian", size=SIZE)
    assert other.status_code == 409
    assert first.json()["id"] in other.json()["detail"]
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(clone, node, "pc1.debian", None)
        eventually(lambda: len(node.client.get("/jobs").json()["jobs"]) == 1)
        copies.go()
        assert waiting.result().status_code == 201
        assert waiting.result().json() == ended(node, first)["result"]
    assert clone(node, "pc1.debian").status_code == 409


@pytest.mark.case(65)
def test_cancel_stops_the_copy_and_leaves_nothing(node: Lab, copies: Copies) -> None:
    answer = clone(node, "pc1.debian")
    copies.go(1)
    eventually(lambda: job(node, answer)["done"])
    assert len(hidden(node)) == 1
    cancelled = node.client.delete(answer["Location"])
    assert cancelled.status_code == 202
    assert cancelled.json()["id"] == answer.json()["id"]
    end = ended(node, answer)
    assert end["state"] == "cancelled"
    assert end["error"]["status"] == 409
    assert [name for name in hidden(node) if name.endswith(".part")] == []
    assert node.targets() == {}
    assert node.client.get("/capabilities").json()["making"] == []
    refused = node.client.delete(answer["Location"])
    assert refused.status_code == 409
    assert "ended already (cancelled)" in refused.json()["detail"]
    copies.go()
    assert clone(node, "pc1.debian", None).status_code == 201


def asked_in_turn(lab: Lab, copies: Copies, count: int, heavy: int) -> list[Any]:
    """So many clones, each asked for when the one before has its place: that is taken some time after the answer."""
    answers: list[Any] = []
    for n in range(count):
        answers.append(clone(lab, f"pc{n}.debian"))
        if n < heavy:
            eventually(lambda: copies.under_way == len(answers))
        else:
            eventually(lambda: job(lab, answers[-1])["state"] == "queued")
    return answers


def test_few_copies_at_a_time_and_the_rest_wait(node: Lab, copies: Copies) -> None:
    answers = asked_in_turn(node, copies, HEAVY + 3, HEAVY)
    states = [job(node, answer)["state"] for answer in answers]
    assert states == ["running"] * HEAVY + ["queued"] * 3
    assert job(node, answers[-1])["total"] == SIZE
    making = node.client.get("/capabilities").json()["making"]
    assert len(making) == HEAVY + 3
    # One that waits is cancelled at once, though nothing moves.
    node.client.delete(answers[-2]["Location"])
    assert ended(node, answers[-2])["state"] == "cancelled"
    copies.go()
    for answer in (*answers[:-2], answers[-1]):
        assert ended(node, answer)["state"] == "done"
    assert copies.most == HEAVY
    assert len(node.targets()) == HEAVY + 2


def test_copies_that_wait_come_in_their_order(node: Lab, copies: Copies) -> None:
    node.node.jobs = Jobs(node.node.jobs.store.folder, heavy=1)
    answers = asked_in_turn(node, copies, 5, 1)
    node.client.delete(answers[2]["Location"])
    assert ended(node, answers[2])["state"] == "cancelled"
    copies.go()
    for answer in answers:
        ended(node, answer)
    assert copies.most == 1
    assert copies.made == [f".pc{n}.debian.img" for n in (0, 1, 3, 4)]


def test_too_many_jobs_are_refused_before_they_use_up_the_process(
    node: Lab, copies: Copies
) -> None:
    node.node.jobs = Jobs(node.node.jobs.store.folder, most=2)
    answers = [clone(node, f"pc{n}.debian") for n in range(3)]
    assert [a.status_code for a in answers] == [202, 202, 503]
    assert answers[2]["Retry-After"] == "30"
    assert len(node.client.get("/jobs").json()["jobs"]) == 2
    # The same again is no more work, and what is no job is not counted.
    assert clone(node, "pc0.debian").status_code == 202
    assert node.disk("quick.debian", size=SIZE).status_code == 201
    copies.go()
    for answer in answers[:2]:
        ended(node, answer)
    eventually(lambda: clone(node, "pc2.debian", None).status_code == 201)


@pytest.mark.case(66)
def test_slow_copies_hold_up_nothing_else(
    node: Lab, copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow = [clone(node, f"slow{n}.debian") for n in range(HEAVY + 1)]
    eventually(lambda: copies.under_way == HEAVY)
    # Empty disks, other targets, deletions, and clones that the file system makes.
    assert node.disk("quick.debian", size=SIZE).status_code == 201
    assert node.delete("quick.debian", delete_file="true").status_code == 200
    with monkeypatch.context() as patch:
        patch.setattr(copying, "reflink", lambda source, destination: None)
        patch.setattr(
            os,
            "fsync",
            lambda file: os.ftruncate(file, SIZE) if _is_part(file) else None,
        )
        assert clone(node, "cloned.debian", "respond-async, wait=20").status_code == 201
    assert {job(node, answer)["state"] for answer in slow} <= {"running", "queued"}


def _is_part(file: int) -> bool:
    return os.readlink(f"/proc/self/fd/{file}").endswith(".part")


@pytest.mark.case(66)
def test_file_system_that_takes_its_time_for_a_clone_is_a_job_and_blocks_nobody(
    node: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()
    real = copying.ficlone
    # The control plane has asked this when it registered the node.
    assert node.client.get("/capabilities").status_code == 200

    def slow(source: int, destination: int) -> None:
        assert go_on.wait(20)
        real(source, destination)

    monkeypatch.setattr(copying, "ficlone", slow)
    answers = [clone(node, f"pc{n}.debian") for n in range(HEAVY + 2)]
    assert {a.status_code for a in answers} == {202}
    assert {job(node, a)["state"] for a in answers} == {"running"}
    assert node.disk("quick.debian", size=SIZE).status_code == 201
    assert node.delete("quick.debian").status_code == 200
    assert clone(node, "pc0.debian", None, size=1).status_code == 400
    go_on.set()
    assert {ended(node, a)["state"] for a in answers} == {"done"}


def test_callers_who_wait_never_take_all_threads_of_the_server(
    node: Lab, copies: Copies
) -> None:
    jobs = Jobs(node.node.jobs.store.folder, waiting=1)
    node.node.jobs = jobs
    with ThreadPoolExecutor() as pool:
        waiting = pool.submit(clone, node, "pc1.debian", "respond-async, wait=20")
        eventually(lambda: copies.under_way == 1)
        assert clone(node, "pc2.debian", "respond-async, wait=20").status_code == 202
        assert not waiting.done()
        copies.go()
        assert waiting.result().status_code == 201


def test_failure_after_the_beginning_is_the_jobs_error(
    node: Lab, copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = clone(node, "pc1.debian")
    eventually(lambda: copies.under_way)
    node.image("pc1.debian.img")
    copies.go()
    end = ended(node, answer)
    assert end["state"] == "failed"
    assert end["error"] == {"status": 409, "detail": "pc1.debian.img exists already."}
    assert [name for name in hidden(node) if name.endswith(".part")] == []


def test_list_is_newest_first_filtered_and_limited(node: Lab, copies: Copies) -> None:
    copies.go()
    done = [clone(node, f"pc{n}.debian") for n in range(3)]
    for answer in done:
        ended(node, answer)
    copies.pieces = threading.Semaphore(0)
    running = clone(node, "pc9.debian")
    eventually(lambda: copies.under_way)

    def ids(query: str) -> list[str]:
        found = node.client.get(f"/jobs{query}").json()["jobs"]
        return [each["id"] for each in found]

    newest = [answer.json()["id"] for answer in (running, *reversed(done))]
    assert sorted(ids("")) == sorted(newest)
    assert ids("")[0] == newest[0]
    assert ids("?state=running") == newest[:1]
    assert sorted(ids("?state=done")) == sorted(newest[1:])
    assert len(ids("?limit=2")) == 2
    assert node.client.head("/jobs").status_code == 200
    for query in ("?state=odd", "?limit=0", "?limit=1001", "?limit=x", "?since=1"):
        assert node.client.get(f"/jobs{query}").status_code == 400, query


@pytest.mark.parametrize(
    "name", ["20260101-000000-00000000", "x", "..", "%2e%2e%2fx", "a%00b"]
)
def test_unknown_job_is_not_found(node: Lab, name: str) -> None:
    for call in (node.client.get, node.client.delete):
        assert call(f"/jobs/{name}").status_code == 404


def test_stranger_sees_no_job(node: Lab) -> None:
    for path in ("/jobs", "/jobs/20260101-000000-00000000"):
        assert node.stranger.get(path).status_code == 401
        assert node.stranger.delete(path).status_code == 401


def _kill(lab: Lab, name: str, **more: Any) -> str:
    """A job as a killed agent leaves it."""
    with lab.node.jobs.store.new(
        "lun.create_disk",
        by="192.0.2.1",
        about={"iqn": f"{BASE}:{name}", "master": MASTER},
        unit="bytes",
        total=SIZE,
    ) as running:
        running.start()
        return running.job.id


@pytest.mark.case(65)
def test_restart_ends_what_was_under_way_and_knows_what_was_done_after_all(
    node: Lab,
) -> None:
    half, whole = _kill(node, "half.debian"), _kill(node, "whole.debian")
    (node.folder / ".half.debian.img.0123456789ab.part").write_bytes(b"x" * 512)
    node.image("whole.debian.img")
    node.restart()
    found = {each["id"]: each for each in node.client.get("/jobs").json()["jobs"]}
    assert found[half]["state"] == "failed"
    assert found[half]["error"]["status"] == 503
    assert "the agent was restarted" in found[half]["error"]["detail"]
    assert "nothing was left behind" in found[half]["error"]["detail"]
    assert found[whole]["state"] == "done"
    assert found[whole]["result"]["backing"] == str(node.folder / "whole.debian.img")
    assert [name for name in hidden(node) if name.endswith(".part")] == []
    ops = [(e["op"], e["status"]) for e in node.client.get("/logs").json()["entries"]]
    assert ("job.recover", "failed") in ops
    assert ("job.recover", "done") in ops


def test_job_that_says_nonsense_keeps_no_agent_from_its_start(node: Lab) -> None:
    store = node.node.jobs.store
    kinds = {
        "lun.create_disk": {"iqn": 5},
        "image.convert": {"name": ["x"]},
        "upload.finish": {"name": {}, "upload": []},
        "lun.reset": {},
    }
    left = []
    for kind, about in kinds.items():
        with store.new(kind, by="192.0.2.1", about=about) as running:
            running.start()
            left.append(running.job.id)
    node.restart()
    found = {each["id"]: each for each in node.client.get("/jobs").json()["jobs"]}
    assert {found[job]["state"] for job in left} == {"failed"}


@pytest.fixture
def asked_to_end() -> Iterator[Callable[[], None]]:
    """Have the process asked to end."""
    asked: list[bool] = []
    ending.told_by(lambda: bool(asked))
    yield lambda: asked.append(True)
    ending.told_by(None)


def test_end_of_the_agent_finishes_short_copies_and_gives_up_long_and_queued_ones(
    node: Lab,
    copies: Copies,
    asked_to_end: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from agents.node import jobs

    monkeypatch.setattr(jobs, "HEAVY", 1)
    node.node.jobs = Jobs(node.node.jobs.store.folder, heavy=1)
    short = clone(node, "short.debian")
    queued = clone(node, "queued.debian")
    copies.go(2)
    eventually(lambda: job(node, short)["done"] == SIZE // 2)
    asked_to_end()
    assert ended(node, queued)["error"]["status"] == 503
    assert "the service is ending" in ended(node, queued)["error"]["detail"]
    copies.go()
    assert ended(node, short)["state"] == "done"
    assert node.targets() == {"short.debian": "short.debian.img"}
    assert [name for name in hidden(node) if name.endswith(".part")] == []


def test_copy_that_would_keep_the_next_start_away_is_given_up_and_says_so(
    node: Lab,
    copies: Copies,
    asked_to_end: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from agents.node import jobs

    monkeypatch.setattr(jobs, "_PACE", 0.1)
    monkeypatch.setattr(jobs, "FINISH", FINISH / 1000)
    answer = clone(node, "long.debian")
    copies.go(1)
    eventually(lambda: job(node, answer)["done"])
    asked_to_end()
    end = ended(node, answer)
    assert (end["state"], end["error"]["status"]) == ("failed", 503)
    assert "the agent is being stopped" in end["error"]["detail"]
    assert [name for name in hidden(node) if name.endswith(".part")] == []
    assert node.targets() == {}


def test_disk_that_takes_no_job_file_stops_no_copy(
    node: Lab, copies: Copies, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(node.node.jobs.store, "write", full)
    answer = clone(node, "pc1.debian")
    assert answer.status_code == 202
    copies.go()
    end = ended(node, answer)
    assert end["state"] == "done"
    assert node.targets() == {"pc1.debian": "pc1.debian.img"}
    assert on_file(node) == []


def test_job_file_is_the_agents_alone(node: Lab, copies: Copies) -> None:
    answer = clone(node, "pc1.debian")
    folder = node.node.jobs.store.folder
    path = folder / f"{answer.json()['id']}.json"
    assert path.stat().st_mode & 0o777 == 0o600
    assert json.loads(path.read_bytes())["state"] in {"queued", "running"}
    copies.go()
    ended(node, answer)
    eventually(lambda: on_file(node) == [path.name])
