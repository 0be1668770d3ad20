"""Lines of operations.jsonl as rows."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _


class Operation(models.Model):
    """One line of the audit trail; `data` is the line itself."""

    id = models.BigIntegerField(primary_key=True)
    ts = models.DateTimeField(_("time"), null=True, db_index=True)
    op = models.CharField(_("operation"), max_length=64, db_index=True)
    status = models.CharField(_("status"), max_length=16, db_index=True)
    worker_id = models.CharField(_("worker"), max_length=255, default="", db_index=True)
    agent = models.CharField(_("node"), max_length=255, default="", db_index=True)
    user = models.CharField(_("user"), max_length=255, default="", db_index=True)
    client = models.CharField(_("client"), max_length=255, default="")
    data = models.JSONField(_("details"), default=dict)

    class Meta:
        verbose_name = _("operation")
        verbose_name_plural = _("operations")
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.op} {self.pk}"
