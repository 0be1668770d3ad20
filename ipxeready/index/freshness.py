"""Is the index what the files say? One stat a file; what changed is brought in under the lock."""

from __future__ import annotations

import logging
import threading
import time
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection, transaction

from ipxeready.actors import SYSTEM
from ipxeready.errors import Unavailable
from ipxeready.index import build, journal
from ipxeready.index.connection import follow, identity, path, writable
from ipxeready.index.models import SourceFile
from ipxeready.index.refresh import Outcome, refresh, same, stamp
from ipxeready.index.sources import Source, all_sources
from ipxeready.said import said
from ipxeready.storage import intents, jsonl
from ipxeready.storage.fingerprint import (
    Fingerprint,
    fingerprint,
    read_regular,
)
from ipxeready.storage.lock import StateLock, state_lock
from ipxeready.storage.paths import Layout

log = logging.getLogger(__name__)
#: Seconds that commands and services wait for the lock.
WAIT = 10.0
#: Names in one audit line; more are counted only.
_NAMES = 50

_seen: dict[str, Any] = {}
#: Audit lines that found no room on the disk.
_unwritten: list[dict[str, Any]] = []
_guard = threading.Lock()
#: A layout with the sources, and the paths of these.
_places: tuple[Layout, list[Source], tuple[str, ...]] | None = None


def lock() -> StateLock:
    """The one lock of the present root."""
    layout: Layout = settings.IPXE_LAYOUT
    return state_lock(layout.lock)


def forget() -> None:
    """Make the next check look closely (tests, and after an index was rebuilt)."""
    with _guard:
        _seen.clear()
        _unwritten.clear()


def current() -> tuple[Any, ...]:
    """What identifies the present state of all files: equal values mean that nothing changed."""
    *files, trail = _watched(settings.IPXE_LAYOUT)
    prints = tuple(fingerprint(file) for file in files)
    return (identity(), prints, fingerprint(trail))


def _watched(layout: Layout) -> tuple[str, ...]:
    """The paths of all files, the audit trail last; put together once, for each boot asks."""
    global _places
    sources = all_sources()
    if _places is None or _places[0] is not layout or _places[1] != sources:
        files = [source.path(layout) for source in sources]
        files.append(journal.get_journal().path(layout))
        _places = (layout, sources, tuple(map(str, files)))
    return _places[2]


def settled() -> tuple[Any, ...] | None:
    """A token for the present content of all records' files, None while that is not certain.

    Answers that were made from the index may be kept in the process as long as it stays equal.
    """
    now = current()[:2]
    with _guard:
        state = _seen.get("state")
    return now if state is not None and state[:2] == now else None


def ensure_fresh(wait: bool = False) -> None:
    """Bring the index up to date with the files.

    A reader that finds the lock taken serves what is there, unless the index was never built; with `wait`
    (commands, services) the lock is waited for. Raises Unavailable when that takes too long.
    """
    if connection.in_atomic_block and lock().mine:
        return
    now = current()
    follow(now[0])
    layout: Layout = settings.IPXE_LAYOUT
    if now[0] is not None and not intents.pending(layout):
        with _guard:
            known = _seen.get("state") == now
        if known or _matches(now):
            return
    held = lock()
    needed = wait or now[0] is None
    try:
        with held.held("refresh of the index", WAIT if needed else 0):
            refresh_locked()
    except Unavailable as error:
        if needed:
            raise
        if identity() is None:
            # It was taken away since we looked: there is nothing to serve, so it is waited for.
            ensure_fresh(wait=True)
            return
        if error.code != "state.busy":
            log.warning("%s; the last good index is served", error.message)


def _matches(now: tuple[Any, ...]) -> bool:
    """Whether the index's own notes say that it was made from just these files."""
    try:
        rows = SourceFile.objects.in_bulk()
    except DatabaseError:
        return False
    layout: Layout = settings.IPXE_LAYOUT
    _, prints, operations = now
    settled = True
    for source, seen in zip(all_sources(), prints, strict=True):
        row = rows.get(source.name)
        if not same(row, seen):
            return False
        if seen is not None and row is not None and seen.racy(row.indexed_ns):
            if _digest(source, layout) != row.sha256:
                return False
            settled = settled and not seen.racy(time.time_ns())
    row = rows.get(journal.get_journal().name)
    if not same(row, operations):
        return False
    if settled:
        _remember(now)
    return True


def _digest(source: Source, layout: Layout) -> str:
    """Digest of the file's present bytes; empty where they cannot be read, as in its row."""
    try:
        return intents.sha(read_regular(source.path(layout)))
    except OSError:
        return ""


def _remember(now: tuple[Any, ...]) -> None:
    with _guard:
        _seen["state"] = now


def refresh_locked() -> dict[str, Outcome]:
    """Finish what a crash left, index what changed. The caller holds the state lock.

    Raises Unavailable when a disk does not let us.
    """
    layout: Layout = settings.IPXE_LAYOUT
    try:
        done = intents.recover(layout)
    except OSError as error:
        raise Unavailable(
            said(
                "a write that a crash interrupted cannot be finished: {error}. Make room or "
                "mend the permissions, then try again.",
                error=error,
            ),
            code="state.unwritable",
        ) from error
    try:
        outcomes, cold = _bring_up(layout)
    except (OSError, DatabaseError) as error:
        raise Unavailable(
            said(
                "the index {path} cannot be written: {error}. Make room there.",
                path=path(),
                error=error,
            ),
            code="index.unwritable",
        ) from error
    _report(layout, outcomes, done, cold)
    return {outcome.row.name: outcome for outcome in outcomes}


def _bring_up(layout: Layout) -> tuple[list[Outcome], bool]:
    follow(identity())
    if identity() is None:
        return build.build(), True
    try:
        return _refresh_changed(layout), False
    except DatabaseError as error:
        # Nothing of its own is lost with it: the files are the truth.
        log.warning("the index %s is rebuilt: %s", path(), error)
        return build.build(), True


def _refresh_changed(layout: Layout) -> list[Outcome]:
    rows = SourceFile.objects.in_bulk()
    todo = [
        source
        for source in all_sources()
        if _changed(source, rows.get(source.name), fingerprint(source.path(layout)))
    ]
    trail = journal.get_journal()
    seen = fingerprint(trail.path(layout))
    row = rows.get(trail.name)
    if not todo and same(row, seen):
        return []
    with writable(), transaction.atomic():
        # A write first: it takes SQLite's lock and waits for it, a read would not.
        SourceFile.objects.filter(name="").update(offset=0)
        outcomes = [refresh(source, layout, rows.get(source.name)) for source in todo]
        if not same(row, seen):
            fresh = journal.refresh(
                layout,
                row or SourceFile(name=trail.name, path=str(trail.path(layout))),
                seen,
            )
            stamp(fresh, seen, "")
            fresh.save()
    return outcomes


def _changed(source: Source, row: SourceFile | None, seen: Fingerprint | None) -> bool:
    if row is None or not same(row, seen):
        return True
    if seen is None or not seen.racy(row.indexed_ns):
        return False
    if _digest(source, settings.IPXE_LAYOUT) != row.sha256:
        return True
    if not seen.racy(time.time_ns()):
        with writable():
            SourceFile.objects.filter(pk=row.pk).update(indexed_ns=time.time_ns())
    return False


def _report(
    layout: Layout,
    outcomes: list[Outcome],
    done: intents.Recovered | None,
    cold: bool,
) -> None:
    """Write down edits that were not ours and files that broke."""
    ours = {str(file): sha for file, sha in done.written.items()} if done else {}
    lines: list[dict[str, Any]] = []
    for outcome in outcomes:
        row = outcome.row
        if outcome.newly_broken is not None:
            fault = outcome.newly_broken
            lines.append(
                journal.entry(
                    SYSTEM,
                    "file.broken",
                    "failed",
                    {"file": row.path, "error": fault.where(), "line": fault.line},
                )
            )
            continue
        edited = bool(outcome.changed or outcome.gone or outcome.mended)
        if edited and not cold and ours.get(row.path) != row.sha256:
            lines.append(_edit_line(layout, outcome))
    for file in done.left if done else []:
        fields = {
            "file": str(file),
            "error": "edited by hand while a write of ours was unfinished: the file was left as it is, "
            f"our content lies in {intents.unfinished_name(file).name} beside it",
            "note": done.note if done else None,
        }
        lines.append(journal.entry(SYSTEM, "external.edit", "failed", fields))
    with _guard:
        lines = _unwritten + lines
        _unwritten.clear()
    if lines:
        try:
            append_locked(layout, lines)
        except (OSError, DatabaseError) as error:
            # Reading goes on; the lines are written when there is room again.
            log.warning("the audit trail cannot be written: %s", error)
            if isinstance(error, OSError):
                with _guard:
                    _unwritten.extend(lines[-_NAMES:])


def _edit_line(layout: Layout, outcome: Outcome) -> dict[str, Any]:
    fields: dict[str, Any] = {"file": outcome.row.path}
    if outcome.changed:
        fields["changed"] = outcome.changed[:_NAMES]
        fields["changed_count"] = len(outcome.changed)
    if outcome.gone:
        fields["gone"] = outcome.gone[:_NAMES]
        fields["gone_count"] = len(outcome.gone)
        # An editor that was open all the time may have saved over a write of ours.
        kept = intents.keep_backup(layout, Path(outcome.row.path))
        fields["kept"] = str(kept) if kept else None
    if outcome.mended:
        fields["mended"] = True
    return journal.entry(SYSTEM, "external.edit", "ok", fields)


def append_locked(
    layout: Layout, entries: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """Number audit lines, append them to the file and index them. The caller holds the lock."""
    numbered = journal.number(layout, entries)
    trail = journal.get_journal()
    file = trail.path(layout)
    jsonl.append(file, b"".join(jsonl.encode(line) for line in numbered))
    with writable(), transaction.atomic():
        SourceFile.objects.filter(name="").update(offset=0)
        row = SourceFile.objects.filter(pk=trail.name).first() or SourceFile(
            name=trail.name, path=str(file)
        )
        seen = fingerprint(file)
        fresh = journal.refresh(layout, row, seen)
        stamp(fresh, seen, "")
        fresh.save()
    return numbered


def rebuild() -> None:
    """Make the index anew, whatever it says of itself; waits for the lock."""
    with lock().held("rebuild of the index", WAIT):
        follow(identity())
        build.build()
        with _guard:
            _seen.clear()
