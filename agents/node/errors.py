"""Refusals that only a storage node makes."""

from __future__ import annotations

from ipxeready.errors import ApplicationError
from ipxeready.said import said
from ipxeready.storage.sizes import format_size


class NoRoom(ApplicationError):
    """The file system cannot take it (507): says what is needed and what is free."""

    status = 507
    default_code = "no_room"

    @classmethod
    def of(cls, what: str, *, needed: int, free: int, reserve: int) -> NoRoom:
        """The refusal for `what`, in numbers."""
        return cls(
            said(
                "no room for {what}: needed {needed}, free {free} of which {reserve} stay in "
                "reserve. Free some space or take another node.",
                what=what,
                needed=format_size(needed),
                free=format_size(max(free, 0)),
                reserve=format_size(reserve),
            ),
            extra={"needed": needed, "free": free, "reserve": reserve},
        )


class TooLarge(ApplicationError):
    """The request's body is above the cap (413)."""

    status = 413
    default_code = "too_large"


class LengthRequired(ApplicationError):
    """The request must say how long its body is (411)."""

    status = 411
    default_code = "length"


class MethodRefused(ApplicationError):
    """The path exists, the method does not (405)."""

    status = 405
    default_code = "method"
