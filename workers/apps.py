"""The app of workers: registers the ledger and the hosts file with the index."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class WorkersConfig(AppConfig):
    """Identity, bindings, system disks, default boot."""

    name = "workers"
    verbose_name = _("Workers")

    def ready(self) -> None:
        """Make both files known to the index."""
        from ipxeready.index import register
        from ipxeready.startup import at_start
        from workers.adapters import WorkersSource
        from workers.disks import settle_all
        from workers.hostsfile import HostsSource

        register(WorkersSource())
        register(HostsSource())
        at_start(settle_all)
