"""The app of storage nodes: registers config/agents.yml with the index."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AgentsConfig(AppConfig):
    """The machines that hold disk images and export them."""

    name = "agents"
    verbose_name = _("Storage nodes")

    def ready(self) -> None:
        """Make the registry known to the index, and the nodes part of the health answer."""
        from agents.adapters import AgentsSource
        from agents.health import nodes_section
        from ipxeready.index import register
        from ipxeready.web.health import health_section

        register(AgentsSource())
        health_section("nodes", nodes_section)
