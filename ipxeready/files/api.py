"""GET /files/...: what is in the public directory."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from ipxeready.storage import publicdir
from ipxeready.web.serializers import strict_query
from ipxeready.web.views import ApiView


class EntrySerializer(serializers.Serializer[publicdir.Entry]):
    """One name of a folder (for the schema)."""

    name = serializers.CharField()
    type = serializers.ChoiceField(["file", "directory"])
    size = serializers.IntegerField()
    mtime = serializers.DateTimeField()


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
        folder = path.rstrip("/")
        entries = publicdir.list_folder(settings.IPXE_LAYOUT.public, folder)
        return Response(
            {
                "path": f"/{folder}",
                "entries": [
                    {
                        "name": entry.name,
                        "type": entry.type,
                        "size": entry.size,
                        "mtime": _time(entry.mtime),
                    }
                    for entry in entries
                ],
            }
        )


def _time(stamp: float) -> str:
    return datetime.fromtimestamp(stamp).astimezone().isoformat(timespec="seconds")
