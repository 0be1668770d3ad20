"""The app of storage nodes: registers config/agents.yml with the index."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AgentsConfig(AppConfig):
    """The machines that hold disk images and export them."""

    name = "agents"
    verbose_name = _("Storage nodes")

    def ready(self) -> None:
        """Make the registry known to the index."""
        from agents.adapters import AgentsSource
        from ipxeready.index import register

        register(AgentsSource())
