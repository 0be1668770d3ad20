"""`manage.py create_disks`: a system disk for each of many workers."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from ipxeready.errors import Invalid
from ipxeready.jobs.services import job_run
from ipxeready.shell import ShellCommand, Usage, shell_actor, words
from ipxeready.storage.iqn import OSES
from workers.batches import batch_spec, check_one_import
from workers.choices import DiskType
from workers.jobs import disks_work
from workers.management.selection import add_selection, selected
from workers.placing import place_disks


class Command(ShellCommand):
    """Each on its own: one that fails does not hold up the others; one that is there already is skipped."""

    help = (
        "Make a system disk for each of the workers; it also becomes what they boot. "
        "Workers that have such a disk are skipped, so that the same command goes on where it stopped."
    )

    def arguments(self, parser: ArgumentParser) -> None:
        """For whom, what, where."""
        add_selection(parser)
        parser.add_argument(
            "--type",
            required=True,
            choices=DiskType.values,
            help="master: a clone; empty; existing: the kept image of each worker; import: another image of "
            "the node becomes the disk of one worker",
        )
        parser.add_argument("--os", required=True, metavar="OS", help=", ".join(OSES))
        parser.add_argument(
            "--name",
            metavar="FILE",
            help="the file of the master, or of the image to import",
        )
        parser.add_argument(
            "--size", metavar="SIZE", help="such as 40G, with --type empty"
        )
        parser.add_argument(
            "--node",
            action="append",
            default=[],
            metavar="NODE",
            dest="nodes",
            help="where; several take turns; without it the scheduler picks for each",
        )

    def run(self, options: dict[str, Any]) -> None:
        """Plan, make, tell."""
        what = {name: options[name] for name in ("type", "os", "name", "size")}
        try:
            spec = batch_spec(**what)
        except Invalid as error:
            raise Usage(words(error)) from None
        if spec.type == DiskType.EXISTING and not options["nodes"]:
            raise Usage("--node is needed for --type existing: where the images lie")
        workers = selected(options)
        if not workers:
            self._tell({"succeeded": [], "skipped": [], "failed": []})
            return
        try:
            check_one_import(spec, len(workers))
        except Invalid as error:
            raise Usage(words(error)) from None
        targets = place_disks(workers=workers, spec=spec, nodes=options["nodes"])
        total = len(targets)
        actor = shell_actor()
        with self.progress("creating") as bar:
            bar(0, total)
            work = disks_work(actor=actor, targets=targets, **what)
            answer = job_run(actor=actor, work=work, draw=bar)
        self._tell(answer)

    def _tell(self, answer: dict[str, list[dict[str, Any]]]) -> None:
        self.emit(answer)
        for item in answer["skipped"]:
            self.say(f"{item['worker_id']}: skipped: {item['reason']}")
        for item in answer["failed"]:
            self.warn(f"{item['worker_id']}: {item['error']}")
        done, failed = len(answer["succeeded"]), len(answer["failed"])
        self.say(f"{done} created, {len(answer['skipped'])} skipped")
        self.finish(done=done, failed=failed, what="disks")
