"""Jobs of the agent as a process: killed half-way, told to end, and quick for everybody else meanwhile."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
import requests

from tests.agents.node.node_lab import BASE, TOKEN
from tests.agents.node.test_node_serve import Agent, agent
from tests.processes import eventually

MASTER = "debian_tpl_v1.img"
MASTER_SIZE = 24 << 20
#: A disk that writes 1 MiB in so many seconds (see test_node_serve.SLOW).
LONG, SHORT = "1", "0.15"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The image folder of the agent, with a master."""
    found = tmp_path / "root" / "images"
    found.mkdir(parents=True)
    (found / MASTER).write_bytes(os.urandom(MASTER_SIZE))
    return found


def ask(
    process: Agent, method: str, path: str, body: Any = None, **headers: str
) -> requests.Response:
    """One request, as anybody would send it."""
    return requests.request(
        method,
        f"http://127.0.0.1:{process.port}{path}",
        json=body,
        headers={"Authorization": f"Bearer {TOKEN}", **headers},
        timeout=60,
    )


def copy(
    process: Agent, name: str = "pc1", prefer: str = "respond-async"
) -> requests.Response:
    """Ask for a clone of the master."""
    body = {"iqn": f"{BASE}:{name}.debian", "master": MASTER}
    return ask(process, "POST", "/lun/disk", body, Prefer=prefer)


def state(process: Agent, path: str) -> dict[str, Any]:
    """The job at a Location."""
    found: dict[str, Any] = ask(process, "GET", path).json()
    return found


def images(folder: Path) -> list[str]:
    """What lies in the image folder, half files too."""
    names = [p.name for p in folder.iterdir()]
    return sorted(n for n in names if n.endswith(".part") or not n.startswith("."))


@pytest.mark.case(65)
def test_kill_at_half_leaves_a_failed_job_and_nothing_else(
    tmp_path: Path, folder: Path
) -> None:
    with agent(tmp_path, None, slow=True, SLOW=SHORT) as running:
        half = copy(running).headers["Location"]
        queued = [copy(running, f"more{n}").headers["Location"] for n in range(5)]
        eventually(lambda: state(running, half)["done"] >= MASTER_SIZE // 2, 60)
        assert state(running, queued[-1])["state"] == "queued"
        running.kill()
    assert any(name.endswith(".part") for name in images(folder))
    with agent(tmp_path, None) as running:
        for path in (half, *queued):
            job = state(running, path)
            assert job["state"] == "failed"
            assert job["error"]["status"] == 503
            assert "the agent was restarted" in job["error"]["detail"]
        assert images(folder) == [MASTER]
        assert ask(running, "GET", "/lun").json() == []
        assert ask(running, "GET", "/capabilities").json()["making"] == []
        again = copy(running, prefer="respond-async, wait=30")
        assert again.status_code == 201
        left = tmp_path / "root" / "state" / "node-jobs"
        # The kill may have come while progress was being written: such a draft goes after a minute.
        assert {p.suffix for p in left.iterdir()} - {".tmp"} == {".json"}


def test_agent_that_is_told_to_end_finishes_what_is_nearly_done(
    tmp_path: Path, folder: Path
) -> None:
    with agent(tmp_path, None, slow=True, SLOW=SHORT) as running:
        path = copy(running).headers["Location"]
        eventually(lambda: state(running, path)["done"] >= MASTER_SIZE // 2, 60)
        began = time.monotonic()
        assert running.stop() == 0
        assert time.monotonic() - began < 30
        assert "Traceback" not in running.output
    assert images(folder) == [MASTER, "pc1.debian.img"]
    with agent(tmp_path, None) as running:
        job = state(running, path)
        assert (job["state"], job["done"]) == ("done", MASTER_SIZE)
        assert [t["iqn"] for t in ask(running, "GET", "/lun").json()] == [
            f"{BASE}:pc1.debian"
        ]


def test_agent_that_is_told_to_end_gives_up_what_would_take_long(
    tmp_path: Path, folder: Path
) -> None:
    os.truncate(folder / MASTER, 0)
    with (folder / MASTER).open("r+b") as master:
        for _ in range(300):
            master.write(os.urandom(1 << 20))
    with agent(tmp_path, None, slow=True, SLOW=LONG) as running:
        path = copy(running).headers["Location"]
        queued = [copy(running, f"more{n}").headers["Location"] for n in range(4)]
        eventually(lambda: state(running, path)["done"] >= 2 << 20, 60)
        began = time.monotonic()
        assert running.stop() == 0
        assert time.monotonic() - began < 20
        assert "Traceback" not in running.output
    assert images(folder) == [MASTER]
    with agent(tmp_path, None) as running:
        job = state(running, path)
        assert (job["state"], job["error"]["status"]) == ("failed", 503)
        assert "the agent is being stopped" in job["error"]["detail"]
        for each in queued:
            assert state(running, each)["state"] == "failed"


@pytest.mark.case(66)
def test_others_are_answered_at_once_while_copies_go_on(
    tmp_path: Path, folder: Path
) -> None:
    with agent(tmp_path, None, slow=True, SLOW=LONG) as running:
        slow = [copy(running, f"slow{n}") for n in range(20)]
        assert {each.status_code for each in slow} == {202}
        times = []
        for number in range(20):
            name = f"{BASE}:quick{number}.debian"
            began = time.monotonic()
            body = {"iqn": name, "size": "1M"}
            wait = "respond-async, wait=5"
            assert (
                ask(running, "POST", "/lun/disk", body, Prefer=wait).status_code == 201
            )
            assert ask(running, "GET", "/capabilities").status_code == 200
            gone = ask(running, "DELETE", f"/lun?iqn={name}&delete_file=true")
            assert gone.status_code == 200
            times.append(time.monotonic() - began)
        assert sorted(times)[len(times) // 2] < 1
        assert ask(running, "GET", "/jobs?state=queued").json()["jobs"]
        for each in slow:
            ask(running, "DELETE", each.headers["Location"])
        eventually(
            lambda: (
                {j["state"] for j in ask(running, "GET", "/jobs").json()["jobs"]}
                == {"cancelled"}
            )
        )
    assert images(folder) == [MASTER]
