"""Every address of agent mode; a trailing slash is optional."""

from __future__ import annotations

from django.urls import re_path

from agents.node import api, intake
from agents.node.http import endpoint
from agents.protocol import paths


def _at(path: str) -> str:
    return rf"^{path.lstrip('/')}/?\Z"


urlpatterns = [
    re_path(_at(paths.HEALTHZ), endpoint(get=api.healthz), name="healthz"),
    re_path(_at(paths.CAPABILITIES), endpoint(get=api.capabilities)),
    re_path(_at(paths.HEALTH), endpoint(get=api.node_health)),
    re_path(_at(paths.MASTERS), endpoint(get=api.masters)),
    re_path(_at(paths.LUN), endpoint(get=api.lun_list, delete=api.target_delete)),
    re_path(_at(paths.LUN_DISK), endpoint(post=api.disk_create)),
    re_path(_at(paths.LUN_CD), endpoint(post=api.cd_create)),
    re_path(_at(paths.LUN_SCAN), endpoint(post=api.scan)),
    re_path(_at(paths.JOBS), endpoint(get=api.job_list)),
    re_path(
        _at(paths.JOBS + "/(?P<job_id>[^/]+)"),
        endpoint(get=api.job_get, delete=api.job_cancel),
    ),
    re_path(_at(paths.LUN_ACCESS), endpoint(post=api.access_set)),
    re_path(_at(paths.IMAGES), endpoint(get=intake.images, delete=intake.image_delete)),
    re_path(_at(paths.IMAGES_CONVERT), endpoint(post=intake.image_convert)),
    re_path(
        _at(paths.UPLOADS),
        endpoint(get=intake.uploads, post=intake.upload_create),
    ),
    re_path(
        _at(f"{paths.UPLOADS}/(?P<upload_id>[0-9a-f]+)"),
        endpoint(
            get=intake.upload, patch=intake.upload_write, delete=intake.upload_delete
        ),
    ),
    re_path(
        _at(f"{paths.UPLOADS}/(?P<upload_id>[0-9a-f]+)/finish"),
        endpoint(post=intake.upload_finish),
    ),
    re_path(_at(paths.LUN_GROW), endpoint(post=api.disk_grow)),
    re_path(_at(paths.LUN_RESET), endpoint(post=api.disk_reset)),
    re_path(_at(paths.LOGS), endpoint(get=api.logs)),
]

handler400 = "agents.node.http.bad_request"
handler404 = "agents.node.http.not_found"
handler500 = "agents.node.http.server_error"
