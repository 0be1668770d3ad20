"""Who is connected to what is about to be deleted: asked of the nodes side by side, for telling people before they do it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from agents.client import NodeClient
from agents.protocol.answers import Session
from agents.selectors import agents
from agents.together import ask_all, patience
from ipxeready.errors import ApplicationError
from workers.models import Cd, Disk


def sessions_of(things: Sequence[Disk | Cd]) -> dict[str, list[Session]]:
    """The open sessions of each target that has some, by its name.

    A node that does not answer has none here: the deletion itself asks again, and refuses.
    """
    wanted = defaultdict(set)
    for thing in things:
        wanted[thing.agent].add(thing.iqn)
    limit = patience()
    answers = ask_all(
        [agent for agent in agents() if agent.id in wanted],
        lambda agent: NodeClient(agent, timeout=limit).targets(),
        limit,
    )
    return {
        target["iqn"]: target["sessions"]
        for node, answer in answers.items()
        if not isinstance(answer, ApplicationError)
        for target in answer
        if target["sessions"] and target["iqn"] in wanted[node]
    }


def session_words(session: Session) -> str:
    """One session for people: initiator, address, since when."""
    words = f"{session['initiator']} ({session['address'] or '?'})"
    since = session.get("since")
    return f"{words}, {since}" if since else words
