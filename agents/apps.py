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
        from agents import intake_jobs, jobs, troubles
        from agents.adapters import AgentsSource
        from ipxeready.index import register
        from ipxeready.jobs.kinds import recover
        from ipxeready.web.troubles import trouble_source

        register(AgentsSource())
        trouble_source(troubles.sources)
        recover(jobs.DISK, jobs.disk_ended, name=_("disk on a node"))
        recover(jobs.SCAN, jobs.scan_ended, name=_("scan of a node"))
        recover(
            intake_jobs.CONVERT, intake_jobs.ended, name=_("conversion of an image")
        )
        recover(intake_jobs.FINISH, intake_jobs.ended, name=_("end of an upload"))
