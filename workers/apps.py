"""The app of workers: registers the ledger and the hosts file with the index."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class WorkersConfig(AppConfig):
    """Identity, bindings, system disks, default boot."""

    name = "workers"
    verbose_name = _("Workers")

    def ready(self) -> None:
        """Make both files known to the index, to the health page and to the registry of nodes who uses them."""
        from agents.services import IN_USE, LOADS, TARGET_OWNERS
        from ipxeready.index import register
        from ipxeready.jobs.kinds import lost, recover
        from ipxeready.startup import at_start, in_each_process
        from ipxeready.web.health import health_section
        from ipxeready.web.troubles import trouble_source
        from workers import access, batch_jobs, jobs, keeper, recovery, troubles
        from workers.adapters import WorkersSource
        from workers.chapfile import ChapSecretsSource
        from workers.hostsfile import HostsSource
        from workers.selectors import (
            differences,
            loads,
            target_owners,
            workers_on,
        )
        from workers.settle import settle_all

        register(WorkersSource())
        register(HostsSource())
        register(ChapSecretsSource())
        at_start(settle_all)
        in_each_process(keeper.start)
        recover(jobs.DISK, recovery.disk_ended, name=_("disk of a worker"))
        rows = "admin:board_job"
        recover(
            jobs.DISKS,
            recovery.disks_ended,
            name=_("disks of many workers"),
            page=rows,
        )
        recover(jobs.RESET, recovery.reset_ended, name=_("reset of a disk"))
        recover(
            jobs.DELETION,
            recovery.deletion_ended,
            name=_("deletion of many workers"),
            page=rows,
        )
        trouble_source(troubles.sources)
        for kind, name in (
            (batch_jobs.BOOTS, _("boot of many workers")),
            (batch_jobs.RESETS, _("reset of many disks")),
            (batch_jobs.ACCESSES, _("access to many workers")),
        ):
            # Each can be sent again: what is so already stays so.
            recover(kind, lost, name=name, page=rows)
        health_section("differences", lambda: [*differences(), *access.differences()])
        if workers_on not in IN_USE:
            IN_USE.append(workers_on)
        if target_owners not in TARGET_OWNERS:
            TARGET_OWNERS.append(target_owners)
        if loads not in LOADS:
            LOADS.append(loads)
