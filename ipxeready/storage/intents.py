"""All or nothing over several files: the new contents are durable in an intent before the first file is touched.

`state/.intent/` holds the contents and, written last, `intent.json`. Whoever takes the lock and finds that manifest
finishes the write, unless a file has been edited by hand since: then it is left as it is and reported. Afterwards the
contents become `state/backup/<name>`, the last content that we wrote of each file.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from ipxeready.storage import atomic, faults, jsonl
from ipxeready.storage.paths import Layout

_MANIFEST = "intent.json"
#: A write may tear between any two blocks of a file that is written over in place.
_BLOCK = 4096


class Unfinished(OSError):
    """Writing failed, and so did putting the old contents back: the intent stays, the next writer finishes it."""


def sha(content: bytes) -> str:
    """The digest by which a content is known again."""
    return hashlib.sha256(content).hexdigest()


class Edited(Exception):
    """A file was edited by hand between the decision and the write; nothing was changed."""

    def __init__(self, path: Path) -> None:
        super().__init__(f"{path} was edited meanwhile")
        self.path = path


@dataclass(frozen=True)
class Change:
    """One file of a write. `before` None: the file is not there yet; `in_place`: its inode must live."""

    path: Path
    before: bytes | None
    after: bytes
    mode: int
    in_place: bool = False

    @cached_property
    def after_sha(self) -> str:
        """Digest of the new content."""
        return sha(self.after)


@dataclass
class Recovered:
    """What finishing an intent did: digests by path of what was written, and files left alone."""

    written: dict[Path, str] = field(default_factory=dict)
    left: list[Path] = field(default_factory=list)
    note: str = ""


def pending(layout: Layout) -> bool:
    """Whether a crash left an intent behind."""
    return (layout.intents / _MANIFEST).exists()


def commit(layout: Layout, changes: list[Change], log_lines: bytes, note: str) -> None:
    """Write all files and append the audit lines; on an error every file is as it was.

    The caller holds the state lock. Raises OSError when nothing could be written, Edited when a file is no longer
    what the change was made from. `finish` ends it.
    """
    if not changes:
        if log_lines:
            jsonl.append(layout.operations, log_lines)
        return
    prepared: list[Path | None] = []
    try:
        _write_intent(layout, changes, log_lines, note)
        for change in changes:
            prepared.append(
                None
                if change.in_place
                else atomic.prepare(change.path, change.after, change.mode)
            )
        faults.reach("prepared")
        _declare(layout)
    except BaseException:
        _remove(prepared)
        clear(layout)
        raise
    faults.reach("declared")
    done: list[Change] = []
    try:
        # Making all that durable took its time, in which somebody may have saved a file.
        for change in changes:
            _refuse_edited(change)
        for change, tmp in zip(changes, prepared, strict=True):
            _refuse_edited(change)
            done.append(change)
            _apply(change, tmp)
            faults.reach("file")
        if log_lines:
            jsonl.append(layout.operations, log_lines)
    except BaseException as error:
        try:
            _take_back(layout, done, prepared)
        except OSError as again:
            raise Unfinished(again.errno, again.strerror, again.filename) from error
        raise
    faults.reach("logged")


def _remove(prepared: list[Path | None]) -> None:
    for tmp in prepared:
        if tmp is not None:
            with suppress(OSError):
                tmp.unlink(missing_ok=True)


def _write_intent(
    layout: Layout, changes: list[Change], log_lines: bytes, note: str
) -> None:
    if not layout.intents.is_dir():
        layout.intents.mkdir(mode=0o700, parents=True)
        atomic.fsync_folder(layout.intents.parent)
    files: list[dict[str, Any]] = []
    for number, change in enumerate(changes):
        atomic.write_new(layout.intents / f"content-{number}", change.after, 0o600)
        if change.in_place and change.before is not None:
            # A torn in-place write can only be told from a hand edit with the old bytes.
            atomic.write_new(layout.intents / f"before-{number}", change.before, 0o600)
        files.append(
            {
                "path": str(change.path),
                "before": None if change.before is None else sha(change.before),
                "after": change.after_sha,
                "mode": change.mode,
                "in_place": change.in_place,
            }
        )
    atomic.write_new(layout.intents / "log", log_lines, 0o600)
    manifest = json.dumps({"note": note, "files": files}, indent=1).encode()
    atomic.write_new(layout.intents / (_MANIFEST + ".new"), manifest, 0o600)


def _declare(layout: Layout) -> None:
    """The point from which the write will happen, whatever dies."""
    (layout.intents / (_MANIFEST + ".new")).replace(layout.intents / _MANIFEST)
    atomic.fsync_folder(layout.intents)


def _refuse_edited(change: Change) -> None:
    try:
        now = change.path.read_bytes()
    except FileNotFoundError:
        now = None
    if now != change.before:
        raise Edited(change.path)


def _apply(change: Change, tmp: Path | None) -> None:
    if tmp is None:
        atomic.write_in_place(change.path, change.after, change.mode)
    else:
        atomic.replace(tmp, change.path)


def _take_back(layout: Layout, done: list[Change], prepared: list[Path | None]) -> None:
    """Put the old contents back; where even that fails the intent stays, to be finished later."""
    for change in done:
        if change.before is None:
            change.path.unlink(missing_ok=True)
        elif change.in_place:
            atomic.write_in_place(change.path, change.before, change.mode)
        elif change.path.read_bytes() != change.before:
            atomic.write_replace(change.path, change.before, change.mode)
    _remove(prepared)
    clear(layout)


def clear(layout: Layout) -> None:
    """Remove an intent and what belongs to it, the manifest first."""
    (layout.intents / _MANIFEST).unlink(missing_ok=True)
    if layout.intents.is_dir():
        for path in layout.intents.iterdir():
            path.unlink(missing_ok=True)


def finish(layout: Layout, changes: list[Change]) -> None:
    """All is written and indexed: keep the contents as backups, forget the intent."""
    if not changes:
        return
    (layout.intents / _MANIFEST).unlink(missing_ok=True)
    layout.backup.mkdir(mode=0o700, exist_ok=True)
    for number, change in enumerate(changes):
        content = layout.intents / f"content-{number}"
        if content.exists():
            content.replace(layout.backup / change.path.name)
    clear(layout)


def recover(layout: Layout) -> Recovered | None:
    """Finish what a crash left; None when there was nothing. The caller holds the state lock."""
    manifest = layout.intents / _MANIFEST
    try:
        data = json.loads(manifest.read_bytes())
        files = [(Path(item["path"]), item) for item in data["files"]]
    except FileNotFoundError:
        _forget_unfinished(layout)
        return None
    except (ValueError, LookupError, TypeError):
        # Not of our making: we rename it into place whole. It must not stop every writer for ever.
        manifest.replace(layout.state / "intent.damaged")
        clear(layout)
        return Recovered(note="damaged", left=[layout.state / "intent.damaged"])
    found = Recovered(note=str(data.get("note", "")))
    backups: list[tuple[Path, Path]] = []
    for number, (path, item) in enumerate(files):
        content_file = layout.intents / f"content-{number}"
        after = content_file.read_bytes()
        before = layout.intents / f"before-{number}"
        if not _carry_out(path, item, before, after):
            found.left.append(path)
            atomic.write_new(unfinished_name(path), after, 0o600)
            continue
        found.written[path] = item["after"]
        backups.append((content_file, layout.backup / path.name))
    _recover_log(layout)
    manifest.unlink()
    layout.backup.mkdir(mode=0o700, exist_ok=True)
    for content_file, backup in backups:
        content_file.replace(backup)
    clear(layout)
    remove_leftovers(layout, [path for path, _ in files])
    return found


def keep_backup(layout: Layout, path: Path) -> Path | None:
    """Set our last content of `path` aside before the next write takes its place; None when there is none."""
    backup = layout.backup / path.name
    try:
        content = backup.read_bytes()
        kept = backup.with_name(f"{path.name}.before-edit")
        atomic.write_new(kept, content, 0o600)
    except OSError:
        return None
    return kept


def unfinished_name(path: Path) -> Path:
    """Where the content of an unfinished write is kept when its file was edited by hand."""
    return path.with_name(f"{path.name}.unfinished")


def _forget_unfinished(layout: Layout) -> None:
    """Remove what a writer left that died before it declared its intent."""
    try:
        left = any(layout.intents.iterdir())
    except FileNotFoundError:
        return
    if left:
        remove_leftovers(layout)
        clear(layout)


def _carry_out(path: Path, item: dict[str, Any], old: Path, after: bytes) -> bool:
    """Make the file at `path` new; False when somebody has edited it since."""
    try:
        now = path.read_bytes()
    except FileNotFoundError:
        now = None
    if now is not None and sha(now) == item["after"]:
        return True
    before = old.read_bytes() if item["in_place"] and old.exists() else None
    if now is None:
        ours = item["before"] is None
    else:
        ours = sha(now) == item["before"] or (
            before is not None and _torn(now, before, after)
        )
    if ours and item["in_place"]:
        atomic.write_in_place(path, after, item["mode"])
    elif ours:
        atomic.write_replace(path, after, item["mode"])
    return ours


def _torn(now: bytes, before: bytes, after: bytes) -> bool:
    """Whether `now` is `before` written over with `after` up to somewhere: block by block the one or the other."""
    longer = len(now) > len(before)
    if len(now) != max(len(before), len(after)) and not (
        longer and len(now) < len(after)
    ):
        return False
    for at in range(0, len(now), _BLOCK):
        block = now[at : at + _BLOCK]
        old, new = before[at : at + _BLOCK], after[at : at + _BLOCK]
        if block not in (old, new) and not _mixed(block, old, new):
            return False
    return True


def _mixed(block: bytes, old: bytes, new: bytes) -> bool:
    same = next(
        (at for at, (a, b) in enumerate(zip(block, new, strict=False)) if a != b),
        min(len(block), len(new)),
    )
    return block[same:] == old[same : len(block)] and (
        same == len(block) or len(block) == len(old)
    )


def _recover_log(layout: Layout) -> None:
    lines = (layout.intents / "log").read_bytes()
    known = jsonl.last_id(layout.operations)
    missing = b""
    for raw in lines.splitlines(keepends=True):
        line = jsonl.parse(raw, 0, 0)
        if line.data is not None and (jsonl.identifier(line.data) or 0) > known:
            missing += raw
    if missing:
        jsonl.append(layout.operations, missing)


_LEFTOVER = re.compile(r"\..+\.[0-9]+\.tmp")
#: A start's own drafts are made without the lock.
_DRAFT = re.compile(r"\..+\.[0-9]+\.[0-9a-f]{8}\.tmp")


def remove_leftovers(layout: Layout, files: Sequence[Path] = ()) -> None:
    """Remove what dead writers had prepared. The caller holds the state lock: no writer has any now."""
    folders = {layout.state, layout.config, *(path.resolve().parent for path in files)}
    for folder in folders:
        for path in folder.glob(".*.tmp"):
            if _LEFTOVER.fullmatch(path.name) and not _DRAFT.fullmatch(path.name):
                path.unlink(missing_ok=True)
