"""Uploads into the image directory: hidden until they are whole and verified, continued where they stopped, gone after a week.

Each is two hidden files, the data and a note. The note's offset is written after the data is on the disk: what it says is there survives a kill
and a power cut. Both have a name of their own kind, so that neither a start nor a scan takes them for anything else.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

from agents.node import pieces
from agents.node.folder import names_in
from agents.node.images import Images
from agents.node.jobs import Step
from agents.node.uploadnotes import (
    DATA,
    ID,
    Note,
    age,
    data_name,
    failed,
    is_named,
    note_name,
    now,
    open_data,
    read_note,
    shown,
    unlink,
    write_note,
)
from agents.protocol.answers import Upload, Uploaded
from agents.protocol.filenames import (
    KIND_DISK,
    KIND_MASTER,
    check_sha256,
    check_upload,
    kind_of,
)
from agents.protocol.limits import MAX_PIECE
from ipxeready.errors import ApplicationError, Conflict, Invalid, NotFound, Unavailable
from ipxeready.said import said
from ipxeready.storage import iqn as iqns
from ipxeready.storage.sizes import MAX_SIZE, SECTOR, format_size

#: An upload that gets no byte for so long (seconds) has been given up.
EXPIRES = 7 * 24 * 3600
#: Enough for everybody who uploads by hand; each is a row of the list.
MAX_UPLOADS = 100
_READ = 4 << 20


class Uploads:
    """The unfinished uploads of one image directory. Each file's writer is told by a flock that dies with it."""

    def __init__(self, images: Images) -> None:
        self._images = images

    # -- asking ------------------------------------------------------------

    def all(self) -> list[Upload]:
        """Every unfinished upload, oldest first."""
        found = []
        with self._images.handle() as folder:
            for name in names_in(folder):
                if match := DATA.fullmatch(name):
                    note = read_note(folder, match[1])
                    if note is not None:
                        found.append(shown(match[1], note))
        return sorted(found, key=lambda upload: (upload["created"], upload["id"]))

    def get(self, upload_id: str) -> Upload:
        """One of them, or NotFound."""
        with self._images.handle() as folder:
            return shown(upload_id, self._note(folder, upload_id))

    # -- changing ------------------------------------------------------------

    def create(
        self, name: str, *, size: int | None = None, sha256: str | None = None
    ) -> Upload:
        """Begin one. The caller holds the node's lock.

        Without `size` it is as long as what has come when it is finished.
        """
        check_upload(name)
        if size is not None:
            _check_size(name, size)
        digest = None if sha256 is None else check_sha256(sha256)
        self._refuse_taken(name)
        self._images.check_room(name, size or 0)
        upload_id, stamp = secrets.token_hex(8), now()
        note = Note(name, size, 0, digest, stamp, stamp)
        with self._images.handle() as folder:
            # The note first: data without a note is what `clean` removes.
            write_note(folder, upload_id, note)
            try:
                os.close(open_data(folder, upload_id, os.O_CREAT | os.O_EXCL))
                os.fsync(folder)
            except OSError as error:
                unlink(folder, note_name(upload_id))
                raise failed(error, name, 0) from error
        return shown(upload_id, note)

    def write(
        self, upload_id: str, offset: int, length: int, read: Callable[[int], bytes]
    ) -> Upload:
        """Take `length` bytes from `read` at `offset`; what has come counts even when the sender goes away or the disk is full."""
        with self._images.handle() as folder, self._held(folder, upload_id) as file:
            note = self._note(folder, upload_id)
            if offset != note.offset:
                raise Conflict(
                    said(
                        "upload {upload_id} of {name} is at {offset}, not at {wanted}; go on from there.",
                        upload_id=upload_id,
                        name=note.name,
                        offset=note.offset,
                        wanted=offset,
                    ),
                    code="upload.offset",
                    extra={"offset": note.offset},
                )
            if length > MAX_PIECE:
                raise Invalid(
                    said(
                        "a piece has at most {most} bytes ({mib}), this one {length}; send several.",
                        most=MAX_PIECE,
                        mib=format_size(MAX_PIECE),
                        length=length,
                    )
                )
            end = MAX_SIZE if note.size is None else note.size
            if offset + length > end:
                raise Invalid(
                    said(
                        "{name} has {end} bytes by what was said at the beginning; this piece would end at "
                        "{ends}.",
                        name=note.name,
                        end=end,
                        ends=offset + length,
                    ),
                    code="upload.size",
                )
            self._images.check_room(note.name, length)
            at, full = pieces.take(read, file, offset, length)
            changed = replace(note, offset=at, changed=now())
            write_note(folder, upload_id, changed)
            if full is not None:
                raise failed(full, note.name, offset + length - at)
            if at < offset + length:
                raise Invalid(
                    said(
                        "the connection ended after {there} of {length} bytes; go on at offset {at}.",
                        there=at - offset,
                        length=length,
                        at=at,
                    ),
                    code="upload.cut",
                )
            return shown(upload_id, changed)

    def finish(
        self,
        upload_id: str,
        *,
        sha256: str | None = None,
        name: str | None = None,
        step: Step | None = None,
    ) -> Uploaded:
        """Verify length and checksum, then give the file its name, unless that is taken. `name` replaces the one of the beginning.

        The file is read once from the disk for its checksum, as it is there; what is refused can be mended and finished again.
        """
        step, began = step or Step(), time.monotonic()
        with self._images.handle() as folder, self._held(folder, upload_id) as file:
            note = self._note(folder, upload_id)
            final = note.name if name is None else check_upload(name)
            size = note.offset if note.size is None else note.size
            if note.offset != size:
                raise Conflict(
                    said(
                        "upload {upload_id} of {final} is not whole: {offset} of {size} bytes are there; "
                        "send the rest.",
                        upload_id=upload_id,
                        final=final,
                        offset=note.offset,
                        size=size,
                    ),
                    code="upload.short",
                    extra={"offset": note.offset},
                )
            _check_size(final, size)
            if os.fstat(file).st_size != size:
                os.ftruncate(file, size)  # a kill after a piece that was not noted
            # What is said now replaces what was said at the beginning, which may have been a slip.
            expected = check_sha256(sha256) if sha256 else note.sha256
            step.turn(size)
            digest = _digest(file, size, step)
            if expected not in (None, digest):
                # Begins with WRONG_CHECKSUM. The advice first, and short: the control plane hands on no more than
                # 200 characters.
                raise Conflict(
                    said(
                        "wrong checksum: delete the upload and send the file again, or finish it with the "
                        "right one. {name} has {digest}..., not the expected {expected}...",
                        name=final[:40],
                        digest=digest[:12],
                        expected=str(expected)[:12],
                    ),
                    code="upload.checksum",
                    extra={"sha256": digest},
                )
            if (clash := self._images.find(final)) is not None:
                raise _taken(clash.name)
            self._name(folder, upload_id, file, replace(note, name=final))
            allocated = os.fstat(file).st_blocks * 512
        return {
            "name": final,
            "size": size,
            "sha256": digest,
            "seconds": round(time.monotonic() - began, 3),
            "bytes": allocated,
        }

    def delete(self, upload_id: str) -> Upload:
        """Give one up."""
        with self._images.handle() as folder, self._held(folder, upload_id):
            note = self._note(folder, upload_id)
            self._remove(folder, upload_id)
            return shown(upload_id, note)

    def clean(self) -> list[str]:
        """Remove what has expired, and what a kill left half begun or half ended; the names of the files given up.

        One that was killed between its name and its end is finished: its data has two names then.
        """
        gone = []
        with self._images.handle() as folder:
            for each in names_in(folder):
                match = DATA.fullmatch(each)
                if match is None:
                    self._clean_note(folder, each)
                    continue
                with (
                    contextlib.suppress(ApplicationError),
                    self._held(folder, match[1]) as file,
                ):
                    note = read_note(folder, match[1])
                    if note is None or is_named(folder, note.name, file):
                        self._remove(folder, match[1])
                    elif age(note) > EXPIRES:
                        self._remove(folder, match[1])
                        gone.append(note.name)
        return gone

    # -- inside --------------------------------------------------------------

    def _refuse_taken(self, name: str) -> None:
        if (clash := self._images.find(name)) is not None:
            raise _taken(clash.name)
        unfinished = self.all()
        for upload in unfinished:
            if upload["name"].lower() == name.lower():
                raise Conflict(
                    said(
                        "{name} is being uploaded already (upload {upload}, {there} bytes are there); go on "
                        "with that one, or delete it.",
                        name=upload["name"],
                        upload=upload["id"],
                        there=upload["offset"],
                    ),
                    code="upload.exists",
                    extra={"upload": upload},
                )
        if len(unfinished) >= MAX_UPLOADS:
            raise Conflict(
                said(
                    "there are {count} unfinished uploads already; finish or delete some.",
                    count=len(unfinished),
                ),
                code="upload.many",
            )

    def _note(self, folder: int, upload_id: str) -> Note:
        note = read_note(folder, upload_id) if ID.fullmatch(upload_id) else None
        if note is None:
            raise NotFound(
                said(
                    "there is no upload {upload_id}; it may be finished, deleted or older than a week.",
                    upload_id=repr(upload_id[:40]),
                ),
                code="upload.missing",
            )
        return note

    @contextlib.contextmanager
    def _held(self, folder: int, upload_id: str) -> Iterator[int]:
        """The data's open file, ours alone for the length of the block."""
        if not ID.fullmatch(upload_id):
            self._note(folder, upload_id)
        try:
            file = open_data(folder, upload_id)
        except OSError as error:
            raise NotFound(
                said(
                    "there is no upload {upload_id}; it may be finished, deleted or older than a week.",
                    upload_id=upload_id,
                ),
                code="upload.missing",
            ) from error
        try:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise Conflict(
                    said(
                        "another call is working on upload {upload_id}; wait for it, then ask where it is.",
                        upload_id=upload_id,
                    ),
                    code="upload.busy",
                ) from error
            if not os.fstat(file).st_nlink:  # deleted between our open and our lock
                self._note(folder, "")
            yield file
        finally:
            os.close(file)

    def _name(self, folder: int, upload_id: str, file: int, note: Note) -> None:
        """Give the data its name, durably; the hidden name goes last."""
        if note.name != self._note(folder, upload_id).name:
            write_note(folder, upload_id, note)  # for a kill right after the link
        try:
            os.fsync(file)
            # link() instead of rename(): it never replaces.
            os.link(
                data_name(upload_id), note.name, src_dir_fd=folder, dst_dir_fd=folder
            )
            os.fsync(folder)
        except FileExistsError as error:
            raise _taken(note.name) from error
        except OSError as error:
            raise failed(error, note.name, 0) from error
        self._remove(folder, upload_id)

    def _remove(self, folder: int, upload_id: str) -> None:
        unlink(folder, data_name(upload_id))
        unlink(folder, note_name(upload_id))
        os.fsync(folder)

    def _clean_note(self, folder: int, name: str) -> None:
        """Remove a note whose data is gone, once it cannot be one that is just beginning."""
        data = name.removesuffix(".json")
        if name == data or not DATA.fullmatch(data):
            return
        with contextlib.suppress(FileNotFoundError):
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
            if time.time() - status.st_mtime < 60:
                return
            try:
                os.stat(data, dir_fd=folder, follow_symlinks=False)
            except FileNotFoundError:
                unlink(folder, name)


def _check_size(name: str, size: int) -> None:
    kind = kind_of(name)
    if not 0 < size <= MAX_SIZE:
        raise Invalid(
            said(
                "size {size} must be from 1 byte to {most}.",
                size=size,
                most=format_size(MAX_SIZE),
            ),
            code="upload.size",
            field="size",
        )
    if kind in {KIND_DISK, KIND_MASTER} and size % SECTOR:
        raise Invalid(
            said(
                "size {size}: an image ({suffix}) is a multiple of {sector} bytes. If it has another "
                "format, name it for that (.qcow2, .vhdx, .vmdk) and convert it here.",
                size=size,
                suffix=iqns.IMAGE_SUFFIX,
                sector=SECTOR,
            ),
            code="upload.size",
            field="size",
        )


def _digest(file: int, size: int, step: Step) -> str:
    digest, at = hashlib.sha256(), 0
    while at < size:
        chunk = os.pread(file, _READ, at)
        if not chunk:
            raise Unavailable(said("the uploaded file became shorter; send it again."))
        digest.update(chunk)
        at += len(chunk)
        step.at(at)
    return digest.hexdigest()


def _taken(name: str) -> Conflict:
    return Conflict(
        said(
            "{name} exists already; it was left as it is. Take another name, or delete it first.",
            name=name,
        ),
        code="file.exists",
    )
