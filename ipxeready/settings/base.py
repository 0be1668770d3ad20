"""What both modes share: configuration, paths, time zone, logging, API conventions."""

from __future__ import annotations

import os
import secrets
from pathlib import Path
from typing import Any

from ipxeready import conf
from ipxeready.storage.paths import Layout
from ipxeready.zone import zone_name

BASE_DIR = conf.REPOSITORY
IPXE = conf.load(os.environ)
IPXE_LAYOUT = Layout(IPXE.root)

DEBUG = False

#: A command that runs before the first start (`check`, say) does with a key of its own
#: for as long as it lives; `serve` makes the file and takes its content.
SECRET_KEY = secrets.token_urlsafe(48)

#: A booting machine calls by whatever address DHCP gave it, and a changed address of
#: the controller must not stop a room from booting. No link, redirect or mail is ever
#: built from the Host header, so that there is nothing to poison.
ALLOWED_HOSTS = ["*"]

ROOT_URLCONF = "ipxeready.urls"
WSGI_APPLICATION = "ipxeready.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

LANGUAGE_CODE = "en"
LANGUAGES = [("en", "English"), ("zh-hans", "简体中文")]
LOCALE_PATHS = [BASE_DIR / "locale"]
FORMAT_MODULE_PATH = ["ipxeready.formats"]
USE_I18N = True
USE_TZ = True
TIME_ZONE = zone_name(os.environ)

#: Bodies are JSON records and small forms. A file on its way to a node passes by this limit: it is never held here.
DATA_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
DATA_UPLOAD_MAX_NUMBER_FIELDS = 12_000

REST_FRAMEWORK: dict[str, Any] = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "ipxeready.web.authentication.BearerAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["ipxeready.web.permissions.RolePermission"],
    "DEFAULT_RENDERER_CLASSES": ["ipxeready.web.renderers.AnyJSONRenderer"],
    "DEFAULT_PARSER_CLASSES": [
        "ipxeready.web.parsers.JSONParser",
        "ipxeready.web.parsers.FormParser",
        "ipxeready.web.parsers.MultiPartParser",
    ],
    "EXCEPTION_HANDLER": "ipxeready.web.exceptions.exception_handler",
    # `format` is a parameter of /boot-vars; elsewhere the Accept header decides.
    "URL_FORMAT_OVERRIDE": None,
    "UNAUTHENTICATED_USER": None,
    "UNICODE_JSON": True,
    "COERCE_DECIMAL_TO_STRING": False,
}

LOGGING: dict[str, Any] = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "plain": {"format": "%(asctime)s %(levelname)s %(name)s: %(message)s"},
    },
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "plain"},
    },
    "root": {"handlers": ["stderr"], "level": "INFO"},
    "loggers": {
        "django": {"handlers": [], "propagate": True, "level": "INFO"},
        # A refused request is an answer, not an event: the audit has what matters.
        "django.request": {"level": "ERROR"},
        "django.security.DisallowedHost": {"level": "CRITICAL"},
    },
}


def read_secret_key(path: Path) -> str:
    """The key in `path`, or the one of this process where there is no such file yet."""
    try:
        return path.read_text(encoding="ascii").strip() or SECRET_KEY
    except (OSError, UnicodeDecodeError):
        return SECRET_KEY
