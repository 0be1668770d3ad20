"""`manage.py delete_workers`: many workers with all that belongs to them."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from ipxeready.jobs.services import job_run
from ipxeready.shell import ShellCommand, shell_actor
from workers.goes import in_words, what_goes
from workers.jobs import deletion_work
from workers.management.asking import add_asking, agreed
from workers.management.selection import add_selection, selected


class Command(ShellCommand):
    """Tells first what goes, asks, then one write and one reload; one that is in use stays."""

    help = (
        "Delete workers with their disks' targets, install CDs and bindings. Images stay unless "
        "--delete-disk is given. Tells what goes and asks first."
    )

    def arguments(self, parser: ArgumentParser) -> None:
        """Whom, and how far."""
        add_selection(parser)
        parser.add_argument(
            "--delete-disk",
            action="store_true",
            help="delete the image files too; they cannot be brought back",
        )
        parser.add_argument(
            "--force",
            action="store_true",
            help="cut off machines that are connected; they lose their disk at once",
        )
        parser.add_argument(
            "--forget",
            action="store_true",
            help="where a node does not answer or is no longer registered, take its disks off the ledger only",
        )
        parser.add_argument(
            "--ignore-missing-target",
            action="store_true",
            help="go on where a target is missing on its node",
        )
        add_asking(parser, dry_run="tell what would go, delete nothing")

    def run(self, options: dict[str, Any]) -> None:
        """Tell, ask, delete, tell."""
        workers = selected(options)
        goes = what_goes(workers, delete_file=options["delete_disk"])
        question = f"Delete {len(goes)} workers?"
        if not agreed(
            self, options, goes, in_words, would="would_delete", question=question
        ):
            return
        if not workers:
            self._tell({"succeeded": [], "failed": []})
            return
        total = len(workers)
        actor = shell_actor()
        with self.progress("deleting") as bar:
            bar(0, total)
            work = deletion_work(
                actor=actor,
                worker_ids=[worker.worker_id for worker in workers],
                delete_disk=options["delete_disk"],
                ignore_missing_target=options["ignore_missing_target"],
                force=options["force"],
                forget=options["forget"],
            )
            answer = job_run(actor=actor, work=work, draw=bar)
        self._tell(answer)

    def _tell(self, answer: dict[str, Any]) -> None:
        self.emit(answer)
        for item in answer["failed"]:
            self.warn(f"{item['worker_id']}: {item['error']}")
        if "dnsmasq" in answer:
            self.warn(f"dnsmasq: {answer['dnsmasq']['error']}")
        done, failed = len(answer["succeeded"]), len(answer["failed"])
        self.say(f"{done} deleted")
        self.finish(done=done, failed=failed, what="workers")
