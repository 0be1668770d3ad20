"""Every address of the control plane; the agent has a list of its own."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path
from django.views.generic import RedirectView

from ipxeready.openapi import SchemaView
from ipxeready.web.health import healthz
from ipxeready.web.language import set_language
from ipxeready.web.routing import PREFIX, api_path

_api: list[URLPattern | URLResolver] = [
    api_path("healthz", healthz, name="healthz"),
    path("", include("workers.urls")),
    path("", include("agents.urls")),
    path("", include("audit.urls")),
    path("", include("bootvars.urls")),
    path("", include("ipxeready.jobs.urls")),
    path("", include("ipxeready.users.urls")),
    path("", include("ipxeready.files.urls")),
    api_path("schema", SchemaView.as_view(), name="schema"),
]

# The last entry wins in reverse(), so names lead to the addresses without the prefix.
urlpatterns: list[URLPattern | URLResolver] = [
    path("", RedirectView.as_view(pattern_name="admin:index")),
    path("admin/", admin.site.urls),
    path("i18n/setlang/", set_language, name="set_language"),
    path(PREFIX, include(_api)),
    path("", include(_api)),
]

handler400 = "ipxeready.web.views.bad_request"
handler403 = "ipxeready.web.views.permission_denied"
handler404 = "ipxeready.web.views.not_found"
handler500 = "ipxeready.web.views.server_error"
