"""What the nodes have for a new disk or CD, and which one the scheduler would take: for people who choose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from agents.intake_client import IntakeClient
from agents.models import Agent
from agents.nodes import words_of
from agents.protocol.answers import Capabilities, ImageFile, Master
from agents.protocol.filenames import KIND_DISK, KIND_ISO
from agents.protocol.systems import CD, DISK
from agents.scheduler import closed, no_drive, preference, unfit
from agents.selectors import agents as all_agents
from agents.together import ask_all, patience
from ipxeready.actors import VIEWER, Actor
from ipxeready.errors import ApplicationError


@dataclass(frozen=True)
class Offer:
    """One node: what lies on it, and why it takes no disk or no CD (empty where it does)."""

    agent: str
    no_disk: str = ""
    no_cd: str = ""
    #: It was asked and did not answer.
    silent: bool = False
    free: int | None = None
    total: int | None = None
    reflink: bool = False
    masters: list[Master] = field(default_factory=list)
    #: Disk images without a target.
    images: list[ImageFile] = field(default_factory=list)
    isos: list[ImageFile] = field(default_factory=list)


@dataclass(frozen=True)
class _Told:
    capabilities: Capabilities
    masters: list[Master]
    images: list[ImageFile]


def offers(*, actor: Actor) -> list[Offer]:
    """What each node of the registry has, asked side by side; one that is gone says why in its own entry."""
    actor.require(VIEWER)
    limit = patience()
    nodes = list(all_agents())
    answers = ask_all(
        [agent for agent in nodes if agent.enabled],
        lambda agent: _ask(agent, limit),
        limit,
    )
    return [_offer(agent, answers.get(agent.id)) for agent in nodes]


def best_for_empty(
    found: list[Offer], own_nodes: set[str], disk_counts: Mapping[str, int]
) -> str | None:
    """The node that the scheduler takes for an empty disk that fits anywhere."""
    able = [offer.agent for offer in found if not offer.no_disk]
    return min(
        able,
        key=lambda name: preference(
            name, spare=1, own=own_nodes, count=disk_counts.get(name, 0)
        ),
        default=None,
    )


def _ask(agent: Agent, limit: float) -> _Told:
    client = IntakeClient(agent, timeout=limit)
    told = client.capabilities()
    masters = client.masters() if agent.role_disk else []
    try:
        images = client.images()["images"]
    except ApplicationError:  # an agent of an older release
        images = []
    return _Told(told, masters, images)


def _offer(agent: Agent, told: _Told | ApplicationError | None) -> Offer:
    no_disk, no_cd = closed(agent, DISK), closed(agent, CD)
    if told is None:
        return Offer(agent.id, no_disk=no_disk, no_cd=no_cd)
    if isinstance(told, ApplicationError):
        words = words_of(told)
        return Offer(agent.id, no_disk=words, no_cd=words, silent=True)
    found = told.capabilities
    return Offer(
        agent.id,
        no_disk=no_disk or unfit(found),
        no_cd=no_cd or no_drive(found),
        free=found["free_bytes"],
        total=found["total_bytes"],
        reflink=found["reflink"],
        masters=told.masters,
        images=[
            image
            for image in told.images
            if image["kind"] == KIND_DISK and "target" not in image
        ],
        isos=[image for image in told.images if image["kind"] == KIND_ISO],
    )
