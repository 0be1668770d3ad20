"""Whether this process is asked to end: long work stops between its parts instead of keeping the next start away."""

from __future__ import annotations

from collections.abc import Callable

from ipxeready.errors import Unavailable
from ipxeready.said import said

#: The code of `not_tried`.
NOT_TRIED = "service.ending"

_asked: Callable[[], bool] | None = None


def told_by(asked: Callable[[], bool] | None) -> None:
    """Have the server say it (once for each process); None: nobody asks."""
    global _asked
    _asked = asked


def ending() -> bool:
    """Whether what is not begun yet should be left."""
    return _asked is not None and _asked()


def not_tried() -> Unavailable:
    """What is said of a part that was left."""
    return Unavailable(
        said(
            "the service is ending: not tried. Send it again once the service is back."
        ),
        code=NOT_TRIED,
        extra={"sent": False},
    )
