"""App configurations of the composition: the project itself and its admin."""

from __future__ import annotations

from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class PlatformConfig(AppConfig):
    """The project: commands, checks and what happens at start."""

    name = "ipxeready"
    verbose_name = "ipxeready"

    def ready(self) -> None:
        """Register the system checks."""
        from ipxeready import checks  # noqa: F401


class ControlPlaneAdminConfig(AdminConfig):
    """Django's admin with our site in the place of the default one."""

    default = False
    default_site = "ipxeready.site.ControlPlaneSite"
