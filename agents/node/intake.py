"""The node's API for the files of its image directory: the list, deletion, conversion, uploads."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from django.http import HttpRequest, HttpResponse, JsonResponse, UnreadablePostError

from agents.node import converting, http, jobs, listing
from agents.node.errors import LengthRequired, TooLarge
from agents.node.runtime import Node, current
from agents.protocol import paths
from agents.protocol.answers import Uploaded
from agents.protocol.limits import MAX_PIECE
from ipxeready.errors import ApplicationError, Invalid, Unavailable
from ipxeready.pace import hurry
from ipxeready.said import said
from ipxeready.storage.jobs import Job

FINISH = "upload.finish"
_OCTETS = "application/octet-stream"
#: Pieces that are taken at once: a few slow senders must not hold all threads of the node.
_SLOTS = threading.BoundedSemaphore(6)
_READ = 64 << 10
#: Seconds that the sender of a refused piece has to send the rest: a thread waits for it.
_DRAIN = 5.0


def images(request: HttpRequest) -> HttpResponse:
    """What lies in the directory."""
    http.query(request, ())
    return JsonResponse(listing.image_list(current()))


def image_delete(request: HttpRequest) -> HttpResponse:
    """Remove a file that nobody uses."""
    given = http.query(request, ("name", "master"))
    http.body(request, ())
    master = http.boolean(given, "master")
    name = http.text(given, "name", required=True) or ""
    done = listing.image_delete(current(), name, master=master)
    return JsonResponse(done)


def image_convert(request: HttpRequest) -> HttpResponse:
    """A raw image from one of another format."""
    http.query(request, ())
    data = http.body(request, ("source", "name", "format"))
    source = http.text(data, "source", required=True) or ""
    name = http.text(data, "name", required=True) or ""
    format_ = http.text(data, "format")
    node = current()
    return jobs.respond(
        request,
        node,
        lambda step: converting.image_convert(
            node, source, name, format_=format_, step=step
        ),
        kind=converting.KIND,
        key=f"image:{name.lower()}",
        same=(source, name, format_),
        about={"source": source, "name": name},
    )


def uploads(request: HttpRequest) -> HttpResponse:
    """The unfinished ones."""
    http.query(request, ())
    return JsonResponse({"uploads": current().uploads.all()})


def upload_create(request: HttpRequest) -> HttpResponse:
    """Begin one."""
    http.query(request, ())
    data = http.body(request, ("name", "size", "sha256"))
    node = current()
    name = http.text(data, "name", required=True) or ""
    size, sha256 = _size(data), http.text(data, "sha256")
    with node.log.about("upload.create", name=name, size=size), node.changing():
        made = node.uploads.create(name, size=size, sha256=sha256)
    answer = JsonResponse(made, status=201)
    answer["Location"] = f"{paths.UPLOADS}/{made['id']}"
    return answer


def upload(request: HttpRequest, upload_id: str) -> HttpResponse:
    """How far one is."""
    http.query(request, ())
    return JsonResponse(current().uploads.get(upload_id))


def upload_write(request: HttpRequest, upload_id: str) -> HttpResponse:
    """Take one piece."""
    try:
        given = http.query(request, ("offset",))
        http.text(given, "offset", required=True)
        offset = http.whole(given, "offset", 0, low=0, high=1 << 62)
        length = _length(request)
        if not _SLOTS.acquire(blocking=False):
            raise Unavailable(
                said(
                    "this node takes as many pieces at once as it can; send it again."
                ),
                code="upload.slots",
            )
        try:
            done = current().uploads.write(upload_id, offset, length, _reader(request))
        finally:
            _SLOTS.release()
    except ApplicationError:
        _drain(request)
        raise
    return JsonResponse(done)


def upload_finish(request: HttpRequest, upload_id: str) -> HttpResponse:
    """Verify it and give it its name."""
    http.query(request, ())
    data = http.body(request, ("sha256", "name"))
    sha256, name = http.text(data, "sha256"), http.text(data, "name")
    node = current()
    final = name or node.uploads.get(upload_id)["name"]

    def work(step: jobs.Step) -> Uploaded:
        with node.log.about(FINISH, name=final), node.claimed(final):
            return node.uploads.finish(upload_id, sha256=sha256, name=name, step=step)

    return jobs.respond(
        request,
        node,
        work,
        kind=FINISH,
        key=f"upload:{upload_id}",
        same=(sha256, name),
        about={"upload": upload_id, "name": final},
        status=200,
    )


def upload_delete(request: HttpRequest, upload_id: str) -> HttpResponse:
    """Give one up."""
    http.query(request, ())
    http.body(request, ())
    node = current()
    gone = node.uploads.delete(upload_id)
    node.log.add("upload.delete", "ok", name=gone["name"], offset=gone["offset"])
    return JsonResponse({"deleted": gone["id"], "name": gone["name"]})


def _finished_before(node: Node, job: Job) -> Any:
    """The result of a finish that a kill kept from saying so, or None: the upload is gone and its file is there."""
    entry = node.images.find(str(job.about.get("name", "")))
    unfinished = {upload["id"] for upload in node.uploads.all()}
    if entry is None or job.about.get("upload") in unfinished:
        return None
    return {"name": entry.name, "size": entry.size, "bytes": entry.allocated}


jobs.AT_RESTART[FINISH] = _finished_before


def _size(data: dict[str, Any]) -> int | None:
    size = data.get("size")
    if size is None:
        return None
    if isinstance(size, str) and size.isascii() and size.isdigit():
        size = int(size[:20])
    if not isinstance(size, int) or isinstance(size, bool):
        raise Invalid(
            said("size {size} must be the file's length in bytes.", size=repr(size)),
            field="size",
        )
    return size


def _length(request: HttpRequest) -> int:
    text = request.META.get("CONTENT_LENGTH") or ""
    if not text.isdigit():
        raise LengthRequired(
            said("a piece needs its Content-Length; it is not sent chunked.")
        )
    if (request.content_type or "").lower() != _OCTETS:
        raise Invalid(
            said("a piece is sent as {kind}: raw bytes, no form.", kind=_OCTETS)
        )
    length = int(text[:20])
    if not length:
        raise Invalid(said("a piece has at least one byte."))
    if length > MAX_PIECE:
        raise TooLarge(
            said(
                "a piece has at most {most} bytes (64 MiB), this one {length}; send several.",
                most=MAX_PIECE,
                length=length,
            )
        )
    return length


def _reader(request: HttpRequest) -> Callable[[int], bytes]:
    """Read the body; a sender that went away has sent all that it will."""

    def read(count: int) -> bytes:
        try:
            return bytes(request.read(count))
        except (UnreadablePostError, OSError):
            return b""

    return read


def _drain(request: HttpRequest) -> None:
    """Read what is left of a refused piece, or its sender would see a broken connection instead of the reason."""
    hurry(request, _DRAIN)
    read, left = _reader(request), MAX_PIECE
    while left > 0 and (chunk := read(_READ)):
        left -= len(chunk)
