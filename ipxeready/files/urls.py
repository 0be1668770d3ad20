"""Addresses of the public directory."""

from __future__ import annotations

from django.urls import URLPattern

from ipxeready.files.api import FolderView
from ipxeready.files.views import view
from ipxeready.web.routing import api_path

urlpatterns: list[URLPattern] = [
    api_path("files", FolderView.as_view(), name="files"),
    api_path("files/<path:path>", FolderView.as_view(), name="folder"),
    api_path("file/<path:path>", view, name="file"),
]
