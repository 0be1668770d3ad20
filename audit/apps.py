"""The audit app: registers operations.jsonl with the index."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class AuditConfig(AppConfig):
    """Who did what, when, with what result."""

    name = "audit"
    verbose_name = _("Operations")

    def ready(self) -> None:
        """Make the audit trail known to the index."""
        from audit.adapters import OperationsJournal
        from ipxeready.index import register_journal

        register_journal(OperationsJournal())
