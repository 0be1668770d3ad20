"""Logging in against config/users.yml."""

from __future__ import annotations

import threading
import time
from typing import Any

from django.contrib.auth.backends import BaseBackend
from django.contrib.auth.hashers import make_password
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest

from ipxeready.users.models import Operator
from ipxeready.web.actors import client_address


class Throttle:
    """A small delay per address that grows with each failure: guessing becomes slow, not people.

    In this process only, and forgotten after a while: a shared store would be one more thing
    that can break, and each of the few processes is slowed down by itself.
    """

    FREE = 3  # failures without a delay
    STEP = 0.5  # seconds for each one after that
    MOST = 4.0
    FORGET = 300.0
    REMEMBERED = 10_000  # addresses; beyond it the oldest go
    WAITING = (
        2  # at once in this process: guessing must not keep the threads that boots need
    )

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting = threading.BoundedSemaphore(self.WAITING)
        self._failures: dict[str, tuple[int, float]] = {}

    def delay(self, address: str) -> float:
        """Seconds that the next try from `address` waits."""
        with self._lock:
            count, last = self._failures.get(address, (0, 0.0))
        if count <= self.FREE or time.monotonic() - last > self.FORGET:
            return 0.0
        return min(self.MOST, (count - self.FREE) * self.STEP)

    def wait(self, address: str) -> bool:
        """Wait as long as `address` must; False when too many wait already: not now, then."""
        delay = self.delay(address)
        if not delay:
            return True
        if not self._waiting.acquire(blocking=False):
            return False
        try:
            time.sleep(delay)
        finally:
            self._waiting.release()
        return True

    def failed(self, address: str) -> None:
        """Count a failure."""
        now = time.monotonic()
        with self._lock:
            count, last = self._failures.pop(address, (0, 0.0))
            fresh = 0 if now - last > self.FORGET else count
            self._failures[address] = (fresh + 1, now)
            while len(self._failures) > self.REMEMBERED:
                del self._failures[next(iter(self._failures))]

    def succeeded(self, address: str) -> None:
        """Forget the failures of `address`."""
        with self._lock:
            self._failures.pop(address, None)


throttle = Throttle()


class FileBackend(BaseBackend):
    """Checks a name and a password; roles are answered by the user itself."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **_kwargs: Any,
    ) -> Operator | None:
        """The person, or None; a wrong name takes as long as a wrong password."""
        if username is None or password is None:
            return None
        address = (client_address(request) if request else None) or "local"
        if not throttle.wait(address):
            raise PermissionDenied
        user = self.get_user(username.strip().lower())
        if user is None or not user.is_active:
            make_password(password)
        elif user.check_password(password):
            throttle.succeeded(address)
            return user
        throttle.failed(address)
        # No other backend is asked.
        raise PermissionDenied

    def get_user(self, user_id: str) -> Operator | None:
        """The person with this name."""
        return Operator.objects.filter(pk=user_id).first()
