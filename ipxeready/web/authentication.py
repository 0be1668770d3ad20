"""Who calls the API: the bearer token (an administrator) or a logged-in session."""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings
from rest_framework import authentication
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from ipxeready.actors import ADMINISTRATOR
from ipxeready.conf import AGENT


@dataclass(frozen=True)
class TokenUser:
    """The caller that has the token; looks to DRF like a user."""

    username: str = "token"
    role: str = ADMINISTRATOR
    #: Which token of a person's: `token laptop`.
    via: str = ""
    is_authenticated: bool = True
    is_anonymous: bool = False
    is_active: bool = True
    is_staff: bool = True
    is_superuser: bool = True

    def __post_init__(self) -> None:
        """Only administrators may do everything."""
        object.__setattr__(self, "is_superuser", self.role == ADMINISTRATOR)

    @property
    def pk(self) -> str:
        """Its name is its key."""
        return self.username

    def __str__(self) -> str:
        return self.username


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def current_token() -> str:
    """This mode's token: the environment's, else the file's as it is now; empty when there is none."""
    config, layout = settings.IPXE, settings.IPXE_LAYOUT
    if config.mode == AGENT:
        return config.agent_token or _read(layout.agent_token)
    return config.cp_token or _read(layout.cp_token)


def token_matches(given: str, expected: str) -> bool:
    """Compare in constant time; no token at all never matches."""
    same = hmac.compare_digest(
        given.encode("utf-8", "surrogateescape"), expected.encode("utf-8")
    )
    return same and bool(expected)


class BearerAuthentication(authentication.BaseAuthentication):
    """`Authorization: Bearer <token>`."""

    def authenticate(self, request: Request) -> tuple[TokenUser, str] | None:
        """The token's user; None when there is no such header, so that a session may count."""
        scheme, _, given = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
        if scheme.lower() != "bearer":
            return None
        found = self.known(given.strip())
        if found is None:
            raise self.refuse(request)
        return found, "token"

    def known(self, given: str) -> TokenUser | None:
        """Whose token this is, None when it is nobody's."""
        return TokenUser() if token_matches(given, current_token()) else None

    def refuse(self, request: Request) -> AuthenticationFailed:
        """What is raised for a wrong token."""
        return AuthenticationFailed("wrong token")

    def authenticate_header(self, request: Request) -> str:
        """What a 401 asks for."""
        return 'Bearer realm="ipxeready"'


class SessionAuthentication(authentication.SessionAuthentication):
    """A session of the admin pages, with CSRF protection."""
