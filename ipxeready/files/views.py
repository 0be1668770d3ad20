"""GET /file/<path>: what firmware chains and loads, in whole or in part, never through memory and never as a page."""

from __future__ import annotations

import mimetypes
import os
import re
import threading
from typing import Final

from django.conf import settings
from django.http import (
    FileResponse,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseNotAllowed,
)
from django.utils.cache import get_conditional_response
from django.utils.http import http_date

from ipxeready.errors import NotFound
from ipxeready.files.names import asked_for
from ipxeready.storage import publicdir

_RANGE = re.compile(r"bytes=(?:([0-9]{1,18})-([0-9]{0,18})|-([0-9]{1,18}))", re.I)
#: Seconds after which a machine that found all places taken should come again; iPXE does.
RETRY: Final = 2
#: A file may be a page or a picture with a script in it: it must not act for who is logged in here.
_HEADERS: Final = {
    "Accept-Ranges": "bytes",
    "Cache-Control": "no-cache",
    "Content-Security-Policy": "sandbox; default-src 'none'",
    "X-Content-Type-Options": "nosniff",
}


class Places:
    """How many threads of this process may send files: half of them, so that boots and pages always find one."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self.taken = 0

    def take(self) -> bool:
        """Take a place; False when none is free. Nobody waits here: who waits holds a thread too."""
        with self._guard:
            if self.taken >= max(1, settings.IPXE.serve_threads // 2):
                return False
            self.taken += 1
            return True

    def free(self) -> None:
        """Give a place back."""
        with self._guard:
            self.taken -= 1


places: Final = Places()


class Part:
    """A stretch of an open file that the server may hand to sendfile(); closing it frees its place."""

    def __init__(self, fd: int, start: int, length: int) -> None:
        os.lseek(fd, start, os.SEEK_SET)
        self._fd = fd
        self._left = length
        self._open = True

    def fileno(self) -> int:
        """The descriptor, at the first byte to send."""
        return self._fd

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes of what is left."""
        wanted = self._left if size < 0 else min(size, self._left)
        data = os.read(self._fd, wanted) if wanted else b""
        self._left -= len(data)
        return data

    def close(self) -> None:
        """Close the file, once."""
        if self._open:
            self._open = False
            os.close(self._fd)
            places.free()


class _Streamed(FileResponse):
    block_size = 256 * 1024


def view(request: HttpRequest, path: str) -> HttpResponseBase:
    """The file, or the part that `Range` asks for; every refusal is plain text."""
    if request.method not in ("GET", "HEAD"):
        return HttpResponseNotAllowed(["GET", "HEAD"], content_type="text/plain")
    path = asked_for(request, path)
    try:
        opened = publicdir.open_file(settings.IPXE_LAYOUT.public, path.rstrip("/"))
    except NotFound:
        return _plain("not found", 404)
    handed_on = False
    try:
        response, handed_on = _answer(request, path, opened)
        return response
    finally:
        if not handed_on:
            os.close(opened.fd)


def _answer(
    request: HttpRequest, path: str, opened: publicdir.Opened
) -> tuple[HttpResponseBase, bool]:
    """The response, and whether it has taken the open file over."""
    seen = opened.stat
    etag = f'"{seen.st_mtime_ns:x}-{seen.st_size:x}-{seen.st_ino:x}"'
    modified = http_date(seen.st_mtime)
    headers = {**_HEADERS, "ETag": etag, "Last-Modified": modified}
    early = get_conditional_response(request, etag, int(seen.st_mtime))
    if early is not None:
        for name, value in headers.items():
            early[name] = value
        return early, False
    size = seen.st_size
    start, length, status = 0, size, 200
    if request.method == "GET" and _unchanged(request, etag, modified):
        found = wanted(request.headers.get("Range", ""), size)
        if found is not None:
            start, length = found
            status = 206
            if length == 0:
                refused = _plain("no such range", 416)
                refused["Content-Range"] = f"bytes */{size}"
                return refused, False
            headers["Content-Range"] = f"bytes {start}-{start + length - 1}/{size}"
    headers["Content-Length"] = str(length)
    kind = content_type(path)
    if request.method == "HEAD":
        return HttpResponse(headers=headers, content_type=kind), False
    if not places.take():
        busy = _plain("all places for files are taken; come again", 503)
        busy["Retry-After"] = str(RETRY)
        return busy, False
    part = Part(opened.fd, start, length)
    return _Streamed(part, status=status, headers=headers, content_type=kind), True


def wanted(header: str, size: int) -> tuple[int, int] | None:
    """Start and length of a single byte range, length 0 where there is no such part; None: send the whole.

    A malformed header and several ranges at once are no request for a part (RFC 9110 lets us choose).
    """
    found = _RANGE.fullmatch(header.strip())
    if found is None:
        return None
    first, last, suffix = found.groups()
    if suffix is not None:
        length = min(int(suffix), size)
        return size - length, length
    start = int(first)
    end = min(int(last), size - 1) if last else size - 1
    if last and int(last) < start:
        return None
    return start, max(end - start + 1, 0)


def _unchanged(request: HttpRequest, etag: str, modified: str) -> bool:
    """Whether a part may be sent: `If-Range` names what is there."""
    condition = request.headers.get("If-Range")
    return condition is None or condition.strip() in (etag, modified)


def content_type(path: str) -> str:
    """By the name's ending; what is packed is sent as it is."""
    kind, packed = mimetypes.guess_type(path.rstrip("/").rpartition("/")[2])
    return kind if kind and not packed else "application/octet-stream"


def _plain(text: str, status: int) -> HttpResponse:
    return HttpResponse(
        f"{text}\n", status=status, content_type="text/plain; charset=utf-8"
    )
