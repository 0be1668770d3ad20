"""`checkstate`: what is wrong in the files, without service or index, and without writing."""

from __future__ import annotations

import fcntl
from pathlib import Path
from typing import Any

import pytest

from ipxeready.storage.paths import Layout
from tests.served import Service
from tests.shell import manage, run

M1, M2 = "52:54:00:00:00:01", "52:54:00:00:00:02"
IQN = "iqn.2026-07.com.controller"


def everything(root: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """Every file below a folder: inode, times, content."""
    found = {}
    for path in sorted(root.rglob("*")):
        seen = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (seen.st_ino, seen.st_mtime_ns, seen.st_ctime_ns, content)
    return found


def found(*words: str) -> tuple[int, list[dict[str, Any]], list[dict[str, Any]]]:
    ended = run("checkstate", "--json", *words)
    return ended.code, ended.json["problems"], ended.json["notes"]


def test_a_fresh_root_is_clean(layout: Layout) -> None:
    assert found("--strict") == (0, [], [])
    assert run("checkstate").out == "no problems, notes: 0\n"


@pytest.mark.parametrize(
    ("name", "text", "line", "column"),
    [
        ("workers_yml", 'workers:\n  a: {hostname: "a\n', 2, 17),
        ("workers_yml", "workers:\n  a: {hostname: a}\n  a: {hostname: b}\n", 3, 3),
        ("workers_yml", "workers:\n\ta: 1\n", 2, 1),
        ("agents_yml", "nodes: {}\n", 1, 1),
        ("users_yml", "users: [\n", 2, 1),
        ("settings_json", '{"a": }', 1, 7),
        ("workers_yml", "workers: !!python/object/apply:os.system [x]\n", 1, 10),
    ],
)
def test_a_broken_file_is_named_with_line_and_column(
    layout: Layout, name: str, text: str, line: int, column: int
) -> None:
    path = getattr(layout, name)
    path.write_text(text)
    code, problems, _ = found()
    assert code == 1
    (problem,) = problems
    assert (problem["path"], problem["code"]) == (str(path), "file.broken")
    assert (problem["line"], problem["column"]) == (line, column)
    ended = run("checkstate")
    assert ended.out.startswith(f"{path}:{line}:{column}: ")
    assert ended.err == "Problems: 1, notes: 0\n"


def test_bytes_that_are_no_text_are_named(layout: Layout) -> None:
    layout.workers_yml.write_bytes(b"workers:\n  a: {hostname: \xff}\n")
    _, (problem,), _ = found()
    assert (problem["line"], problem["column"]) == (2, 17)


@pytest.mark.case(33)
def test_each_record_that_does_not_validate_is_named_with_its_line(
    layout: Layout,
) -> None:
    layout.workers_yml.write_text(
        "workers:\n  a: {hostname: a}\n  b: {hostname: b_b}\n  c: {arch: x}\n"
        "  d:\n    hostname: d\n    disks: [{os: beos}]\n"
    )
    layout.dhcp_hosts.write_text(f"{M1},a\n")
    code, problems, notes = found()
    assert code == 1
    assert [(each["record"], each["line"]) for each in problems] == [
        ("b", 3),
        ("c", 4),
        ("d", 5),
    ]
    assert "underscore" in problems[0]["message"]
    assert "hostname" in problems[1]["message"]
    assert "'beos' must be one of" in problems[2]["message"]
    assert notes == []


@pytest.mark.case(1)
def test_contradictions_are_problems(layout: Layout) -> None:
    layout.dhcp_hosts.write_text(f"{M1},a\n{M2},a\n{M2},b\nx:y,z\n")
    layout.workers_yml.write_text(
        "workers:\n  a: {hostname: a}\n  b: {hostname: A}\n"
        f'  c: {{hostname: c, disks: [{{agent: n, os: ubuntu, iqn: "{IQN}:c.ubuntu"}}]}}\n'
        f'  d: {{hostname: d, disks: [{{agent: n, os: ubuntu, iqn: "{IQN}:c.ubuntu"}}]}}\n'
    )
    code, problems, _ = found()
    assert code == 1
    said = {(each["code"], each["line"]): each["message"] for each in problems}
    assert "a is on lines 1, 2" in said["hosts.hostname-twice", 1]
    assert f"{M2} is on lines 2, 3" in said["hosts.mac-twice", 2]
    assert "dnsmasq drops this line" in said["hosts.line", 4]
    assert "the hostname a belongs to a, b" in said["workers.hostname", 2]
    assert f"c, d have one disk, {IQN}:c.ubuntu on node n" in said["workers.disk", 4]
    assert "node n, which is not in config/agents.yml" in said["workers.agent", 5]


@pytest.mark.case(93)
def test_differences_of_ledger_and_hosts_file_are_notes(layout: Layout) -> None:
    layout.dhcp_hosts.write_text(f"# printers\n{M1},printer\n{M2},b\n")
    layout.workers_yml.write_text(
        "workers:\n  a: {hostname: seat-a}\n  b: {hostname: b, default_os: ubuntu}\n"
    )
    code, problems, notes = found()
    assert (code, problems) == (0, [])
    assert [(each["code"], each["line"]) for each in notes] == [
        ("hosts.unknown", 2),
        ("workers.unbound", 2),
        ("workers.default_os", 3),
    ]
    assert "seat-a" in notes[1]["message"]
    assert found("--strict")[0] == 1
    ended = run("checkstate")
    assert ended.out.splitlines()[-1] == "no problems, notes: 3"
    assert ended.out.splitlines()[0].endswith("no worker's hostname (note)")


def test_a_file_that_is_gone_is_a_problem_once_it_was_written(layout: Layout) -> None:
    run("register_workers", "-", stdin=f"worker_id,mac\na,{M1}\n")
    layout.workers_yml.unlink()
    _, (problem,), _ = found()
    assert "the file is gone" in problem["message"]
    layout.agents_yml.unlink()
    _, _, (note,) = found()
    assert note["code"] == "file.missing"
    layout.workers_yml.write_bytes(b"")
    _, (problem,), _ = found()
    assert "its backup holds 1 records" in problem["message"]


def test_an_interrupted_write_is_told_and_left(
    layout: Layout, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ipxeready.index import examine

    monkeypatch.setattr(examine, "_PAUSE_S", 0)
    layout.intents.mkdir()
    (layout.intents / "intent.json").write_text("{}")
    code, problems, (note,) = found()
    assert (code, problems, note["code"]) == (0, [], "intent.pending")
    assert (layout.intents / "intent.json").exists()


def test_it_never_writes_and_needs_neither_lock_nor_index(
    tmp_path: Path, layout: Layout
) -> None:
    layout.workers_yml.write_text("workers:\n  a: {hostname: a_b}\n")
    layout.lock.unlink()
    environ = Service(layout.root).environ | {"RUNTIME_DIRECTORY": "/nowhere"}
    before = everything(layout.root)
    ended = manage(environ, "checkstate")
    assert (ended.code, "underscore" in ended.out) == (1, True), ended
    assert everything(layout.root) == before
    assert not layout.lock.exists()
    layout.workers_yml.write_text("workers: {}\n")
    assert manage(environ, "checkstate").code == 0
    environ["IPXE_ROOT"] = str(tmp_path / "not-there")
    assert manage(environ, "checkstate").code == 0
    assert not (tmp_path / "not-there").exists()


def test_it_does_not_wait_for_a_writer(layout: Layout) -> None:
    with layout.lock.open("r+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert manage(Service(layout.root).environ, "checkstate").code == 0
