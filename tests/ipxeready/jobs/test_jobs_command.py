"""`manage.py jobs`, and the bar of commands that take long."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.core.management import call_command

from ipxeready import shell
from ipxeready.actors import Actor
from ipxeready.jobs import selectors
from ipxeready.jobs.services import Work, job_start, job_wait
from ipxeready.shell import Progress
from ipxeready.storage.jobs import BYTES, DONE
from ipxeready.storage.paths import Layout
from tests.ipxeready.jobs.helpers import Slow
from tests.nodes import RealNode, node
from tests.shell import run

__all__ = ["node"]
GIB = 1 << 30


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def failed(layout: Layout, operator: Actor) -> str:
    """The id of a batch of which one failed."""
    result = {"succeeded": [1], "skipped": [], "failed": [2]}
    work = Work(
        kind="worker.disk.batch", do=lambda _: result, about={"os": "debian"}, total=2
    )
    return job_wait(job_start(actor=operator, work=work).id, 10).id


def test_list_and_show(failed: str) -> None:
    ended = run("jobs", "list")
    head, row = ended.out.splitlines()
    assert head.split() == ["JOB", "KIND", "FOR", "STATE", "PROGRESS", "USER"]
    assert row.split()[:2] == [failed, "worker.disk.batch"]
    assert run("jobs", "list", "--state", "failed", "--json").json == []
    (job,) = run("jobs", "list", "--kind", "worker.disk.batch", "--json").json
    assert "result" not in job
    ended = run("jobs", "show", failed)
    assert "state: done" in ended.out and "failed: 1" in ended.out
    shown = run("jobs", "show", failed, "--json").json
    assert shown["result"]["failed"] == [2]


def test_no_such_job() -> None:
    for what in ("show", "cancel", "follow"):
        ended = run("jobs", what, "none", "--json")
        assert (ended.code, ended.json["error"]["code"]) == (1, "job.missing")


def test_cancel_and_follow_a_job_of_the_service(
    layout: Layout, operator: Actor
) -> None:
    slow = Slow()
    job = job_start(actor=operator, work=slow.work)
    assert slow.begun.wait(10)
    ended = run("jobs", "cancel", job.id)
    assert (ended.code, "asked to end" in ended.out) == (0, True), ended
    ended = run("jobs", "follow", job.id)
    assert (ended.code, "state: done" in ended.out) == (0, True), ended
    ended = run("jobs", "cancel", job.id)
    assert (ended.code, "has ended already" in ended.err) == (1, True)


def test_following_ends_as_the_job_does(
    layout: Layout, operator: Actor, failed: str
) -> None:
    assert run("jobs", "follow", failed).code == 3

    def fail(_: Any) -> None:
        raise shell_error

    from ipxeready.errors import Conflict

    shell_error = Conflict("taken", field="os")
    job = job_start(actor=operator, work=Work(kind="t", do=fail))
    ended = run("jobs", "follow", job.id)
    assert (ended.code, "failed: taken" in ended.err) == (1, True), ended


def test_a_job_that_is_followed_has_a_bar_in_bytes(
    layout: Layout, operator: Actor, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = threading.Event()

    def do(watch: Any) -> None:
        watch.at(GIB // 2, GIB)
        assert go.wait(20)

    job = job_start(actor=operator, work=Work(kind="copy", do=do, unit=BYTES))
    err = Terminal()
    real = err.write

    def seen(text: str) -> int:
        if "512 MiB" in text:
            go.set()
        return real(text)

    monkeypatch.setattr(err, "write", seen)
    call_command("jobs", "follow", job.id, stdout=io.StringIO(), stderr=err)
    assert "copy [###############...............] 512 MiB/1 GiB" in err.getvalue()


def test_a_command_for_a_room_is_a_job_too(
    layout: Layout,
    node: RealNode,
    worker: Callable[..., dict[str, Any]],
) -> None:
    node.register("n")
    name = node.name()
    worker(name)
    words = ("--type", "empty", "--os", "debian", "--size", "1M", "--node", "n")
    assert run("create_disks", name, *words).code == 0
    assert run("delete_workers", name, "--yes").code == 0
    deletion, creation = selectors.store().all()
    assert (creation.kind, creation.state) == ("worker.disk.batch", DONE)
    assert (deletion.kind, deletion.state) == ("worker.delete.batch", DONE)
    assert creation.by.startswith("shell:")
    assert (creation.done, creation.total) == (1, 1)


class _Stream(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal = terminal

    def isatty(self) -> bool:
        return self.terminal

    def write(self, text: str, *_: Any, ending: str = "\n") -> int:
        return super().write(text + ending)


def test_without_a_terminal_there_is_a_plain_line_now_and_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock = [0.0]
    monkeypatch.setattr(shell.time, "monotonic", lambda: clock[0])
    stream = _Stream(terminal=False)
    with Progress(stream, "creating", quiet=False) as bar:  # type: ignore[arg-type]
        for second in range(65):
            clock[0] = float(second)
            bar(second, 100)
    assert stream.getvalue() == "creating 30/100\ncreating 60/100\n"
    quiet = _Stream(terminal=True)
    with Progress(quiet, "creating", quiet=True) as bar:  # type: ignore[arg-type]
        bar(1, 1)
    assert quiet.getvalue() == ""


def test_a_bar_without_an_end_tells_how_far_it_is() -> None:
    stream = _Stream(terminal=True)
    with Progress(stream, "copying", quiet=False) as bar:  # type: ignore[arg-type]
        bar(3 * GIB, None, BYTES)
    assert stream.getvalue().startswith("\rcopying 3 GiB")
