"""The API of the files of nodes' image directories (docs/contract.md). A piece of an upload passes through, whatever its size."""

from __future__ import annotations

import threading
from typing import Any

from django.conf import settings
from django.http import UnreadablePostError
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from agents import intake
from agents import intake_jobs as jobs
from agents.protocol.limits import MAX_PIECE
from ipxeready.errors import ApplicationError, Invalid, Unavailable
from ipxeready.jobs.api import ACCEPTED, PREFER, LongView
from ipxeready.pace import hurry
from ipxeready.web.serializers import (
    StrictSerializer,
    WholeNumberField,
    no_body,
    strict_query,
)
from ipxeready.web.views import ApiView

_ANY = {200: dict[str, Any]}
_OCTETS = "application/octet-stream"
_READ = 64 * 1024
#: Seconds that the sender of a refused piece has to send the rest: a thread waits for it.
_DRAIN = 5.0


class ConvertSerializer(StrictSerializer):
    """`POST /agents/{id}/images/convert`."""

    source = serializers.CharField()  # type: ignore[assignment]  # our field, not the base's
    name = serializers.CharField()
    format = serializers.CharField(required=False, allow_null=True, allow_blank=True)


class UploadCreateSerializer(StrictSerializer):
    """`POST /agents/{id}/uploads`."""

    name = serializers.CharField()
    size = WholeNumberField(required=False, allow_null=True)
    sha256 = serializers.CharField(required=False, allow_null=True, allow_blank=True)


class UploadFinishSerializer(StrictSerializer):
    """`POST /agents/{id}/uploads/{uid}/finish`."""

    name = serializers.CharField(required=False, allow_null=True)
    sha256 = serializers.CharField(required=False, allow_null=True, allow_blank=True)


class AgentImages(ApiView):
    """GET, DELETE /agents/{id}/images."""

    @extend_schema(responses=_ANY)
    def get(self, request: Request, agent_id: str) -> Response:
        """Every file of a node's image directory."""
        return Response(intake.image_list(actor=self.actor, agent_id=agent_id))

    @extend_schema(
        parameters=[
            OpenApiParameter("name", str, required=True),
            OpenApiParameter("master", bool),
        ],
        responses=_ANY,
    )
    def delete(self, request: Request, agent_id: str) -> Response:
        """Remove a file that nobody uses; a master with `master=true`."""
        query = strict_query(request, {"name": None, "master": False})
        no_body(request)
        if not query["name"]:
            raise Invalid("is missing: give the file's name", field="name")
        return Response(
            intake.image_delete(actor=self.actor, agent_id=agent_id, **query)
        )


class AgentImageConvert(LongView):
    """POST /agents/{id}/images/convert."""

    serializer_class = ConvertSerializer

    @extend_schema(
        parameters=[PREFER],
        request=ConvertSerializer,
        responses={201: dict[str, Any], **ACCEPTED},
    )
    def post(self, request: Request, agent_id: str) -> Response:
        """A raw image from qcow2, VHDX, VHD, VMDK or raw."""
        data = self.checked(ConvertSerializer)
        data["format"] = data.get("format") or None
        work = jobs.convert_work(actor=self.actor, agent_id=agent_id, **data)
        return self.respond(work, status=201)


class AgentUploads(ApiView):
    """GET, POST /agents/{id}/uploads."""

    serializer_class = UploadCreateSerializer

    @extend_schema(responses=_ANY)
    def get(self, request: Request, agent_id: str) -> Response:
        """The unfinished uploads."""
        found = intake.upload_list(actor=self.actor, agent_id=agent_id)
        return Response({"uploads": found})

    @extend_schema(request=UploadCreateSerializer, responses={201: dict[str, Any]})
    def post(self, request: Request, agent_id: str) -> Response:
        """Begin one."""
        data = self.checked(UploadCreateSerializer)
        made = intake.upload_create(actor=self.actor, agent_id=agent_id, **data)
        answer = Response(made, status=201)
        answer["Location"] = f"/agents/{agent_id}/uploads/{made['id']}"
        return answer


class AgentUpload(ApiView):
    """GET, PATCH, DELETE /agents/{id}/uploads/{uid}."""

    @extend_schema(responses=_ANY)
    def get(self, request: Request, agent_id: str, upload_id: str) -> Response:
        """How far it is."""
        return Response(
            intake.upload_get(actor=self.actor, agent_id=agent_id, upload_id=upload_id)
        )

    @extend_schema(
        parameters=[OpenApiParameter("offset", int, required=True)],
        request={_OCTETS: bytes},
        responses={**_ANY, 411: dict[str, Any]},
    )
    def patch(self, request: Request, agent_id: str, upload_id: str) -> Response:
        """One piece of raw bytes at `offset`; it goes to the node while it comes."""
        offset = strict_query(request, {"offset": None})["offset"]
        if offset is None or not str(offset).isdigit() or len(str(offset)) > 20:
            raise Invalid("must be a number of bytes", field="offset")
        with _places:
            done = intake.upload_write(
                actor=self.actor,
                agent_id=agent_id,
                upload_id=upload_id,
                offset=int(offset),
                length=_length(request),
                read=lambda count: _read(request, count),
            )
        return Response(done)

    @extend_schema(responses=_ANY)
    def delete(self, request: Request, agent_id: str, upload_id: str) -> Response:
        """Give it up."""
        strict_query(request, {})
        no_body(request)
        return Response(
            intake.upload_delete(
                actor=self.actor, agent_id=agent_id, upload_id=upload_id
            )
        )

    def handle_exception(self, exc: Exception) -> Response:
        """A refusal; what is left of a piece is read first, or its sender would see a broken connection instead."""
        response = super().handle_exception(exc)
        if self.request.method == "PATCH" and response.status_code != 401:
            hurry(self.request._request, _DRAIN)
            left = MAX_PIECE
            while left > 0 and (chunk := _read(self.request, _READ)):
                left -= len(chunk)
        return response


class AgentUploadFinish(LongView):
    """POST /agents/{id}/uploads/{uid}/finish."""

    serializer_class = UploadFinishSerializer

    @extend_schema(
        parameters=[PREFER],
        request=UploadFinishSerializer,
        responses={**_ANY, **ACCEPTED},
    )
    def post(self, request: Request, agent_id: str, upload_id: str) -> Response:
        """Length and checksum are verified on the node, then the file gets its name."""
        data = self.checked(UploadFinishSerializer)
        return self.respond(
            jobs.finish_work(
                actor=self.actor, agent_id=agent_id, upload_id=upload_id, **data
            )
        )


class LengthRequired(ApplicationError):
    """The request must say how long its body is (411)."""

    status = 411
    default_code = "length"


class _Places:
    """How many threads of this process may hand pieces on: half of them, so that boots and pages always find one."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._taken = 0

    def __enter__(self) -> None:
        with self._guard:
            if self._taken >= max(1, settings.IPXE.serve_threads // 2):
                raise Unavailable(
                    "half of the threads of this process hand uploads on already; send it again",
                    code="upload.places",
                )
            self._taken += 1

    def __exit__(self, *_: object) -> None:
        with self._guard:
            self._taken -= 1


_places = _Places()


def _length(request: Request) -> int:
    kind = (request.content_type or "").partition(";")[0].strip().lower()
    if kind != _OCTETS:
        raise Invalid(f"a piece is sent as {_OCTETS}: raw bytes, no form")
    text = str(request.META.get("CONTENT_LENGTH") or "")
    if not text.isdigit():
        raise LengthRequired("a piece needs its Content-Length; it is not sent chunked")
    return int(text[:20])


def _read(request: Request, count: int) -> bytes:
    """The next bytes of the body; none when the sender went away."""
    try:
        return bytes(request._request.read(count))
    except (UnreadablePostError, OSError):
        return b""
