"""Named points of the write path at which tests may stop or kill the process; they do nothing otherwise."""

from __future__ import annotations

from collections.abc import Callable

_hook: Callable[[str], None] | None = None


def reach(point: str) -> None:
    """The write path has come to `point`."""
    if _hook is not None:
        _hook(point)


def install(hook: Callable[[str], None] | None) -> None:
    """Call `hook` with the name of each point (tests only); None takes it off."""
    global _hook
    _hook = hook
