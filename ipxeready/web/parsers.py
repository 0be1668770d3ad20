"""Body parsers with a size limit: DRF's own read whatever comes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, Any

from django.conf import settings
from rest_framework import parsers, status
from rest_framework.exceptions import APIException, ParseError


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


class JSONParser(_Limited, parsers.JSONParser):
    """JSON within the limit."""

    def parse(
        self,
        stream: IO[Any],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        """Read it; what is nested too deeply for the reader is malformed, not a bug of ours."""
        try:
            return super().parse(stream, media_type, parser_context)
        except RecursionError:
            raise ParseError("JSON parse error - nested too deeply") from None


class FormParser(_Limited, parsers.FormParser):
    """A form within the limit."""


class MultiPartParser(_Limited, parsers.MultiPartParser):
    """A multipart form within the limit."""
