"""GET /files/...: what is in the public directory."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from ipxeready.files.names import asked_for, file_address, listing_address, words
from ipxeready.storage import publicdir
from ipxeready.web.serializers import strict_query
from ipxeready.web.views import ApiView


class EntrySerializer(serializers.Serializer[publicdir.Entry]):
    """One name of a folder (for the schema)."""

    name = serializers.CharField()
    type = serializers.ChoiceField(["file", "directory"])
    size = serializers.IntegerField()
    mtime = serializers.DateTimeField()
    address = serializers.CharField(
        required=False,
        help_text="Where it is fetched or listed; only for a name that is no UTF-8, of which `name` is a spelling.",
    )


class ListingSerializer(serializers.Serializer[dict[str, object]]):
    """A folder (for the schema)."""

    path = serializers.CharField()
    entries = EntrySerializer(many=True)


class FolderView(ApiView):
    """A folder of the public directory; its files are fetched from /file/<path>."""

    @extend_schema(responses=ListingSerializer)
    def get(self, request: Request, path: str = "") -> Response:
        """The folder's entries by name; hidden ones, and links that lead out, are not there."""
        strict_query(request, {"format": None})
        folder = asked_for(request, path).rstrip("/")
        entries = publicdir.list_folder(settings.IPXE_LAYOUT.public, folder)
        parts = [part for part in folder.split("/") if part]
        return Response(
            {
                "path": words(f"/{folder}"),
                "entries": [_told(parts, entry) for entry in entries],
            }
        )


def _told(parts: list[str], entry: publicdir.Entry) -> dict[str, object]:
    """One entry; JSON cannot say a name that is no UTF-8, so that one has its address, too."""
    name = words(entry.name)
    told: dict[str, object] = {
        "name": name,
        "type": entry.type,
        "size": entry.size,
        "mtime": _time(entry.mtime),
    }
    if name != entry.name:
        here = [*parts, entry.name]
        is_folder = entry.type == "directory"
        told["address"] = listing_address(here) if is_folder else file_address(here)
    return told


def _time(stamp: float) -> str:
    return datetime.fromtimestamp(stamp).astimezone().isoformat(timespec="seconds")
