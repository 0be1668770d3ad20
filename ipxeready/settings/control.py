"""Settings of the control plane: pages, API and firmware endpoints over the index."""

from __future__ import annotations

from ipxeready.index.location import index_path
from ipxeready.settings.base import *
from ipxeready.settings.base import read_secret_key

SECRET_KEY = read_secret_key(IPXE_LAYOUT.secret_key)

INSTALLED_APPS = [
    "ipxeready.apps.PlatformConfig",
    "ipxeready.admin_config.ControlPlaneAdminConfig",
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "ipxeready.users",
    "audit",
    "ipxeready.jobs",
    "agents",
    "workers",
    "bootvars",
    # Last: it names its file after the tables and adapters of all others.
    "ipxeready.index",
]

MIDDLEWARE = [
    # First: booting machines must meet none of the others.
    "ipxeready.web.middleware.FirmwareMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "ipxeready.web.middleware.HeadersMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "ipxeready.web.middleware.AddressMiddleware",
    "django.middleware.locale.LocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    # Before the user is looked up: people live in a file as well.
    "ipxeready.web.middleware.FreshIndexMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            # Every template shows text of others: nobody may forget to load the filter for it.
            "builtins": ["ipxeready.web.tags"],
            "context_processors": [
                "django.template.context_processors.request",
                "django.template.context_processors.i18n",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# The index: a throw-away view of the files. `synchronous=OFF` is right only because it
# can be rebuilt; `query_only` makes a stray ORM write die in SQLite itself.
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": index_path(IPXE_LAYOUT.state),
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            "timeout": 10,
            "init_command": (
                "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; PRAGMA query_only=ON"
            ),
        },
    },
}
#: No migrations, ever: a new schema starts a new index.
MIGRATION_MODULES = dict.fromkeys(
    (
        "contenttypes",
        "auth",
        "admin",
        "index",
        "users",
        "audit",
        "agents",
        "workers",
        "bootvars",
    ),
)

AUTH_USER_MODEL = "users.Operator"
AUTHENTICATION_BACKENDS = ["ipxeready.users.backends.FileBackend"]
LOGIN_URL = "admin:login"
LOGIN_REDIRECT_URL = "admin:index"
AUTH_PASSWORD_VALIDATORS = [
    {
        "NAME": "ipxeready.users.validators.LengthValidator",
        "OPTIONS": {"min_length": 10},
    },
    {"NAME": "django.contrib.auth.password_validation.CommonPasswordValidator"},
    {"NAME": "django.contrib.auth.password_validation.NumericPasswordValidator"},
]

SESSION_ENGINE = "django.contrib.sessions.backends.signed_cookies"
SESSION_COOKIE_NAME = "ipxeready"
SESSION_COOKIE_AGE = 12 * 60 * 60
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_SECURE = IPXE.tls
CSRF_COOKIE_SECURE = IPXE.tls
CSRF_COOKIE_HTTPONLY = False  # the pages' small scripts read it
CSRF_COOKIE_SAMESITE = "Lax"
CSRF_FAILURE_VIEW = "ipxeready.web.views.csrf_failure"
MESSAGE_STORAGE = "django.contrib.messages.storage.cookie.CookieStorage"
LANGUAGE_COOKIE_AGE = 365 * 24 * 60 * 60
LANGUAGE_COOKIE_SAMESITE = "Lax"
LANGUAGE_COOKIE_SECURE = IPXE.tls

X_FRAME_OPTIONS = "DENY"
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CONTENT_TYPE_NOSNIFF = True
#: What firmware fetches is never redirected (FirmwareMiddleware sees to it already).
SECURE_REDIRECT_EXEMPT = [r"^(api/cp/)?(healthz|boot-vars|file)(/|$)"]
if IPXE.tls:
    SECURE_SSL_REDIRECT = True
    SECURE_HSTS_SECONDS = 365 * 24 * 60 * 60
    # Other names below this site's domain, and browsers' built-in lists, are not ours.
    SECURE_HSTS_INCLUDE_SUBDOMAINS = False
    SECURE_HSTS_PRELOAD = False
    # IPXE_TLS=1 says that a proxy of ours ends TLS and sets this header.
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
    SILENCED_SYSTEM_CHECKS = [
        "security.W005",  # HSTS for subdomains, see above
        "security.W021",  # HSTS preload, see above
    ]
else:
    # A closed room has no certificates and firmware speaks plain HTTP: it works as
    # shipped, and IPXE_TLS=1 turns all of these on.
    SILENCED_SYSTEM_CHECKS = [
        "security.W004",  # no HSTS
        "security.W008",  # no redirect to HTTPS
        "security.W011",  # session cookie also over HTTP (the app is not installed)
        "security.W012",  # the same, seen the other way
        "security.W016",  # CSRF cookie also over HTTP
    ]

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
#: Served straight from the apps' folders: a clean clone needs no collectstatic.
WHITENOISE_USE_FINDERS = True
WHITENOISE_AUTOREFRESH = False
WHITENOISE_MAX_AGE = 300

REST_FRAMEWORK = {
    **REST_FRAMEWORK,
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "ipxeready.users.authentication.TokenAuthentication",
        "ipxeready.web.authentication.SessionAuthentication",
    ],
    "DEFAULT_RENDERER_CLASSES": [
        "ipxeready.web.renderers.AnyJSONRenderer",
        "rest_framework.renderers.BrowsableAPIRenderer",
    ],
    "DEFAULT_PAGINATION_CLASS": "ipxeready.web.pagination.AskedForPagination",
    "DEFAULT_FILTER_BACKENDS": ["django_filters.rest_framework.DjangoFilterBackend"],
    "DEFAULT_SCHEMA_CLASS": "ipxeready.web.schema.ApiSchema",
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "ipxeready control plane",
    "DESCRIPTION": "Workers without disks, their storage nodes and their boot variables.",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    # The same paths answer below /api/cp; one of the two is enough to read.
    "PREPROCESSING_HOOKS": ["ipxeready.web.routing.without_prefix"],
    "POSTPROCESSING_HOOKS": [
        "drf_spectacular.hooks.postprocess_schema_enums",
        "ipxeready.openapi.with_firmware",
    ],
}
