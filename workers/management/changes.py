"""How a command tells what it changed on many workers."""

from __future__ import annotations

from ipxeready.shell import ShellCommand, failure, words
from workers.changing import Changed


def told(command: ShellCommand, done: Changed, past: str) -> None:
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
    command.finish(done=len(done.succeeded), failed=len(done.failed), what="disks")
