"""Names of files in addresses: any bytes that a file system allows, there and back."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from urllib.parse import quote, unquote_to_bytes

from django.http import HttpRequest
from django.urls import reverse

_BELOW = re.compile(
    rb"(?:https?://[^/]*)?/(?:(?:api/cp/)?files?|admin/files)/(.*)", re.DOTALL | re.I
)


def asked_for(request: HttpRequest, path: str) -> str:
    """The path below the public directory that the address names, as the file system says it.

    `path` is what Django made of it: right, unless it is no UTF-8. Django then writes the odd bytes as `%FF`,
    which may be a name too, so that what the server was sent is looked at.
    """
    sent: str | None = request.META.get("RAW_URI") if "%" in path else None
    if sent is None:
        return path
    found = _BELOW.fullmatch(unquote_to_bytes(sent.partition("?")[0]))
    return os.fsdecode(found[1]) if found else path


def words(name: str) -> str:
    """The name for people; bytes that are no UTF-8 as `\\xe9`."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def file_address(parts: Sequence[str]) -> str:
    """Where the file of this path is fetched."""
    return reverse("file", args=["-"]).removesuffix("-") + _quoted(parts)


def folder_address(parts: Sequence[str]) -> str:
    """Where the folder of this path is shown; the public directory itself without parts."""
    below = _quoted(parts)
    return reverse("admin:files") + (f"{below}/" if below else "")


def listing_address(parts: Sequence[str]) -> str:
    """Where the API lists the folder of this path."""
    return reverse("folder", args=["-"]).removesuffix("-") + _quoted(parts)


def _quoted(parts: Sequence[str]) -> str:
    return "/".join(quote(os.fsencode(part), safe="") for part in parts)
