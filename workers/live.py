"""How the targets of one worker are on their nodes right now, asked side by side and never waited for long."""

from __future__ import annotations

from dataclasses import dataclass, field

from agents.intake_client import IntakeClient
from agents.nodes import words_of
from agents.protocol.answers import ImageFile, Session, Target
from agents.selectors import agents as all_agents
from agents.together import ask_all, patience
from ipxeready.actors import VIEWER, Actor
from ipxeready.errors import ApplicationError
from workers import selectors
from workers.models import Cd, Disk


@dataclass(frozen=True)
class LiveTarget:
    """One target as its node has it; `exists` is None where the node did not say, and `error` says why."""

    exists: bool | None = None
    error: str = ""
    size: int | None = None
    #: Bytes that its image takes up.
    allocated: int | None = None
    access: str = ""
    sessions: list[Session] = field(default_factory=list)


def live_targets(*, actor: Actor, worker_id: str) -> dict[str, LiveTarget]:
    """The worker's targets by IQN."""
    actor.require(VIEWER)
    things = selectors.things_of([worker_id]).get(worker_id, [])
    return targets_of(things)


def targets_of(things: list[Disk | Cd]) -> dict[str, LiveTarget]:
    """These targets by IQN."""
    limit = patience()
    nodes = list(all_agents().filter(pk__in={thing.agent for thing in things}))
    answers = ask_all(
        nodes, lambda agent: IntakeClient(agent, timeout=limit).targets(), limit
    )
    # What an image takes up is told by its list only: asked of those that answer at all.
    able = [
        agent for agent in nodes if not isinstance(answers[agent.id], ApplicationError)
    ]
    images = ask_all(
        able, lambda agent: IntakeClient(agent, timeout=limit).images(), limit
    )
    found = {}
    for thing in things:
        answer = answers.get(thing.agent)
        files = images.get(thing.agent)
        known = (
            [] if files is None or isinstance(files, ApplicationError) else files["images"]
        )  # fmt: skip
        found[thing.iqn] = _target(thing, answer, known)
    return found


def _target(
    thing: Disk | Cd,
    answer: list[Target] | ApplicationError | None,
    images: list[ImageFile],
) -> LiveTarget:
    if answer is None:
        return LiveTarget(error=f"there is no node {thing.agent} in the registry")
    if isinstance(answer, ApplicationError):
        return LiveTarget(error=words_of(answer))
    target = next((each for each in answer if each["iqn"] == thing.iqn), None)
    if target is None:
        return LiveTarget(exists=False)
    image = next((each for each in images if each.get("target") == thing.iqn), None)
    return LiveTarget(
        exists=True,
        size=target["luns"][0]["size"] if target["luns"] else None,
        allocated=image["allocated"] if image else None,
        access=target.get("access", ""),
        sessions=target["sessions"],
    )
