"""Django's admin with our site in the place of the default one."""

from __future__ import annotations

from django.contrib.admin.apps import AdminConfig


class ControlPlaneAdminConfig(AdminConfig):
    """Finds the apps' model pages and registers them with ControlPlaneSite."""

    default_site = "ipxeready.site.ControlPlaneSite"
