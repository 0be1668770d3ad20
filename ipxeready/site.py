"""The one admin site at /admin/."""

from __future__ import annotations

from django.contrib import admin
from django.utils.translation import gettext_lazy as _


class ControlPlaneSite(admin.AdminSite):
    """Django's admin as the control plane's pages."""

    site_title = "ipxeready"
    site_header = "ipxeready"
    index_title = _("Control plane")
    site_url = None
    enable_nav_sidebar = True
