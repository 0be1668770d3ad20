"""Addresses of the agents app."""

from __future__ import annotations

from django.urls import URLPattern

from agents import api, intake_api
from ipxeready.web.routing import api_path

urlpatterns: list[URLPattern] = [
    api_path("agents", api.AgentList.as_view(), name="agents"),
    api_path("agents/probe", api.AgentProbe.as_view(), name="agent-probe"),
    api_path("agents/<agent_id>", api.AgentDetail.as_view(), name="agent"),
    api_path(
        "agents/<agent_id>/health", api.AgentHealth.as_view(), name="agent-health"
    ),
    api_path("agents/<agent_id>/luns", api.LunList.as_view(), name="agent-luns"),
    api_path(
        "agents/<agent_id>/luns/disk", api.LunDisk.as_view(), name="agent-lun-disk"
    ),
    api_path("agents/<agent_id>/luns/cd", api.LunCd.as_view(), name="agent-lun-cd"),
    api_path(
        "agents/<agent_id>/luns/scan", api.LunScan.as_view(), name="agent-lun-scan"
    ),
    api_path(
        "agents/<agent_id>/luns/access",
        api.LunAccess.as_view(),
        name="agent-lun-access",
    ),
    api_path("agents/<agent_id>/logs", api.AgentLog.as_view(), name="agent-logs"),
    api_path("agents/<agent_id>/jobs", api.NodeJobList.as_view(), name="agent-jobs"),
    api_path(
        "agents/<agent_id>/jobs/<job_id>",
        api.NodeJobDetail.as_view(),
        name="agent-job",
    ),
    api_path(
        "agents/<agent_id>/images",
        intake_api.AgentImages.as_view(),
        name="agent-images",
    ),
    api_path(
        "agents/<agent_id>/images/convert",
        intake_api.AgentImageConvert.as_view(),
        name="agent-image-convert",
    ),
    api_path(
        "agents/<agent_id>/uploads",
        intake_api.AgentUploads.as_view(),
        name="agent-uploads",
    ),
    api_path(
        "agents/<agent_id>/uploads/<upload_id>",
        intake_api.AgentUpload.as_view(),
        name="agent-upload",
    ),
    api_path(
        "agents/<agent_id>/uploads/<upload_id>/finish",
        intake_api.AgentUploadFinish.as_view(),
        name="agent-upload-finish",
    ),
    api_path("masters", api.MasterList.as_view(), name="masters"),
]
