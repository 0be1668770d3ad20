"""Tests that a driver runs in a guest, all in one run, and that pytest reports one by one, each as it ends.

The driver says `{"case": name, "ok": true or false, "error": text}` for each; what else it says is in its log.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


class Verdicts:
    """What `Guest.results` says about each case; asked in the driver's order, it waits for no more than the one."""

    def __init__(self, said: Iterator[dict[str, Any]]) -> None:
        self._said = said
        self._known: dict[str, dict[str, Any]] = {}
        self._broken = "the driver ended without this case"

    def check(self, case: str) -> None:
        """AssertionError with the driver's words when the case failed there, or never ran."""
        while case not in self._known:
            try:
                verdict = next(self._said)
            except StopIteration:
                raise AssertionError(self._broken) from None
            except AssertionError as error:
                self._broken = f"the driver broke: {error}"
                raise
            self._known[verdict["case"]] = verdict
        verdict = self._known[case]
        assert verdict["ok"], f"in the guest:\n{verdict.get('error')}"
