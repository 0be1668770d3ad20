"""Body parsers with a size limit: DRF's own read whatever comes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from rest_framework import parsers, status
from rest_framework.exceptions import APIException, ParseError

from ipxeready.storage import jsonl


class TooLarge(APIException):
    """A body beyond the limit; it is not read."""

    status_code = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    default_code = "too_large"


class _Limited(parsers.BaseParser):
    """Looks at Content-Length before reading; Django never reads beyond what that says."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        request = (parser_context or {}).get("request")
        limit = settings.DATA_UPLOAD_MAX_MEMORY_SIZE
        # A missing or malformed length counts as 0, as it does for Django's own reader.
        length = str(request.META.get("CONTENT_LENGTH") or 0) if request else "0"
        if length.isdigit() and int(length) > limit:
            raise TooLarge(f"the body has {length} bytes; at most {limit} are read")
        return super().parse(stream, media_type, parser_context)


class _StrictJSON(parsers.JSONParser):
    """UTF-8 whatever the header says; a field that is given twice is refused, not dropped."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        try:
            text = stream.read().decode("utf-8")
            return jsonl.loads(text, object_pairs_hook=_no_double)
        except (ValueError, RecursionError) as error:
            raise ParseError(f"JSON parse error - {error}") from None


def _no_double(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise ValueError(f"the field {json.dumps(name[:80])} is given twice")
        found[name] = value
    return found


class JSONParser(_Limited, _StrictJSON):
    """JSON within the limit."""


class FormParser(_Limited, parsers.FormParser):
    """A form within the limit."""


class MultiPartParser(_Limited, parsers.MultiPartParser):
    """A multipart form within the limit."""
