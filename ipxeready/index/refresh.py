"""Bringing the index up to date with one file: parse only the records whose text changed, touch only their rows."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Model

from ipxeready.index.models import (
    IndexedRecord,
    Problem,
    SourceFile,
    check_storable,
)
from ipxeready.index.rows import delete, insert
from ipxeready.index.sources import Source, Text
from ipxeready.said import said
from ipxeready.storage import intents
from ipxeready.storage.broken import FileBroken, RecordBroken
from ipxeready.storage.fingerprint import (
    Fingerprint,
    fingerprint,
    read_regular,
)
from ipxeready.storage.paths import Layout

_BATCH = 500


@dataclass
class Outcome:
    """What a refresh of one file found."""

    row: SourceFile
    text: Text | None = None
    changed: list[str] = field(default_factory=list)
    gone: list[str] = field(default_factory=list)
    newly_broken: FileBroken | None = None
    mended: bool = False


def stamp(row: SourceFile, seen: Fingerprint | None, sha: str) -> None:
    """Note in `row` what the file looked like."""
    row.dev, row.ino, row.size, row.mtime_ns, row.ctime_ns = seen or (None,) * 5
    row.sha256 = sha
    row.indexed_ns = time.time_ns()


def same(row: SourceFile | None, seen: Fingerprint | None) -> bool:
    """Whether `row` was made from a file that looked like `seen`."""
    if row is None:
        return False
    if seen is None:
        return row.ino is None
    return (row.dev, row.ino, row.size, row.mtime_ns, row.ctime_ns) == tuple(seen)


def read(
    source: Source, layout: Layout
) -> tuple[bytes | None, Fingerprint | None, FileBroken | None]:
    """The file's bytes with the fingerprint of just these bytes, or why they cannot be had."""
    path = source.path(layout)
    for _ in range(5):
        before = fingerprint(path)
        try:
            content = read_regular(path)
        except FileNotFoundError:
            backup = layout.backup / source.name_of_backup
            words = (
                said(
                    "the file is gone: put it back; its last content that we wrote is {backup}",
                    backup=backup,
                )
                if backup.exists()
                else said("the file is gone: put it back")
            )
            return None, None, FileBroken(words)
        except OSError as error:
            reason = error.strerror or str(error)
            return (
                None,
                before,
                FileBroken(
                    said(
                        "cannot be read: {error}; mend its mode or owner", error=reason
                    )
                ),
            )
        after = fingerprint(path)
        if before == after:
            break
    backup = layout.backup / source.name_of_backup
    saved = backup.read_bytes() if not content and backup.exists() else None
    return content, after, source.damaged(content, saved)


def refresh(source: Source, layout: Layout, row: SourceFile | None) -> Outcome:
    """Index what changed in the file of `source`. The caller holds the lock and an open write transaction."""
    content, seen, fault = read(source, layout)
    fresh = row or SourceFile(name=source.name)
    fresh.path = str(source.path(layout))
    sha = intents.sha(content) if content is not None else ""
    out = Outcome(fresh)
    if content is not None and fault is None:
        try:
            out.text = source.open(content)
            _index(source, out)
        except FileBroken as error:
            fault, out.text = error, None
    if fault is not None:
        if (fresh.error, fresh.sha256) != (fault.message, sha):
            out.newly_broken = fault
            if row is None:
                _salvage(source, layout, content, out)
        _note_broken(source, fresh, fault)
    elif fresh.error:
        out.mended = True
        fresh.error, fresh.error_line, fresh.error_column = "", 0, 0
        Problem.objects.filter(source=source.name, code="file.broken").delete()
    _note_unfinished(source, layout)
    stamp(fresh, seen, sha)
    fresh.save()
    return out


def _note_unfinished(source: Source, layout: Layout) -> None:
    """A crash met a hand edit: both contents lie there until somebody has looked."""
    path = source.path(layout)
    kept = intents.unfinished_name(path)
    Problem.objects.filter(source=source.name, code="file.unfinished").delete()
    if kept.exists():
        Problem.objects.create(
            source=source.name,
            code="file.unfinished",
            message=f"{path} was edited by hand while a write of ours was unfinished. The file was left as "
            f"it is; what we meant to write is in {kept}: take over what is missing and remove it",
        )


def _salvage(
    source: Source, layout: Layout, content: bytes | None, out: Outcome
) -> None:
    """A cold start with a broken file: machines boot from what can be told apart of it, or from our last content."""
    try:
        if content:
            text = source.salvage(content)
        else:
            text = source.open((layout.backup / source.name_of_backup).read_bytes())
        if text is None:
            return
        entries = text.entries()
        text.check(list(entries))
        replace_rows(source, text, list(entries), [], text.entries())
        cross_check(source, text)
    except (FileBroken, OSError):
        return
    if not content:
        # Other text, should it come back, is new to us.
        IndexedRecord.objects.filter(source=source.name).update(digest="")


def _note_broken(source: Source, row: SourceFile, fault: FileBroken) -> None:
    row.error, row.error_line, row.error_column = (
        fault.message,
        fault.line,
        fault.column,
    )
    Problem.objects.filter(source=source.name, code="file.broken").delete()
    Problem.objects.create(
        source=source.name,
        line=fault.line,
        code="file.broken",
        message=f"{row.path}: {fault.where()}",
    )


def _index(source: Source, out: Outcome) -> None:
    text = out.text
    assert text is not None  # noqa: S101 - set by the caller
    entries = text.entries()
    have = dict(
        IndexedRecord.objects.filter(source=source.name).values_list("key", "digest")
    )
    changed = [key for key, entry in entries.items() if have.get(key) != entry.digest]
    if text.check(changed):
        # The file had to be parsed whole: digests are those of values now.
        entries = text.entries()
        changed = [key for key, item in entries.items() if have.get(key) != item.digest]
    out.changed = changed
    out.gone = [key for key in have if key not in entries]
    replace_rows(source, text, changed, out.gone, entries)
    cross_check(source, text)


def replace_rows(
    source: Source,
    text: Text,
    changed: list[str],
    gone: list[str],
    entries: dict[str, Any],
) -> None:
    """Make the rows of these records anew; a record that does not validate keeps its last good rows."""
    rows: list[Model] = []
    good: list[str] = []
    problems: list[Problem] = []
    for key in changed:
        try:
            rows += checked_rows(source, text, key)
        except RecordBroken as error:
            problems.append(
                Problem(
                    source=source.name,
                    record=key,
                    line=error.line or entries[key].line,
                    code="record.broken",
                    message=error.message,
                )
            )
        else:
            good.append(key)
    drop_rows(source, good + gone)
    for model in source.models:
        insert(model, [row for row in rows if type(row) is model])
    for part in _chunks(changed + gone):
        delete(IndexedRecord, "key", part, source=source.name)
        delete(Problem, "record", part, source=source.name, code="record.broken")
    insert(
        IndexedRecord,
        [
            IndexedRecord(source=source.name, key=key, digest=entries[key].digest)
            for key in changed
        ],
    )
    insert(Problem, problems)


def checked_rows(source: Source, text: Text, key: str) -> list[Model]:
    """The rows of one record, fit for the tables; RecordBroken otherwise."""
    rows: list[Model] = list(source.rows(text, key))
    for row in rows:
        check_storable(row)
    return rows


def drop_rows(source: Source, keys: list[str]) -> None:
    """Remove the rows of these records."""
    for part in _chunks(keys):
        for model in source.models:
            delete(model, "record", part)


def cross_check(source: Source, text: Text) -> None:
    """Note the problems across records anew."""
    faults = source.cross_check(text)
    Problem.objects.filter(source=source.name).exclude(
        code__in=("record.broken", "file.broken", "file.unfinished")
    ).delete()
    Problem.objects.bulk_create(
        Problem(
            source=source.name,
            record=fault.record,
            line=fault.line,
            code=fault.code,
            message=fault.message,
        )
        for fault in faults
    )


def _chunks(keys: list[str]) -> list[list[str]]:
    return [keys[at : at + _BATCH] for at in range(0, len(keys), _BATCH)]
