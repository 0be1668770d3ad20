"""The node's own log of operations: one JSON object a line, read by `GET /logs`."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections import deque
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

from ipxeready.errors import ApplicationError
from ipxeready.storage import jsonl

logger = logging.getLogger(__name__)


class OperationLog:
    """`IPXE_LOG_FILE`. A log that cannot be written never stops an operation."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._last: int | None = None

    def add(self, op: str, status: str, **fields: Any) -> None:
        """Append one line; `status` is started, ok, failed or rollback."""
        with self._lock:
            try:
                if self._last is None:
                    self.path.parent.mkdir(parents=True, exist_ok=True)
                    self._last = jsonl.last_id(self.path)
                self._last += 1
                line = {
                    "id": self._last,
                    "ts": datetime.now()
                    .astimezone()
                    .isoformat(timespec="milliseconds"),
                    "op": op,
                    "status": status,
                    **{
                        key: value for key, value in fields.items() if value is not None
                    },
                }
                jsonl.append(self.path, jsonl.encode(line))
            except OSError as error:
                logger.error("%s cannot be written: %s", self.path, error)

    @contextlib.contextmanager
    def about(self, op: str, **fields: object) -> Iterator[dict[str, object]]:
        """One line for an operation, whichever way it ends; what the block notes goes with it."""
        note: dict[str, object] = {}
        try:
            yield note
        except ApplicationError as error:
            self.add(op, "failed", **fields, **note, error=error.message)
            raise
        except BaseException as error:
            self.add(op, "failed", **fields, **note, error=repr(error))
            raise
        self.add(op, "ok", **fields, **note)

    def read(self, *, since: int, limit: int) -> dict[str, Any]:
        """Entries with an id above `since`, oldest first, and the cursor for the next call."""
        entries: list[dict[str, Any]] = []
        try:
            for line in jsonl.read(self.path):
                number = line.data.get("id") if line.data else None
                if line.data is None or not isinstance(number, int) or number <= since:
                    continue
                entries.append(line.data)
                if len(entries) >= limit:
                    break
        except FileNotFoundError:
            pass
        cursor = entries[-1]["id"] if entries else since
        return {"next_cursor": cursor, "entries": entries}

    def read_back(self, *, before: int, limit: int) -> dict[str, Any]:
        """Entries with an id below `before` (0: the newest), newest first, and the cursor for older ones, 0 at the beginning."""
        entries: deque[dict[str, Any]] = deque(maxlen=limit + 1)
        try:
            for line in jsonl.read(self.path):
                number = jsonl.identifier(line.data) if line.data else None
                if line.data is None or number is None:
                    continue
                if before and number >= before:
                    break
                entries.append(line.data)
        except FileNotFoundError:
            pass
        more = len(entries) > limit
        found = list(entries)[::-1][:limit]
        return {"next_cursor": found[-1]["id"] if more else 0, "entries": found}
