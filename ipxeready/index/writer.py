"""The one way to change a ledger: `with writing(...) as tx`. Lock, refresh, decide, files and index and audit together, release."""

from __future__ import annotations

import copy
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import DatabaseError, connection, transaction

from ipxeready.actors import Actor
from ipxeready.errors import Invalid, Unavailable
from ipxeready.index import freshness, journal
from ipxeready.index.connection import writable
from ipxeready.index.models import SourceFile
from ipxeready.index.refresh import (
    checked_rows,
    cross_check,
    read,
    replace_rows,
    stamp,
)
from ipxeready.index.sources import Source, Text, get_source
from ipxeready.said import said
from ipxeready.storage import faults, intents, jsonl
from ipxeready.storage.broken import FileBroken, RecordBroken
from ipxeready.storage.fingerprint import Fingerprint, fingerprint
from ipxeready.storage.paths import Layout

log = logging.getLogger(__name__)
#: Code of the refusal when a hand edit came between our reading and our writing: the next try sees it.
EDITED_NOW = "state.edited"
_local = threading.local()
#: Parsed texts of the last writes by file, good while fingerprint and digest stand. Used under the state lock only.
_texts: dict[tuple[str, str], tuple[Fingerprint, str, bytes, Text]] = {}


class Draft:
    """One file under change inside a transaction; each change is in the index at once."""

    def __init__(
        self, source: Source, text: Any, before: bytes, seen: Fingerprint | None
    ) -> None:
        self.source = source
        self.text = text
        self.before = before
        self.seen = seen
        self.dirty = False
        self._later: list[str] | None = None

    def get(self, key: str) -> Any:
        """A copy of the record `key` as in the file, None when absent; Unavailable when it is broken."""
        try:
            return copy.deepcopy(self.text.value(key))
        except (RecordBroken, FileBroken) as error:
            raise Unavailable(
                said(
                    "{file}: {error} (line {line}); mend the file first",
                    file=self.source.name,
                    error=error.message,
                    line=error.line,
                ),
                code="state.invalid",
            ) from None

    def put(self, key: str, value: Any) -> None:
        """Make the record say `value`; Invalid when it does not validate, Unavailable when it cannot be edited."""
        self.put_many({key: value})

    def put_many(self, records: Mapping[str, Any]) -> None:
        """The same for many records, all or none, with one look at the index."""
        for key in records:
            self._quarantined(key)
        before = self.text.snapshot()
        try:
            for key, value in records.items():
                self.text.put(key, value)
            self.sync(list(records))
        except RecordBroken as error:
            self.text.restore(before)
            raise Unavailable(error.message, code="state.uneditable") from None
        except Invalid:
            # A batch goes on with its next item: what was refused must not stay in the text.
            self.text.restore(before)
            raise

    def remove(self, key: str) -> bool:
        """Take the record out; False when it is not there."""
        try:
            if not self.text.remove(key):
                return False
        except RecordBroken as error:
            raise Unavailable(error.message, code="state.uneditable") from None
        self.sync([key])
        return True

    def remove_many(self, keys: list[str]) -> None:
        """Take many records out, indexed together."""
        gone = [key for key in keys if self.text.remove(key)]
        if gone:
            self.sync(gone)

    @contextmanager
    def together(self) -> Iterator[None]:
        """Index what changes in this block at its end, all at once: selectors do not see it before."""
        self._later = []
        try:
            yield
        finally:
            keys, self._later = list(dict.fromkeys(self._later)), None
        if keys:
            self.sync(keys)

    def _quarantined(self, key: str) -> None:
        try:
            if self.text.value(key) is not None:
                self.source.rows(self.text, key)
        except RecordBroken as error:
            raise Unavailable(
                said(
                    "{file}: {error}; mend this record in the file first",
                    file=self.source.name,
                    error=error.message,
                ),
                code="state.invalid",
            ) from None

    def sync(self, keys: list[str]) -> None:
        """Index the named records as they are in the draft."""
        self.dirty = True
        if self._later is not None:
            self._later.extend(keys)
            return
        entries = self.text.entries_of(keys)
        changed = [key for key in keys if key in entries]
        for key in changed:
            try:
                checked_rows(self.source, self.text, key)
            except RecordBroken as error:
                raise Invalid(error.message) from None
        with writable():
            replace_rows(
                self.source,
                self.text,
                changed,
                [key for key in keys if key not in entries],
                entries,
            )


class Transaction:
    """What a service sees inside `writing()`."""

    def __init__(self, actor: Actor, op: str) -> None:
        self.actor = actor
        self.op = op
        self._drafts: dict[str, Draft] = {}
        self._log: list[dict[str, Any]] = []
        self._callbacks: list[Callable[[], None]] = []
        #: The files are written: whatever happens now, the operation has succeeded.
        self.committed = False

    def draft(self, name: str) -> Draft:
        """The file `name` under change; Unavailable when it is broken."""
        if name not in self._drafts:
            self._drafts[name] = self._open(get_source(name))
        return self._drafts[name]

    #: The same by the kind of file, for reading services aloud.
    yaml = draft
    json = draft

    @property
    def hosts(self) -> Any:
        """dhcp-hosts.conf under change (its source gives the verbs)."""
        draft = self.draft("hosts")
        return draft.source.editor(draft)  # type: ignore[attr-defined]

    def _open(self, source: Source) -> Draft:
        layout: Layout = settings.IPXE_LAYOUT
        row = SourceFile.objects.filter(pk=source.name).first()
        path = source.path(layout)
        if row is not None and row.error:
            fault = FileBroken(row.error, row.error_line, row.error_column)
            raise Unavailable(
                said(
                    "{path} is broken and takes no writes until it is mended: {fault}",
                    path=path,
                    fault=fault.where(),
                ),
                code="state.invalid",
            )
        cached = _texts.pop((source.name, str(path)), None)
        seen = fingerprint(path)
        known = row.sha256 if row is not None else ""
        if cached is not None and cached[:2] == (seen, known):
            return Draft(source, cached[3], cached[2], seen)
        content, seen, fault_now = read(source, layout)
        if content is None or fault_now is not None:
            words = fault_now.where() if fault_now else "it is gone"
            raise Unavailable(
                said("{path} takes no writes: {words}", path=path, words=words),
                code="state.invalid",
            )
        if intents.sha(content) != known:
            raise _edited_now(path)
        return Draft(source, source.open(content), content, seen)

    def log(self, *, op: str | None = None, status: str = "ok", **fields: Any) -> None:
        """Write an audit line with this commit."""
        self._log.append(journal.entry(self.actor, op or self.op, status, fields))

    def on_commit(self, callback: Callable[[], None]) -> None:
        """Call this once the write is done and the lock is released."""
        if callback not in self._callbacks:
            self._callbacks.append(callback)

    @property
    def callbacks(self) -> tuple[Callable[[], None], ...]:
        """What will be called after the release."""
        return tuple(self._callbacks)

    @contextmanager
    def savepoint(self) -> Iterator[None]:
        """One item of many: on an error all of it is taken back, the others stay."""
        before = {name: draft.text.snapshot() for name, draft in self._drafts.items()}
        lines, calls = len(self._log), len(self._callbacks)
        try:
            with transaction.atomic():
                yield
        except BaseException:
            for name, draft in list(self._drafts.items()):
                if name in before:
                    draft.text.restore(before[name])
                else:
                    del self._drafts[name]
            del self._log[lines:]
            del self._callbacks[calls:]
            raise

    # --- commit ------------------------------------------------------------
    def _commit(self) -> list[intents.Change]:
        layout: Layout = settings.IPXE_LAYOUT
        changes: list[intents.Change] = []
        dirty: list[Draft] = []
        for draft in self._drafts.values():
            after = draft.text.render() if draft.dirty else draft.before
            if after == draft.before:
                continue
            source = draft.source
            if fingerprint(source.path(layout)) != draft.seen:
                raise _edited_now(source.path(layout))
            with writable():
                cross_check(source, draft.text)
            dirty.append(draft)
            changes.append(
                intents.Change(
                    source.path(layout),
                    draft.before,
                    after,
                    source.mode,
                    source.in_place,
                )
            )
        numbered = journal.number(layout, self._log) if self._log else []
        lines = b"".join(jsonl.encode(line) for line in numbered)
        try:
            intents.commit(layout, changes, lines, self.op)
        except intents.Edited as error:
            raise _edited_now(error.path) from error
        except OSError as error:
            raise _unwritable(layout, error) from error
        self.committed = True
        for draft, change in zip(dirty, changes, strict=True):
            self._note(draft, change)
        if numbered:
            self._note_log(layout)
        return changes

    def _note(self, draft: Draft, change: intents.Change) -> None:
        seen = fingerprint(change.path)
        row = SourceFile.objects.filter(pk=draft.source.name).first() or SourceFile(
            name=draft.source.name, path=str(change.path)
        )
        sha = change.after_sha
        stamp(row, seen, sha)
        with writable():
            row.save()
        draft.dirty = False
        if seen is not None:
            key = (draft.source.name, str(change.path))
            _texts[key] = (seen, sha, change.after, draft.text)

    def _note_log(self, layout: Layout) -> None:
        trail = journal.get_journal()
        file = trail.path(layout)
        row = SourceFile.objects.filter(pk=trail.name).first() or SourceFile(
            name=trail.name, path=str(file)
        )
        seen = fingerprint(file)
        with writable():
            fresh = journal.refresh(layout, row, seen)
            stamp(fresh, seen, "")
            fresh.save()


def _edited_now(path: Path) -> Unavailable:
    return Unavailable(
        said(
            "{path} was edited by hand this very moment. Nothing was changed; try again.",
            path=path,
        ),
        code=EDITED_NOW,
    )


def _unwritable(layout: Layout, error: OSError) -> Unavailable:
    what = said(
        "writing {file} failed: {error}",
        file=error.filename or layout.state,
        error=error.strerror or error,
    )
    then = said("Make room or mend the permissions")
    if isinstance(error, intents.Unfinished):
        return Unavailable(
            said(
                "{what}, and so did taking it back. {then}: the next request finishes this "
                "write.",
                what=what,
                then=then,
            ),
            code="state.unfinished",
        )
    return Unavailable(
        said(
            "nothing was changed: {what}. {then}, then try again.", what=what, then=then
        ),
        code="state.unwritable",
    )


@contextmanager
def writing(
    *, actor: Actor, op: str, timeout: float = freshness.WAIT
) -> Iterator[Transaction]:
    """The one write: everything inside happens wholly or not at all; re-entrant.

    1. take the lock (Unavailable names the holder after `timeout` seconds), finish what a crash left, refresh
    2. the caller decides and changes drafts; selectors see each change at once
    3. intent, files, audit lines, index; the intent is forgotten
    4. the lock is released, then the `on_commit` callbacks run
    """
    outer: Transaction | None = getattr(_local, "tx", None)
    if outer is not None:
        # The audit names the operation itself, not the page that it was part of.
        around = outer.actor, outer.op
        outer.actor, outer.op = actor, op
        try:
            with outer.savepoint():
                yield outer
        finally:
            outer.actor, outer.op = around
        return
    held = freshness.lock()
    tx = Transaction(actor, op)
    with held.held(op, timeout):
        freshness.refresh_locked()
        changes: list[intents.Change] = []
        _local.tx = tx
        try:
            with transaction.atomic():
                with writable():
                    # A write first: it takes SQLite's lock and waits for it, a read would not.
                    SourceFile.objects.filter(name="").update(offset=0)
                yield tx
                changes = tx._commit()
                faults.reach("indexing")
        except DatabaseError:
            if not tx.committed:
                raise
            # The files are written: the operation has succeeded, the next reader indexes them.
            log.warning(
                "the index could not follow a write; it catches up", exc_info=True
            )
            freshness.forget()
        finally:
            _local.tx = None
        faults.reach("committed")
        try:
            intents.finish(settings.IPXE_LAYOUT, changes)
        except OSError:
            log.warning("the next writer forgets the intent", exc_info=True)
    for callback in tx._callbacks:
        try:
            callback()
        except Exception:
            # The write stands: a failing afterthought must not report it as failed.
            log.exception("after %s", op)


def append_log(*, actor: Actor, op: str, status: str, **fields: Any) -> None:
    """Write an audit line on its own; inside `writing()` it goes with the commit."""
    tx: Transaction | None = getattr(_local, "tx", None)
    if tx is not None:
        tx._log.append(journal.entry(actor, op, status, fields))
        return
    with freshness.lock().held(op):
        freshness.refresh_locked()
        line = journal.entry(actor, op, status, fields)
        try:
            freshness.append_locked(settings.IPXE_LAYOUT, [line])
        except OSError as error:
            raise _unwritable(settings.IPXE_LAYOUT, error) from error


def in_writing() -> bool:
    """Whether the calling thread is inside `writing()`."""
    return connection.in_atomic_block and getattr(_local, "tx", None) is not None
