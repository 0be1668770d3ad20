"""Addresses of the audit app."""

from __future__ import annotations

from django.urls import URLPattern

from audit import api
from ipxeready.web.routing import api_path

urlpatterns: list[URLPattern] = [
    api_path("operations", api.OperationList.as_view(), name="operations"),
]
