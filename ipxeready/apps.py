"""The app of the project itself: its commands and checks, in both modes."""

from __future__ import annotations

from django.apps import AppConfig, apps


class PlatformConfig(AppConfig):
    """Commands, system checks and what happens at start."""

    name = "ipxeready"
    verbose_name = "ipxeready"

    def ready(self) -> None:
        """Register the checks and, in the control plane, those of pages and the health sections."""
        from ipxeready import checks  # noqa: F401

        if apps.is_installed("django.contrib.admin"):
            from ipxeready import admin_checks, parts  # noqa: F401

            parts.register()
