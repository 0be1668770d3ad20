"""Addresses of the workers app."""

from __future__ import annotations

from django.urls import URLPattern

from ipxeready.web.routing import api_path
from workers import api

urlpatterns: list[URLPattern] = [
    api_path("workers", api.WorkersView.as_view(), name="workers"),
    api_path("workers/luns/disk/batch", api.DiskBatchView.as_view(), name="disk-batch"),
    api_path(
        "workers/delete/batch", api.WorkersDeleteView.as_view(), name="workers-delete"
    ),
    api_path("workers/<worker_id>", api.WorkerView.as_view(), name="worker"),
    api_path(
        "workers/<worker_id>/status",
        api.WorkerStatusView.as_view(),
        name="worker-status",
    ),
    api_path("workers/<worker_id>/mac", api.WorkerMacView.as_view(), name="worker-mac"),
    api_path(
        "workers/<worker_id>/default-os",
        api.WorkerDefaultOsView.as_view(),
        name="worker-default-os",
    ),
    api_path(
        "workers/<worker_id>/access",
        api.WorkerAccessView.as_view(),
        name="worker-access",
    ),
    api_path(
        "agents/<agent_id>/access", api.AgentAccessView.as_view(), name="agent-access"
    ),
    api_path(
        "workers/<worker_id>/luns/disk",
        api.WorkerDisksView.as_view(),
        name="worker-disks",
    ),
    api_path(
        "workers/<worker_id>/luns/cd", api.WorkerCdView.as_view(), name="worker-cd"
    ),
    api_path(
        "workers/<worker_id>/luns/disk/<os>",
        api.WorkerDiskView.as_view(),
        name="worker-disk",
    ),
    api_path(
        "workers/<worker_id>/luns/disk/<os>/grow",
        api.WorkerDiskGrowView.as_view(),
        name="worker-disk-grow",
    ),
    api_path(
        "workers/<worker_id>/luns/disk/<os>/reset",
        api.WorkerDiskResetView.as_view(),
        name="worker-disk-reset",
    ),
]
