"""All or nothing over several files: the new contents are durable in an intent before the first file is touched.

`state/.intent/` holds the contents and, written last, `intent.json`. Whoever takes the lock and finds that manifest
finishes the write, unless a file has been edited by hand since: then it is left as it is and reported. Afterwards the
contents become `state/backup/<name>`, the last content that we wrote of each file.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ipxeready.storage import atomic, faults, jsonl
from ipxeready.storage.paths import Layout

_MANIFEST = "intent.json"


def sha(content: bytes) -> str:
    """The digest by which a content is known again."""
    return hashlib.sha256(content).hexdigest()


@dataclass(frozen=True)
class Change:
    """One file of a write. `before` None: the file is not there yet; `in_place`: its inode must live."""

    path: Path
    before: bytes | None
    after: bytes
    mode: int
    in_place: bool = False


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

    The caller holds the state lock. Raises OSError when nothing could be written. `finish` ends it.
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
        for tmp in prepared:
            if tmp is not None:
                tmp.unlink(missing_ok=True)
        clear(layout)
        raise
    faults.reach("declared")
    done: list[Change] = []
    try:
        for change, tmp in zip(changes, prepared, strict=True):
            done.append(change)
            _apply(change, tmp)
            faults.reach("file")
        if log_lines:
            jsonl.append(layout.operations, log_lines)
    except BaseException:
        _take_back(layout, done, prepared)
        raise
    faults.reach("logged")


def _write_intent(
    layout: Layout, changes: list[Change], log_lines: bytes, note: str
) -> None:
    layout.intents.mkdir(mode=0o700, parents=True, exist_ok=True)
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
                "after": sha(change.after),
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
    for tmp in prepared:
        if tmp is not None:
            tmp.unlink(missing_ok=True)
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


def recover(layout: Layout) -> Recovered | None:
    """Finish what a crash left; None when there was nothing. The caller holds the state lock."""
    manifest = layout.intents / _MANIFEST
    try:
        data = json.loads(manifest.read_bytes())
    except FileNotFoundError:
        return None
    found = Recovered(note=data.get("note", ""))
    backups: list[tuple[Path, Path]] = []
    for number, item in enumerate(data["files"]):
        path = Path(item["path"])
        content_file = layout.intents / f"content-{number}"
        after = content_file.read_bytes()
        now = path.read_bytes() if path.exists() else None
        if now is not None and sha(now) == item["after"]:
            pass
        elif _ours(now, item, layout.intents / f"before-{number}", after):
            if item["in_place"]:
                atomic.write_in_place(path, after, item["mode"])
            else:
                atomic.write_replace(path, after, item["mode"])
        else:
            found.left.append(path)
            aside = path.with_name(f"{path.name}.unfinished")
            atomic.write_new(aside, after, 0o600)
            continue
        found.written[path] = item["after"]
        backups.append((content_file, layout.backup / path.name))
    _recover_log(layout)
    manifest.unlink()
    layout.backup.mkdir(mode=0o700, exist_ok=True)
    for content_file, backup in backups:
        content_file.replace(backup)
    clear(layout)
    return found


def _ours(now: bytes | None, item: dict[str, Any], old: Path, after: bytes) -> bool:
    """Whether the file is still as before the write, or torn by it."""
    if now is None:
        return item["before"] is None
    if sha(now) == item["before"]:
        return True
    if not item["in_place"]:
        return False
    before = old.read_bytes() if old.exists() else b""
    same = next(
        (at for at, (a, b) in enumerate(zip(now, after, strict=False)) if a != b),
        min(len(now), len(after)),
    )
    return now[same:] == before[same : len(now)] and len(now) <= max(
        len(before), len(after)
    )


def _recover_log(layout: Layout) -> None:
    lines = (layout.intents / "log").read_bytes()
    known = jsonl.last_id(layout.operations)
    missing = b""
    for raw in lines.splitlines(keepends=True):
        line = jsonl.parse(raw, 0, 0)
        if line.data is not None and line.data.get("id", 0) > known:
            missing += raw
    if missing:
        jsonl.append(layout.operations, missing)


def remove_leftovers(layout: Layout) -> None:
    """Remove temporary files of writers that no longer live. The caller holds the state lock."""
    for folder in (layout.state, layout.config):
        for path in folder.glob(".*.tmp"):
            pid = path.name.rsplit(".", 2)[-2]
            if pid.isdigit() and int(pid) != os.getpid() and not _alive(int(pid)):
                path.unlink(missing_ok=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
