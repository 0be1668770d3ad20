"""The app of the index: gives the database its name once all tables are known."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class IndexConfig(AppConfig):
    """The throw-away projection of the files."""

    name = "ipxeready.index"
    label = "index"
    verbose_name = _("Index")
