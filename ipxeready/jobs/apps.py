"""The app of jobs: its command; the files in state/jobs are no part of the index."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class JobsConfig(AppConfig):
    """Work that takes long."""

    name = "ipxeready.jobs"
    label = "jobs"
    verbose_name = _("Jobs")

    def ready(self) -> None:
        """Have what failed lately told with what else is wrong."""
        from ipxeready.jobs import troubles
        from ipxeready.web.troubles import trouble_source

        trouble_source(troubles.sources)
