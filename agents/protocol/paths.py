"""The addresses of a node's API, and the header that opens them."""

from __future__ import annotations

AUTHORIZATION = "Authorization"
BEARER = "Bearer "

HEALTHZ = "/healthz"
CAPABILITIES = "/capabilities"
MASTERS = "/masters"
LUN = "/lun"
LUN_DISK = "/lun/disk"
LUN_CD = "/lun/cd"
LUN_SCAN = "/lun/scan"
LUN_ACCESS = "/lun/access"
LUN_GROW = "/lun/grow"
LUN_RESET = "/lun/reset"
IMAGES = "/images"
IMAGES_CONVERT = "/images/convert"
UPLOADS = "/uploads"
JOBS = "/jobs"
HEALTH = "/health"
LOGS = "/logs"
