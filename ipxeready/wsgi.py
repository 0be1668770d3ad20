"""The WSGI application; `serve` hands it to gunicorn."""

from __future__ import annotations

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ipxeready.settings")

application = get_wsgi_application()
