"""Addresses of personal tokens."""

from __future__ import annotations

from django.urls import URLPattern

from ipxeready.users import api
from ipxeready.web.routing import api_path

urlpatterns: list[URLPattern] = [
    api_path("tokens", api.TokenList.as_view(), name="tokens"),
    api_path("tokens/<token_id>", api.TokenDetail.as_view(), name="token"),
]
