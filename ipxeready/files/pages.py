"""The pages of the public directory: folders as people read them; the files themselves come from /file/<path>."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern, path, re_path
from django.utils.timezone import get_current_timezone
from django.utils.translation import gettext as _t

from ipxeready.files.names import asked_for, file_address, folder_address, words
from ipxeready.storage import publicdir
from ipxeready.storage.publicdir import Entry
from ipxeready.web.pages import page, page_view

#: Names on one page.
PAGE = 500


def urls() -> list[URLPattern]:
    """The addresses of these pages, for the site's own list."""
    view = page_view(folder)
    return [
        path("files/", view, name="files"),
        re_path(r"^files/(?P<below>(?s:.+))\Z", view, name="files_folder"),
    ]


def folder(request: HttpRequest, below: str = "") -> HttpResponse:
    """One folder: folders first, each part of the way back a link."""
    asked = asked_for(request, below).rstrip("/")
    found = publicdir.list_folder(settings.IPXE_LAYOUT.public, asked)
    found.sort(key=lambda entry: entry.type)  # "directory" is before "file"
    parts = asked.split("/") if asked else []
    shown = Paginator(found, PAGE).get_page(request.GET.get("p"))
    way = [(_t("Files"), folder_address([]))] if parts else []
    way += [
        (words(part), folder_address(parts[: at + 1]))
        for at, part in enumerate(parts[:-1])
    ]
    return page(
        request,
        "files/folder.html",
        {
            "page": shown,
            "rows": [_row(parts, entry) for entry in shown],
            "up": folder_address(parts[:-1]) if parts else "",
            "path": words("/" + "/".join(parts)),
        },
        title=words(parts[-1]) if parts else _t("Files"),
        trail=way,
    )


def _row(parts: list[str], entry: Entry) -> dict[str, object]:
    is_folder = entry.type == "directory"
    here = [*parts, entry.name]
    return {
        "name": words(entry.name),
        "folder": is_folder,
        "address": folder_address(here) if is_folder else file_address(here),
        "size": entry.size,
        "time": datetime.fromtimestamp(entry.mtime, get_current_timezone()),
    }
