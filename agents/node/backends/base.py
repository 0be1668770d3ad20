"""What every target system has to offer; services know nothing else of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypedDict

from agents.protocol.access import Access
from agents.protocol.answers import Session, Target
from ipxeready.errors import ApplicationError, Conflict
from ipxeready.said import joined, said


@dataclass(frozen=True)
class Export:
    """One target that should be there: its name, its backing path, whether it is a CD, and who may log in.

    `access` None: whoever may now (everybody, for a new one).
    """

    iqn: str
    path: str
    cd: bool = False
    access: Access | None = None


class Backend(ABC):
    """A target system. All calls are idempotent; changes come one at a time (the services hold the lock)."""

    name: str
    #: Whether it can serve an ISO as a CD drive.
    cd: bool
    #: Whether its targets outlive a restart of the target system.
    persistent: bool

    @abstractmethod
    def check(self) -> None:
        """Return if the target system answers, else raise Unavailable."""

    @abstractmethod
    def targets(self) -> list[Target]:
        """The targets below our base IQN, as they really are; others' are never shown or touched."""

    @abstractmethod
    def export_all(
        self, exports: Sequence[Export]
    ) -> dict[str, ApplicationError | None]:
        """Make each target or accept the equal one that is there; by IQN, None or why not.

        Its access becomes what `access` says, unless that is None; sessions that are open stay, and at no moment
        may more log in than before or after. A target that could not be made, or that reads back different from
        what was asked, is not left behind. One failure does not stop the rest.
        """

    @abstractmethod
    def unexport(self, iqn: str, *, force: bool = False) -> None:
        """Remove a target; not there is done. A session is Conflict unless `force`, which ends it."""

    @abstractmethod
    def foreign(self) -> int:
        """How many targets of others, outside our base, this target system has."""

    def tidy(self) -> None:  # noqa: B027 - most have nothing to do
        """Before a scan: take off what calls left of ours that died on their way. Cuts no session."""

    @property
    def unsettled(self) -> bool:
        """Whether a change is not complete before some target has no session."""
        return False

    def settle(self) -> None:  # noqa: B027
        """Do what a change had to leave until a target has no session; asked for while `unsettled`."""

    def incarnation(self) -> str:
        """Which life of the target system this is: another text after it was started again. Never fails."""
        return ""

    def stranger(self) -> str | None:
        """Why the target system that answers is not the one that this node was told of; None where it is."""
        return None

    def export(self, export: Export) -> None:
        """Make one target, or raise why not."""
        error = self.export_all([export])[export.iqn]
        if error is not None:
            raise error

    def about(
        self, iqn: str, path: str | None = None, *, recent: bool = False
    ) -> list[Target]:
        """What a change of one target has to know of: itself, however its name is written, the others of its initiator,
        and those that serve `path`.

        There may be more; there is one at least, unless there is none of ours at all. Where that costs less, `recent`
        may overlook what others did in the last seconds.
        """
        return self.targets()

    def find(self, iqn: str) -> Target | None:
        """The target of that name, or None."""
        return next((t for t in self.targets() if t["iqn"] == iqn), None)

    def sessions(self, iqn: str) -> list[Session]:
        """Who is logged in."""
        target = self.find(iqn)
        return target["sessions"] if target else []


def same(target: Target, export: Export) -> bool:
    """Whether a target is exactly what `export` asks for: one LUN, that path, that kind."""
    kind = "cd" if export.cd else "disk"
    return [(lun["backing"], lun["type"]) for lun in target["luns"]] == [
        (export.path, kind)
    ]


class AccessShown(TypedDict):
    """The part of a target that says who may log in."""

    access: str
    initiators: list[str]


def access_shown(access: Access) -> AccessShown:
    """How a listing says it: without secrets."""
    return {
        "access": access.mode,
        "initiators": [access.initiator] if access.initiator else [],
    }


def shown_as(target: Target, access: Access) -> bool:
    """Whether a listed target lets in exactly whom `access` says; a secret cannot be seen."""
    shown = access_shown(access)
    return (
        target.get("access") == shown["access"]
        and target.get("initiators") == shown["initiators"]
    )


def describe(sessions: Sequence[Session]) -> str:
    """Sessions for a message: `iqn… from 192.0.2.7 (since …)`, joined."""
    return joined(", ", *map(_described, sessions))


def _described(session: Session) -> str:
    initiator = session["initiator"]
    address = session["address"] or said("an unknown address")
    if since := session.get("since"):
        return said(
            "{initiator} from {address} (since {since})",
            initiator=initiator,
            address=address,
            since=since,
        )
    return said("{initiator} from {address}", initiator=initiator, address=address)


def in_use(target: Target) -> Conflict:
    """The refusal to delete under somebody's feet."""
    return Conflict(
        said(
            "{iqn} is in use by {sessions}. Shut that machine down, or repeat with force=true.",
            iqn=target["iqn"],
            sessions=describe(target["sessions"]) or said("an initiator"),
        ),
        code="target.in_use",
        extra={"sessions": target["sessions"]},
    )
