"""Who calls the API with a token: the service's own, or a person's."""

from __future__ import annotations

import threading
import time

from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from ipxeready.users import throttle, trail
from ipxeready.users.tokens import token_owner
from ipxeready.web.actors import client_address
from ipxeready.web.authentication import BearerAuthentication, TokenUser

#: Wrong tokens whose answers may be kept waiting at once in this process: the other threads are for boots.
_waiting = threading.BoundedSemaphore(2)


class TokenAuthentication(BearerAuthentication):
    """`Authorization: Bearer <token>`: the right one is never slowed down, whatever others send from the same address."""

    def known(self, given: str) -> TokenUser | None:
        """The service's own token first, then those of people."""
        found = super().known(given)
        if found is not None:
            return found
        caller = token_owner(given)
        if caller is None:
            return None
        return TokenUser(
            username=caller.owner.username,
            role=caller.role,
            via=f"token {caller.token.name}",
        )

    def refuse(self, request: Request) -> AuthenticationFailed:
        """401, later and later for who goes on guessing; the audit has it."""
        address = client_address(request)
        pause = throttle.token_failed(address or "local")
        trail.refused(op=trail.TOKEN_REFUSED, address=address, reason="no such token")
        if pause and _waiting.acquire(blocking=False):
            try:
                time.sleep(pause)
            finally:
                _waiting.release()
        return super().refuse(request)
