"""Since when somebody is logged in: first seen by the agent, kept over its restart, new with the next login."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agents.node import sessions, startup
from agents.node.sessions import Sessions
from tests.agents.node import node_lab
from tests.agents.node.node_lab import BASE, SIZE, Lab
from tests.processes import eventually

DISK = f"{BASE}:worker-01.debian"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A clock that goes on by a second with each session that is seen first."""

    class Clock:
        now = 0

        def __call__(self) -> str:
            self.now += 1
            return f"2026-01-01T00:00:{self.now:02}+00:00"

    clock = Clock()
    monkeypatch.setattr(sessions, "_now", clock)
    return clock


def _since(lab: Lab) -> list[str]:
    return [s["since"][-8:-6] for s in lab.client.get("/lun").json()[0]["sessions"]]


@pytest.mark.tgtd
def test_a_session_keeps_its_time_over_listings_and_a_restart_of_the_agent(
    stgt: Lab, clock: Any
) -> None:
    assert stgt.tgtd
    stgt.disk("worker-01.debian", size=SIZE)
    with node_lab.session(stgt.tgtd, DISK):
        startup.note_sessions(stgt.node)
        assert _since(stgt) == ["01"]
        stgt.restart()
        assert _since(stgt) == ["01"]
    assert _since(stgt) == []
    with node_lab.session(stgt.tgtd, DISK):
        assert _since(stgt) == ["02"]


@pytest.mark.tgtd
def test_the_next_login_is_another_session_even_when_nobody_saw_the_break(
    stgt: Lab, clock: Any
) -> None:
    assert stgt.tgtd
    stgt.disk("worker-01.debian", size=SIZE)
    with node_lab.session(stgt.tgtd, DISK):
        assert _since(stgt) == ["01"]
    with node_lab.session(stgt.tgtd, DISK):
        assert _since(stgt) == ["02"]
    # Another tgtd counts its sessions from one again.
    stgt.tgtd.kill()
    stgt.tgtd.again()
    stgt.restart()
    with node_lab.session(stgt.tgtd, DISK):
        assert _since(stgt) == ["03"]
        with node_lab.session(stgt.tgtd, DISK):
            eventually(lambda: len(_since(stgt)) == 2)
            assert _since(stgt) == ["03", "04"]
            file = stgt.folder.parent / "state" / "node-sessions.json"
            kept = json.loads(file.read_text())["since"]
            assert len(kept) == 2


@pytest.mark.tgtd
def test_refusals_name_initiator_address_and_time(stgt: Lab, clock: Any) -> None:
    assert stgt.tgtd
    stgt.disk("worker-01.debian", size=SIZE)
    with node_lab.session(stgt.tgtd, DISK):
        who = f"{BASE}:worker-01 from 127.0.0.1 (since 2026-01-01T00:00:01+00:00)"
        assert who in stgt.delete("worker-01.debian").json()["detail"]
        answer = stgt.post(
            "/lun/access",
            iqn=DISK,
            access="chap",
            chap={"username": "w", "secret": "Abcdefghijkl"},
        )
        assert who in answer.json()["detail"]
        done = stgt.delete("worker-01.debian", force="true").json()
        assert done["closed"][0]["since"] == "2026-01-01T00:00:01+00:00"


def _target(*numbers: str) -> Any:
    return [
        {
            "iqn": DISK,
            "luns": [],
            "sessions": [
                {"initiator": "i", "address": "a", "id": number} for number in numbers
            ],
        }
    ]


def test_the_file_is_written_when_somebody_comes_or_goes_only(tmp_path: Path) -> None:
    path = tmp_path / "state" / "sessions.json"
    known = Sessions(path)
    known.note(_target("1", "2"), "life")
    stamp = os.stat(path).st_mtime_ns, os.stat(path).st_ino
    known.note(_target("1", "2"), "life")
    assert (os.stat(path).st_mtime_ns, os.stat(path).st_ino) == stamp
    known.note(_target("2"), "life")
    assert len(json.loads(path.read_text())["since"]) == 1
    known.note([], "life")
    assert json.loads(path.read_text())["since"] == {}
    assert [p.name for p in path.parent.iterdir()] == ["sessions.json"]


def test_a_life_that_cannot_be_told_for_a_moment_makes_nobody_new(
    tmp_path: Path, clock: Any
) -> None:
    known = Sessions(tmp_path / "sessions.json")
    for life in ("life", "", "life"):
        targets = _target("1")
        known.note(targets, life)
        assert targets[0]["sessions"][0]["since"].endswith("00:01+00:00")


@pytest.mark.parametrize("content", ["", "{", "[]", '{"since": {"x": 1}}', "[" * 99999])
def test_a_broken_file_starts_anew(tmp_path: Path, content: str) -> None:
    path = tmp_path / "sessions.json"
    path.write_text(content)
    targets = _target("1")
    Sessions(path).note(targets, "life")
    assert targets[0]["sessions"][0]["since"]


def test_a_folder_that_cannot_be_written_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "state").write_text("a file")
    known = Sessions(tmp_path / "state" / "sessions.json")
    for number in ("1", "2"):
        targets = _target(number)
        known.note(targets, "life")
        assert targets[0]["sessions"][0]["since"]
    assert caplog.text.count("cannot be written") == 1
