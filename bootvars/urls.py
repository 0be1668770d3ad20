"""Addresses of the bootvars app."""

from __future__ import annotations

from django.urls import URLPattern

from bootvars.api import AutoRegisterView
from bootvars.views import view
from ipxeready.web.routing import api_path

urlpatterns: list[URLPattern] = [
    api_path("boot-vars", view, name="boot-vars"),
    api_path(
        "settings/auto-register", AutoRegisterView.as_view(), name="auto-register"
    ),
]
