"""The files read without index, lock or service: what is broken, which records do not validate, the rows of the others."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from ipxeready.index.models import IndexedModel
from ipxeready.index.refresh import read
from ipxeready.index.sources import Source, all_sources
from ipxeready.said import said
from ipxeready.storage import intents
from ipxeready.storage.broken import FileBroken, RecordBroken
from ipxeready.storage.fingerprint import Fingerprint, fingerprint
from ipxeready.storage.paths import Layout

#: How often and how long a write of the service is waited for that goes over several files.
_TRIES, _PAUSE_S = 40, 0.05


@dataclass(frozen=True)
class Finding:
    """Something in a file. A problem must be mended; a note may be meant."""

    path: str
    code: str
    message: str
    line: int = 0
    column: int = 0
    record: str = ""
    problem: bool = True

    def __str__(self) -> str:
        place = "".join(f":{at}" for at in (self.line, self.column) if at)
        return f"{self.path}{place}: {self.message}"


@dataclass
class Examined:
    """What the files hold: findings, and texts and rows by the name of their source."""

    findings: list[Finding] = field(default_factory=list)
    texts: dict[str, Any] = field(default_factory=dict)
    rows: dict[str, list[IndexedModel]] = field(default_factory=dict)


def examine(layout: Layout) -> Examined:
    """Read every file at one moment; never writes, never takes the lock."""
    for _ in range(_TRIES):
        before = _moment(layout)
        found = Examined()
        for source in all_sources():
            _examine(source, layout, found)
        if before == _moment(layout) and not intents.pending(layout):
            return found
        time.sleep(_PAUSE_S)
    if intents.pending(layout):
        found.findings.append(
            Finding(
                str(layout.intents),
                "intent.pending",
                "a write was interrupted; the next start or change finishes it",
                problem=False,
            )
        )
    return found


def _moment(layout: Layout) -> list[Fingerprint | None]:
    return [fingerprint(source.path(layout)) for source in all_sources()]


def _examine(source: Source, layout: Layout, found: Examined) -> None:
    path = str(source.path(layout))
    content, _, fault = read(source, layout)
    if content is None and not _was_there(source, layout):
        words = "is not there yet; the service makes it when it starts"
        found.findings.append(Finding(path, "file.missing", words, problem=False))
        return
    try:
        if content is None or fault is not None:
            raise fault or FileBroken(said("cannot be read"))
        text = source.open(content)
        text.check(list(text.entries()))
        entries = text.entries()
    except FileBroken as error:
        found.findings.append(
            Finding(path, "file.broken", error.message, error.line, error.column)
        )
        return
    found.texts[source.name] = text
    rows = found.rows.setdefault(source.name, [])
    for key, entry in entries.items():
        try:
            rows += source.rows(text, key)
        except RecordBroken as error:
            line = error.line or entry.line
            found.findings.append(
                Finding(path, "record.broken", error.message, line, record=key)
            )


def _was_there(source: Source, layout: Layout) -> bool:
    """Whether something lies or lay there: a new root has no files yet."""
    path = source.path(layout)
    backup = layout.backup / source.name_of_backup
    return path.exists() or path.is_symlink() or backup.exists()
