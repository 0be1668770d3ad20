"""Who acts and from where: an argument of every service, never a request or a thread-local."""

from __future__ import annotations

from dataclasses import dataclass

from ipxeready.errors import Forbidden
from ipxeready.said import said

VIEWER = "viewer"
OPERATOR = "operator"
ADMINISTRATOR = "administrator"
#: Weakest first; a role may do all that the ones before it may.
ROLES = (VIEWER, OPERATOR, ADMINISTRATOR)
_ROLES = {
    VIEWER: said("viewer"),
    OPERATOR: said("operator"),
    ADMINISTRATOR: said("administrator"),
}
_IS = {
    VIEWER: said("a viewer"),
    OPERATOR: said("an operator"),
    ADMINISTRATOR: said("an administrator"),
}


def weaker(one: str, other: str) -> str:
    """The role of the two that may do less."""
    return min(one, other, key=ROLES.index)


@dataclass(frozen=True)
class Actor:
    """A person, a token, a shell or the firmware; `client` is the address the request came from.

    `via` is the personal token with which somebody acts: it acts for the person, and is not the person.
    """

    name: str
    role: str
    client: str | None = None
    via: str = ""

    @property
    def shown(self) -> str:
        """The name as the audit and lists have it: `ann (token laptop)`."""
        return f"{self.name} ({self.via})" if self.via else self.name

    def is_person(self, name: str) -> bool:
        """Whether this is that person, logged in with a password and not a token of theirs."""
        return self.name == name and not self.via

    def may(self, role: str) -> bool:
        """Whether this actor has at least `role`."""
        return ROLES.index(self.role) >= ROLES.index(role)

    def require(self, role: str) -> None:
        """Raise Forbidden unless the actor has at least `role`."""
        if not self.may(role):
            raise Forbidden(
                said(
                    "{user} is {what}; this needs the role {role}. Ask an "
                    "administrator to do it or to change your role.",
                    user=self.shown,
                    what=_IS[self.role],
                    role=_ROLES.get(role, role),
                )
            )


#: The service itself: start-up, recovery, background work.
SYSTEM = Actor("system", ADMINISTRATOR)


def firmware(client: str | None) -> Actor:
    """A booting machine at `client`."""
    return Actor("firmware", ADMINISTRATOR, client)
