"""URL patterns of the API: a trailing slash is optional and never redirected to."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from django.http import HttpResponseBase
from django.urls import URLPattern, re_path

#: Where a browser front end behind nginx finds the same paths.
PREFIX = "api/cp/"

#: A file's name may hold a line end.
_CONVERTERS = {"str": "[^/]+", "path": r"[\s\S]+"}


def api_path(
    route: str, view: Callable[..., HttpResponseBase], name: str | None = None
) -> URLPattern:
    """Like `path()` with `<name>` and `<path:name>`, matching with and without a final slash."""
    regex, end = "", 0
    for part in re.finditer(r"<(?:(\w+):)?(\w+)>", route):
        regex += _literal(route[end : part.start()])
        regex += f"(?P<{part[2]}>{_CONVERTERS[part[1] or 'str']})"
        end = part.end()
    regex += _literal(route[end:].removesuffix("/"))
    # \Z, not $: that would also match before a line end in the path.
    return re_path(rf"^{regex}/?\Z", view, name=name)


def _literal(text: str) -> str:
    """Escaped, but for the hyphen: the schema shows it as it stands here."""
    return re.escape(text).replace("\\-", "-")


def without_prefix(
    endpoints: Sequence[tuple[str, str, str, Any]], **_kwargs: Any
) -> list[tuple[str, str, str, Any]]:
    """Drop the doubled paths below /api/cp from the OpenAPI schema, and the optional slash's mark."""
    return [
        (path.rstrip("/") or "/", pattern, method, view)
        for path, pattern, method, view in endpoints
        if not path.startswith(f"/{PREFIX}")
    ]
