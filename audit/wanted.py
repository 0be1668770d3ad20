"""Which entries are wanted: asked of the index, and of lines of the file that the index no longer holds."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from audit.adapters import text_of
from audit.models import Operation
from ipxeready.index.journal import parse_time

#: Fields that are compared as a whole.
WHOLE = ("op", "status", "worker_id", "agent", "user")


@dataclass(frozen=True)
class Wanted:
    """Entries with these values, from a time on and before another, with all the words anywhere in the line."""

    op: str = ""
    status: str = ""
    worker_id: str = ""
    agent: str = ""
    user: str = ""
    search: str = ""
    from_time: datetime | None = None
    to_time: datetime | None = None

    @property
    def whole(self) -> dict[str, str]:
        """The fields that are compared as a whole, with their values."""
        return {name: value for name in WHOLE if (value := getattr(self, name))}

    def narrow(self, rows: QuerySet[Operation]) -> QuerySet[Operation]:
        """The rows that are wanted."""
        rows = rows.filter(**self.whole)
        if self.from_time:
            rows = rows.filter(ts__gte=self.from_time)
        if self.to_time:
            rows = rows.filter(ts__lt=self.to_time)
        if self.search:
            rows = rows.alias(line=Cast("data", TextField()))
            for word in self.search.split():
                rows = rows.filter(line__icontains=_written(word))
        return rows

    def matches(self, data: dict[str, Any]) -> bool:
        """The same for a line that is not in the index."""
        if any(text_of(data, name) != value for name, value in self.whole.items()):
            return False
        if self.from_time or self.to_time:
            stamp = parse_time(data.get("ts"))
            if stamp is None or (self.from_time and stamp < self.from_time):
                return False
            if self.to_time and stamp >= self.to_time:
                return False
        line = json.dumps(data).lower() if self.search else ""
        return all(_written(word).lower() in line for word in self.search.split())

    def sieve(self) -> Callable[[bytes], bool]:
        """Tells of a line's bytes whether they may be wanted: reading them as JSON takes ten times as long."""
        exact = [value.encode() for value in self.whole.values()]
        # Of other letters than these, lower() of bytes knows nothing.
        words = [word for word in self.search.split() if word.isascii()]
        loose = [word.lower().encode() for word in words]

        def may_match(raw: bytes) -> bool:
            # With an escape in it, text can be written in many ways.
            if b"\\" in raw:
                return True
            for value in exact:
                if value not in raw:
                    return False
            if loose:
                small = raw.lower()
                return all(word in small for word in loose)
            return True

        return may_match


def _written(word: str) -> str:
    """The word as the index has it: JSON, in ASCII."""
    return json.dumps(word)[1:-1]
