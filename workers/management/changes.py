"""How a command changes the disks of many workers, and tells what it changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ipxeready.shell import ShellCommand, failure, words
from workers.batch_items import Changed
from workers.changing import disks_change
from workers.models import Worker


def change_disks(
    command: ShellCommand,
    workers: Sequence[Worker],
    change: Callable[[str], object],
    *,
    doing: str,
    past: str,
) -> None:
    """`change` for each worker behind a bar, and what came of it."""
    ids = [worker.worker_id for worker in workers]
    with command.progress(doing) as bar:
        bar(0, len(ids))
        done = disks_change(ids, change, progress=bar)
    told(command, done, past, "disks")


def told(command: ShellCommand, done: Changed, past: str, what: str) -> None:
    """The answer, a line for each failure, and the exit code."""
    command.emit(
        {
            "succeeded": [{"worker_id": name} for name in done.succeeded],
            "failed": [
                {"worker_id": name, "error": failure(error)}
                for name, error in done.failed
            ],
        }
    )
    for name, error in done.failed:
        command.warn(f"{name}: {words(error)}")
    command.say(f"{len(done.succeeded)} {past}")
    command.finish(done=len(done.succeeded), failed=len(done.failed), what=what)
