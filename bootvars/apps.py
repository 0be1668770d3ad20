"""The app of boot variables: registers the runtime settings with the index."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class BootvarsConfig(AppConfig):
    """Who is asking and what it boots."""

    name = "bootvars"
    verbose_name = _("Boot")

    def ready(self) -> None:
        """Make settings.json known to the index, and put our parts on the pages of workers."""
        from bootvars.adapters import SettingsSource
        from bootvars.pages import boot_part, switch_part
        from ipxeready.index import register
        from workers.pages.parts import LIST_PARTS, WORKER_PARTS

        register(SettingsSource())
        if switch_part not in LIST_PARTS:
            LIST_PARTS.append(switch_part)
        if boot_part not in WORKER_PARTS:
            WORKER_PARTS.append(boot_part)
