"""The app of boot variables: registers the runtime settings with the index."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class BootvarsConfig(AppConfig):
    """Who is asking and what it boots."""

    name = "bootvars"
    verbose_name = _("Boot")

    def ready(self) -> None:
        """Make settings.json known to the index."""
        from bootvars.adapters import SettingsSource
        from ipxeready.index import register

        register(SettingsSource())
