"""`manage.py jobs`: work that takes long, from the shell."""

from __future__ import annotations

import time
from argparse import ArgumentParser
from typing import Any

from ipxeready.jobs import selectors, services
from ipxeready.shell import (
    Partly,
    Refused,
    ShellCommand,
    add_json,
    one_line,
    shell_actor,
)
from ipxeready.storage.jobs import BYTES, DONE, ENDED, STATES, Job
from ipxeready.storage.sizes import format_size

#: Seconds between two looks at a job that is followed.
_PERIOD = 0.5


class Command(ShellCommand):
    """List, show, cancel, follow."""

    help = (
        "Work that takes long (new disks, batches, scans): list, show, cancel, follow."
    )
    #: Jobs are files of their own.
    needs_index = False

    def arguments(self, parser: ArgumentParser) -> None:
        """One sub-command for each service."""
        commands = parser.add_subparsers(dest="what", required=True)
        show = commands.add_parser("list", help="show all jobs, newest first")
        show.add_argument("--state", choices=STATES, help="only those")
        show.add_argument("--kind", help="only those, such as worker.disk.create")
        for name, text in (
            ("show", "show one job with its result"),
            ("cancel", "ask for the end of a job: what is under way ends cleanly"),
            ("follow", "wait for the end of a job, with a bar"),
        ):
            commands.add_parser(name, help=text).add_argument("id", metavar="ID")
        add_json(commands.choices.values())

    def run(self, options: dict[str, Any]) -> None:
        """Call the service."""
        actor = shell_actor()
        match options["what"]:
            case "list":
                found = selectors.jobs(
                    actor=actor, state=options["state"], kind=options["kind"]
                )
                self.emit([selectors.listed(job) for job in found])
                self.table(
                    ["job", "kind", "for", "state", "progress", "user"],
                    [_cells(job) for job in found],
                )
            case "show":
                self._show(selectors.job_get(actor=actor, job_id=options["id"]))
            case "cancel":
                job = services.job_cancel(actor=actor, job_id=options["id"])
                self.emit(selectors.shown(job))
                self.say(
                    f"{job.id}: asked to end; `manage.py jobs follow {job.id}` waits for it"
                )
            case "follow":
                self._follow(selectors.job_get(actor=actor, job_id=options["id"]))

    def _show(self, job: Job) -> None:
        self.emit(selectors.shown(job))
        for name, value in selectors.listed(job).items():
            if name != "about" and value is not None:
                self.say(f"{name}: {value}")
        for name, value in job.about.items():
            if not isinstance(value, list):
                self.say(f"{name}: {value}")
        if isinstance(job.result, dict):
            for name, value in job.result.items():
                if isinstance(value, list):
                    self.say(f"{name}: {len(value)}")

    def _follow(self, job: Job) -> None:
        """Until its end; its failure is this command's."""
        with self.progress(job.kind) as bar:
            while job.state not in ENDED:
                bar(job.done, job.total, job.unit)
                time.sleep(_PERIOD)
                job = selectors.store().get(job.id)
        self._show(job)
        if job.state == DONE:
            result = job.result if isinstance(job.result, dict) else {}
            done, failed = (len(result.get(k, [])) for k in ("succeeded", "failed"))
            self.finish(done=done, failed=failed, what="items")
            return
        words = one_line(f"job {job.id}: {job.state}: {services.refusal_of(job)[1]}")
        raise (Partly if job.result else Refused)(words)


def _cells(job: Job) -> list[object]:
    about = job.about
    subject = [str(about[name]) for name in ("worker_id", "agent") if about.get(name)]
    return [job.id, job.kind, " ".join(subject), job.state, _far(job), job.by]


def _far(job: Job) -> str:
    def word(number: int) -> str:
        return format_size(number) if job.unit == BYTES else str(number)

    if job.total is None:
        return word(job.done) if job.done else ""
    return f"{word(job.done)} of {word(job.total)}"
