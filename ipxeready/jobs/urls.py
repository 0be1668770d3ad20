"""Addresses of jobs."""

from __future__ import annotations

from django.urls import URLPattern

from ipxeready.jobs import api
from ipxeready.web.routing import api_path

urlpatterns: list[URLPattern] = [
    api_path("jobs", api.JobList.as_view(), name="jobs"),
    api_path("jobs/<job_id>", api.JobDetail.as_view(), name="job"),
]
