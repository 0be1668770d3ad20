"""The header `Prefer` (RFC 7240): whether a caller wants a job in the place of a long wait, and how long it waits before."""

from __future__ import annotations

import re
from dataclasses import dataclass

HEADER = "Prefer"
APPLIED = "Preference-Applied"
RESPOND_ASYNC = "respond-async"
WAIT = "wait"

_WORD = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_QUOTED = r'"(?:[^"\\]|\\.)*"'
#: One preference with its parameters, which none of ours has: they are passed over.
_PREFERENCE = re.compile(
    rf"[\s,]*(?P<name>{_WORD})(?:\s*=\s*(?P<value>{_QUOTED}|{_WORD})?)?"
    rf"(?:\s*;\s*(?:{_WORD}(?:\s*=\s*(?:{_QUOTED}|{_WORD})?)?)?)*\s*(?:,|\Z)"
)


@dataclass(frozen=True)
class Preference:
    """What a caller prefers: a job, and the seconds that it would wait for the ordinary answer."""

    respond_async: bool = False
    wait: float | None = None

    def header(self) -> str:
        """It as a header's value, for the asking side."""
        parts = [RESPOND_ASYNC] if self.respond_async else []
        if self.wait is not None:
            parts.append(f"{WAIT}={self.wait:.0f}")
        return ", ".join(parts)


def preference(header: str | None) -> Preference:
    """What the header says; several headers come joined by commas, as every server does it.

    A preference that is unknown or malformed is none (a preference never makes a request
    fail), and of one that is given twice the first counts.
    """
    found = _preferences(header or "")
    wait = found.get(WAIT, "")
    return Preference(
        respond_async=RESPOND_ASYNC in found,
        wait=float(wait) if re.fullmatch(r"[0-9]{1,9}", wait) else None,
    )


def _preferences(header: str) -> dict[str, str]:
    found: dict[str, str] = {}
    at = 0
    while at < len(header):
        match = _PREFERENCE.match(header, at)
        if match is None:  # malformed: go on behind the next comma
            comma = header.find(",", at)
            if comma < 0:
                break
            at = comma + 1
            continue
        at = match.end()
        value = match["value"] or ""
        if value.startswith('"'):
            value = re.sub(r"\\(.)", r"\1", value[1:-1])
        found.setdefault(match["name"].lower(), value)
    return found
