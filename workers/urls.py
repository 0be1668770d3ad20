"""Addresses of the workers app."""

from __future__ import annotations

from django.urls import URLPattern

urlpatterns: list[URLPattern] = []
