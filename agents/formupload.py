"""A file of a plain form, handed on to a node while the browser sends it: it is never stored or held here as a whole."""

from __future__ import annotations

import secrets
from typing import Any

from django.core.files.uploadhandler import FileUploadHandler, StopUpload
from django.http import HttpRequest

from agents import intake
from agents.protocol.filenames import UPLOAD_SUFFIXES
from ipxeready.actors import Actor
from ipxeready.errors import ApplicationError, Invalid
from ipxeready.said import said

#: Sent to the node at once; also what of the file is in memory.
_PIECE = 8 << 20


class NodeUploadHandler(FileUploadHandler):
    """Begins an upload on the node with the form's file and sends its pieces. Its name comes at the end, with the form's other fields.

    `error` is the first refusal; what the browser still sends is read and dropped then.
    """

    chunk_size = 1 << 20

    def __init__(self, request: HttpRequest, actor: Actor, agent_id: str) -> None:
        super().__init__(request)
        self._actor = actor
        self._agent_id = agent_id
        self._buffer = bytearray()
        self._offset = 0
        self.upload_id = ""
        self.sent_name = ""
        self.error: ApplicationError | None = None

    def new_file(self, *args: Any, **kwargs: Any) -> None:
        """A file comes: the first one is begun on the node, another is one too many."""
        super().new_file(*args, **kwargs)
        name = str(self.file_name or "")
        ending = next((s for s in UPLOAD_SUFFIXES if name.lower().endswith(s)), None)
        if self.upload_id or ending is None:
            self._fail(
                Invalid(
                    said(
                        "{name} is not a file that is taken here: one file at a time, ending in "
                        "{endings}",
                        name=repr(name[:80]),
                        endings=", ".join(UPLOAD_SUFFIXES),
                    ),
                    field="file",
                )
            )
        try:
            # Its name may be one that only the other fields mend.
            made = intake.upload_create(
                actor=self._actor,
                agent_id=self._agent_id,
                name=f"upload-{secrets.token_hex(8)}{ending}",
            )
        except ApplicationError as error:
            self._fail(error)
        self.upload_id, self.sent_name = made["id"], name

    def receive_data_chunk(self, raw_data: bytes, start: int) -> None:
        """Some of its bytes."""
        self._buffer += raw_data
        if len(self._buffer) >= _PIECE:
            self._send()

    def file_complete(self, file_size: int) -> None:
        """All of it is there: the rest goes to the node."""
        if self.upload_id and self._buffer:
            self._send()

    def upload_interrupted(self) -> None:
        """The browser went away: a form cannot go on where it stopped."""
        self.give_up()

    def give_up(self) -> None:
        """Leave nothing on the node."""
        if not self.upload_id:
            return
        try:
            intake.upload_delete(
                actor=self._actor, agent_id=self._agent_id, upload_id=self.upload_id
            )
        except ApplicationError:
            return  # it expires there
        finally:
            self.upload_id = ""

    def _send(self) -> None:
        rest = memoryview(bytes(self._buffer))
        self._buffer.clear()
        length = len(rest)

        def read(count: int) -> bytes:
            nonlocal rest
            taken, rest = rest[:count], rest[count:]
            return bytes(taken)

        try:
            done = intake.upload_write(
                actor=self._actor,
                agent_id=self._agent_id,
                upload_id=self.upload_id,
                offset=self._offset,
                length=length,
                read=read,
            )
        except ApplicationError as error:
            self._fail(error)
        self._offset = done["offset"]

    def _fail(self, error: ApplicationError) -> None:
        self.error = error
        self.give_up()
        raise StopUpload(connection_reset=False)
