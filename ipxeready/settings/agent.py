"""Settings of agent mode: the API of one storage node, without database, users or pages."""

from __future__ import annotations

from agents.protocol.limits import MAX_BODY
from ipxeready.settings.base import *

INSTALLED_APPS = ["ipxeready.apps.PlatformConfig"]
MIDDLEWARE = ["agents.node.http.BearerMiddleware"]
ROOT_URLCONF = "agents.node.urls"
DATABASES: dict[str, dict[str, object]] = {}

#: The longest request names an image and a master.
DATA_UPLOAD_MAX_MEMORY_SIZE = MAX_BODY
DATA_UPLOAD_MAX_NUMBER_FIELDS = 20
DATA_UPLOAD_MAX_NUMBER_FILES = 1
