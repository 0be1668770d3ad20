"""What is remembered of an unfinished upload: two hidden files in the image directory, the data and a note beside it."""

from __future__ import annotations

import errno
import json
import os
import re
import secrets
import stat
from dataclasses import asdict, dataclass
from datetime import datetime

from agents.node.errors import NoRoom
from agents.node.parts import FULL, PART
from agents.protocol.answers import Upload
from agents.protocol.filenames import check_sha256, check_upload
from ipxeready.errors import ApplicationError, Unavailable
from ipxeready.said import said

ID = re.compile(r"[0-9a-f]{16}")
#: The name of an upload's data; its group is the upload's id.
DATA = re.compile(r"\.([0-9a-f]{16})\.upload")
_MODE = 0o600


@dataclass(frozen=True)
class Note:
    """What is remembered of an upload."""

    name: str
    size: int | None
    offset: int
    sha256: str | None
    created: str
    changed: str


def data_name(upload_id: str) -> str:
    """The name of its data in the image directory."""
    return f".{upload_id}.upload"


def note_name(upload_id: str) -> str:
    """The name of its note in the image directory."""
    return f".{upload_id}.upload.json"


def open_data(folder: int, upload_id: str, flags: int = 0) -> int:
    """A descriptor of its data, for reading and writing; OSError where there is none."""
    flags |= os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(data_name(upload_id), flags, _MODE, dir_fd=folder)


def read_note(folder: int, upload_id: str) -> Note | None:
    """The note, None where there is none (or none that we wrote)."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        file = os.open(note_name(upload_id), flags, dir_fd=folder)
        try:
            if not stat.S_ISREG(os.fstat(file).st_mode):
                return None
            with os.fdopen(os.dup(file), "rb") as stream:
                note = Note(**json.loads(stream.read()))
        finally:
            os.close(file)
        check_upload(note.name)
        if note.sha256 is not None:
            check_sha256(note.sha256)
    except (OSError, ValueError, TypeError, RecursionError, ApplicationError):
        return None
    sound = type(note.offset) is int and note.offset >= 0
    sound = sound and (note.size is None or type(note.size) is int)
    sound = sound and isinstance(note.created, str) and isinstance(note.changed, str)
    return note if sound else None


def shown(upload_id: str, note: Note) -> Upload:
    """An upload as the API tells it."""
    return {
        "id": upload_id,
        "name": note.name,
        "size": note.size,
        "offset": note.offset,
        "sha256": note.sha256,
        "created": note.created,
        "changed": note.changed,
    }


def is_named(folder: int, name: str, file: int) -> bool:
    """Whether the data has its final name already."""
    try:
        there = os.stat(name, dir_fd=folder, follow_symlinks=False)
    except OSError:
        return False
    mine = os.fstat(file)
    return (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino)


def age(note: Note) -> float:
    """Seconds since its last byte; 0 where the note does not say a time."""
    try:
        return (
            datetime.now().astimezone() - datetime.fromisoformat(note.changed)
        ).total_seconds()
    except (ValueError, TypeError):
        return 0.0


def unlink(folder: int, name: str) -> None:
    """Remove a file, or find it gone; Unavailable where it stays."""
    try:
        os.unlink(name, dir_fd=folder)
    except OSError as error:
        if error.errno != errno.ENOENT:
            raise Unavailable(
                said(
                    "{name} could not be deleted ({why}). Look at the node's disk.",
                    name=name,
                    why=error.strerror,
                ),
                code="file.delete",
            ) from error


def write_note(folder: int, upload_id: str, note: Note) -> None:
    """Replace the note, durably; NoRoom or Unavailable where it cannot be."""
    draft = f"{note_name(upload_id)}.{secrets.token_hex(4)}{PART}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    try:
        file = os.open(draft, flags, _MODE, dir_fd=folder)
        try:
            with os.fdopen(file, "wb") as stream:
                stream.write(json.dumps(asdict(note)).encode() + b"\n")
                stream.flush()
                os.fsync(stream.fileno())
            os.rename(draft, note_name(upload_id), src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            unlink(folder, draft)
            raise
        os.fsync(folder)
    except OSError as error:
        raise failed(error, note.name, 0) from error


def failed(error: OSError, name: str, needed: int) -> ApplicationError:
    """What to say of a write that failed; `needed` in bytes."""
    if error.errno in FULL:
        return NoRoom(
            said(
                "no room for {name}: the disk is full. What has come stays; free some space and go "
                "on, or delete the upload.",
                name=name,
            ),
            extra={"needed": needed},
        )
    return Unavailable(
        said(
            "{name} could not be written: {why}. Look at the node's disk.",
            name=name,
            why=error.strerror,
        ),
        code="file.write",
    )


def now() -> str:
    """The time of a note: ISO 8601 with offset, to the second."""
    return datetime.now().astimezone().isoformat(timespec="seconds")
