"""Who acts and from where: an argument of every service, never a request or a thread-local."""

from __future__ import annotations

from dataclasses import dataclass

from ipxeready.errors import Forbidden

VIEWER = "viewer"
OPERATOR = "operator"
ADMINISTRATOR = "administrator"
#: Weakest first; a role may do all that the ones before it may.
ROLES = (VIEWER, OPERATOR, ADMINISTRATOR)


@dataclass(frozen=True)
class Actor:
    """A person, a token, a shell or the firmware; `client` is the address the request came from."""

    name: str
    role: str
    client: str | None = None

    def may(self, role: str) -> bool:
        """Whether this actor has at least `role`."""
        return ROLES.index(self.role) >= ROLES.index(role)

    def require(self, role: str) -> None:
        """Raise Forbidden unless the actor has at least `role`."""
        if not self.may(role):
            raise Forbidden(
                f"{self.name} is a {self.role}; this needs the role {role}. "
                "Ask an administrator to do it or to change your role."
            )


#: The service itself: start-up, recovery, background work.
SYSTEM = Actor("system", ADMINISTRATOR)


def firmware(client: str | None) -> Actor:
    """A booting machine at `client`."""
    return Actor("firmware", ADMINISTRATOR, client)
