"""`manage.py access`: who may log in to targets, for nodes, workers or the whole room. `access off --all` is the way back."""

from __future__ import annotations

from argparse import ArgumentParser
from typing import Any

from agents.protocol.access import ACCESS
from agents.selectors import agents
from ipxeready.errors import ApplicationError
from ipxeready.shell import ShellCommand, Usage, failure, shell_actor, words
from workers import selectors
from workers.access_set import agent_access_set, worker_access_set

#: A worker's word is taken back.
_NODE = "node"


class Command(ShellCommand):
    """Set the access of nodes and workers, and apply it to their targets at once."""

    help = (
        "Set who may log in to targets: off (everybody), acl (only the worker's own initiator), chap (with its "
        "secret too), node (workers: as their nodes say). Sets what is there too. `access off --all` goes back."
    )

    def arguments(self, parser: ArgumentParser) -> None:
        """What, and whose."""
        parser.add_argument(
            "mode", nargs="?", choices=(*ACCESS, _NODE), help="the access to set"
        )
        parser.add_argument(
            "--node",
            action="append",
            default=[],
            metavar="ID",
            help="a node, with its targets of workers without a word of their own; may be given several times",
        )
        parser.add_argument(
            "--worker",
            action="append",
            default=[],
            metavar="ID",
            help="a worker, whatever its nodes say; may be given several times",
        )
        parser.add_argument(
            "--all",
            action="store_true",
            help="all nodes and all workers; workers lose their own words",
        )
        parser.add_argument(
            "--force",
            action="store_true",
            help="also where a machine that is connected could not come back after a break",
        )
        parser.add_argument(
            "--rotate", action="store_true", help="make new secrets for the workers"
        )

    def run(self, options: dict[str, Any]) -> None:
        """Workers first, then nodes; one that fails stops no other."""
        mode, force, rotate = options["mode"], options["force"], options["rotate"]
        nodes, names = options["node"], options["worker"]
        _check(options)
        own: dict[str, Any] = {}
        if mode is not None:
            own = {"access": None if mode == _NODE or options["all"] else mode}
        if options["all"]:
            nodes = [agent.id for agent in agents()]
            names = list(
                selectors.workers()
                .exclude(access="")
                .values_list("worker_id", flat=True)
            )
        results: list[dict[str, Any]] = []
        for name in nodes:
            results.append(
                self._try(
                    {"node": name},
                    lambda name=name: agent_access_set(
                        actor=shell_actor(), agent_id=name, access=mode, force=force
                    ),
                )
            )
        for name in names:
            results.append(
                self._try(
                    {"worker": name},
                    lambda name=name: worker_access_set(
                        actor=shell_actor(),
                        worker_id=name,
                        force=force,
                        rotate=rotate,
                        **own,
                    ),
                )
            )
        self.emit({"results": results})
        failed = sum("error" in entry for entry in results)
        failed += sum(len(entry.get("failed", ())) for entry in results)
        changed = sum(len(entry.get("changed", ())) for entry in results)
        well = sum("error" not in entry for entry in results)
        self.say(f"{changed} targets set")
        self.finish(
            done=changed + well, failed=failed, what="nodes, workers or targets"
        )

    def _try(self, about: dict[str, str], call: Any) -> dict[str, Any]:
        (what, name), *_ = about.items()
        try:
            answer = call()
        except ApplicationError as error:
            self.warn(f"{what} {name}: {words(error)}")
            return {**about, "error": failure(error)}
        for entry in answer.get("failed", ()):
            self.warn(f"{what} {name}: {entry['iqn']}: {entry['error']}")
        for entry in answer["kept"]:
            self.say(
                f"{what} {name}: {entry['iqn']} is left as it is: {entry['reason']}"
            )
        told = {
            key: answer[key] for key in ("changed", "kept", "failed") if key in answer
        }
        return {**about, **told}


def _check(options: dict[str, Any]) -> None:
    mode, nodes, names = options["mode"], options["node"], options["worker"]
    if options["all"] and (nodes or names):
        raise Usage("give --all, or --node and --worker")
    if not (options["all"] or nodes or names):
        raise Usage("say whose: --node ID, --worker ID or --all")
    if options["rotate"] and (options["all"] or nodes):
        raise Usage("--rotate is for workers: give --worker ID")
    if mode is None and not options["rotate"]:
        raise Usage(f"give one of {', '.join((*ACCESS, _NODE))}, or --rotate")
    if mode == _NODE and (options["all"] or nodes):
        raise Usage("node takes a worker's own word back: give --worker ID")
