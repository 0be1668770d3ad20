"""What a storage node is asked about the files of its image directory."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import quote

from agents import http
from agents.client import LONG, NodeClient
from agents.following import UNWATCHED, Callbacks
from agents.protocol import paths
from agents.protocol.answers import Converted, ImageDeleted, ImageList, Upload, Uploaded
from ipxeready.errors import Invalid
from ipxeready.said import said


class IntakeClient(NodeClient):
    """Calls one storage node about its images and uploads."""

    def images(self, *, timeout: float | None = None) -> ImageList:
        """Every file of its image directory; with `timeout` it may take longer than a quick call."""
        answer = self._call("GET", paths.IMAGES, timeout=timeout)
        found = answer.get("images") if isinstance(answer, dict) else None
        if not isinstance(found, list) or not all(map(_is_image, found)):
            raise self._nonsense(said("its /images is no list of images"))
        if not isinstance(answer.setdefault("formats", []), list):
            raise self._nonsense(said("its formats are no list"))
        return cast(ImageList, answer)

    def image_delete(self, name: str, *, master: bool) -> ImageDeleted:
        """Remove a file; a master only by saying so."""
        params = {"name": name} | ({"master": "true"} if master else {})
        answer = self._call("DELETE", paths.IMAGES, params=params, timeout=LONG)
        return cast(ImageDeleted, self._object(answer, "deleted"))

    def image_convert(
        self,
        source: str,
        name: str,
        format_: str | None,
        callbacks: Callbacks = UNWATCHED,
    ) -> Converted:
        """Make an image from a file of another format."""
        body = {"source": source, "name": name}
        if format_ is not None:
            body["format"] = format_
        answer = self._long(paths.IMAGES_CONVERT, body, callbacks)
        return cast(Converted, self._object(answer, "name"))

    def uploads(self) -> list[Upload]:
        """The unfinished ones."""
        answer = self._call("GET", paths.UPLOADS)
        found = answer.get("uploads") if isinstance(answer, dict) else None
        if not isinstance(found, list) or not all(map(_is_upload, found)):
            raise self._nonsense(said("its /uploads is no list of uploads"))
        return cast(list[Upload], found)

    def upload(self, upload_id: str) -> Upload:
        """One of them."""
        answer = self._call("GET", _at(upload_id))
        return cast(Upload, self._object(answer, "id"))

    def upload_create(self, name: str, size: int | None, sha256: str | None) -> Upload:
        """Begin one."""
        body = {"name": name, "size": size, "sha256": sha256}
        answer = self._call("POST", paths.UPLOADS, body=body, timeout=LONG)
        return cast(Upload, self._object(answer, "id"))

    def upload_write(
        self, upload_id: str, offset: int, length: int, read: Callable[[int], bytes]
    ) -> Upload:
        """Hand a piece on as it comes; Invalid when its sender stops before the end."""
        try:
            answer = self._call(
                "PATCH",
                _at(upload_id),
                params={"offset": str(offset)},
                piece=http.Piece(read, length),
                timeout=LONG,
            )
        except http.CutShort:
            raise Invalid(
                said(
                    "the piece ended before its {length} bytes; ask where the upload is and go "
                    "on from there",
                    length=length,
                ),
                code="upload.cut",
            ) from None
        return cast(Upload, self._object(answer, "id"))

    def upload_finish(
        self,
        upload_id: str,
        name: str | None,
        sha256: str | None,
        callbacks: Callbacks = UNWATCHED,
    ) -> Uploaded:
        """Have it verified and named."""
        body = {
            key: value
            for key, value in (("name", name), ("sha256", sha256))
            if value is not None
        }
        path = f"{_at(upload_id)}/finish"
        answer = self._long(path, body, callbacks)
        return cast(Uploaded, self._object(answer, "name"))

    def upload_delete(self, upload_id: str) -> dict[str, Any]:
        """Give it up."""
        answer = self._call("DELETE", _at(upload_id), timeout=LONG)
        return self._object(answer, "deleted")

    def _object(self, answer: Any, name: str) -> dict[str, Any]:
        if not isinstance(answer, dict) or not isinstance(answer.get(name), str):
            raise self._nonsense(said("its answer has no {name}", name=name))
        return answer


#: What an upload's id may look like: it becomes part of an address.
UPLOAD_ID = re.compile(r"[0-9a-f]{1,64}")


def _is_image(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and all(isinstance(entry.get(name), str) for name in ("name", "kind"))
        and all(isinstance(entry.get(name), int) for name in ("size", "allocated"))
    )


def _is_upload(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and UPLOAD_ID.fullmatch(str(entry.get("id"))) is not None
        and isinstance(entry.get("name"), str)
        and isinstance(entry.get("offset"), int)
        and isinstance(entry.get("size"), int | None)
    )


def _at(upload_id: str) -> str:
    # No identifier of ours; quoted all the same, so that it stays one part of a path.
    return f"{paths.UPLOADS}/{quote(upload_id, safe='')}"
