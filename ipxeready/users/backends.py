"""Logging in against config/users.yml."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.backends import BaseBackend
from django.contrib.auth.hashers import make_password
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from ipxeready.users import throttle, trail
from ipxeready.users.models import Operator
from ipxeready.web.actors import client_address

#: Where the seconds to wait stand on a request whose login was refused for too many failures.
WAIT = "login_wait"


class FileBackend(BaseBackend):
    """Checks a name and a password; roles are answered by the user itself."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **_kwargs: Any,
    ) -> Operator | None:
        """The person, or None; a wrong name takes as long as a wrong password, and is counted alike."""
        if username is None or password is None:
            return None
        name = username.strip().lower()
        address = client_address(request) if request else None
        user = self.get_user(name)
        wait = throttle.begin(name, address or "local")
        if wait:
            if request is not None:
                setattr(request, WAIT, wait)
            reason = "too many failures"
        elif user is None:
            make_password(password)
            reason = "wrong name or password"
        elif not user.check_password(password):
            reason = "wrong name or password"
        elif not user.is_active:
            reason = "disabled"
        else:
            throttle.succeeded(name, address or "local")
            return user
        trail.refused(
            op=trail.REFUSED,
            address=address,
            account=trail.account_named(user),
            reason=reason,
        )
        # No other backend is asked.
        raise PermissionDenied

    def get_user(self, user_id: str) -> Operator | None:
        """The person with this name."""
        return Operator.objects.filter(pk=user_id).first()
