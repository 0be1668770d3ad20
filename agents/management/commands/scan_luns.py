"""`manage.py scan_luns`: nodes export what has no target."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from agents import nodes, selectors
from ipxeready.errors import ApplicationError
from ipxeready.shell import ShellCommand, failure, shell_actor


class Command(ShellCommand):
    """One node after the other; a dead one does not hold up the others for longer than its time limit."""

    help = "Let storage nodes export every image that has no target."

    def arguments(self, parser: ArgumentParser) -> None:
        """Which nodes."""
        parser.add_argument(
            "agents",
            nargs="*",
            metavar="NODE",
            help="ids of nodes; all that are enabled when none is given",
        )

    def run(self, options: dict[str, Any]) -> None:
        """Scan, tell what each has found."""
        if options["agents"]:
            found = dict.fromkeys(
                selectors.agent_get(name).id for name in options["agents"]
            )
            names = list(found)
        else:
            names = [agent.id for agent in selectors.agents().filter(enabled=True)]
        actor = shell_actor()
        results: list[dict[str, Any]] = []
        failed = 0
        with self.progress("scanning") as bar:
            for at, name in enumerate(names, 1):
                try:
                    done = nodes.lun_scan(actor=actor, agent_id=name)
                except ApplicationError as error:
                    failed += 1
                    results.append({"agent": name, "error": failure(error)})
                else:
                    results.append({"agent": name, **done})
                bar(at, len(names))
        self.emit(results)
        for result in results:
            self._tell(result)
        if not results:
            self.say("no node is enabled")
        self.finish(done=len(results) - failed, failed=failed, what="nodes")

    def _tell(self, result: dict[str, Any]) -> None:
        if "error" in result:
            self.warn(f"{result['agent']}: {result['error']['message']}")
            return
        self.say(
            f"{result['agent']}: {len(result['created'])} exported, "
            f"{len(result['skipped'])} skipped"
        )
        for made in result["created"]:
            self.say(f"  {made['iqn']}")
