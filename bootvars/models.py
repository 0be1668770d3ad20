"""Runtime settings as rows of the index."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from ipxeready.index.models import IndexedModel


class Setting(IndexedModel):
    """One key of state/settings.json."""

    key = models.CharField(_("setting"), max_length=63, primary_key=True)
    value = models.JSONField(_("value"))

    class Meta:
        verbose_name = _("setting")
        verbose_name_plural = _("settings")
