"""The app of the index: gives the database its name once all tables are known."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class IndexConfig(AppConfig):
    """The throw-away projection of the files."""

    name = "ipxeready.index"
    label = "index"
    verbose_name = _("Index")

    def ready(self) -> None:
        """A new schema starts a new file; this app comes last, when all tables and adapters are known."""
        from pathlib import Path

        from django.db import connections

        from ipxeready.index.build import schema_digest

        database = connections.databases["default"]
        plain = Path(database["NAME"])
        database["NAME"] = str(plain.with_stem(f"{plain.stem}-{schema_digest()}"))
