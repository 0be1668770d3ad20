"""Storage nodes as rows of the index."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.choices import AccessMode
from ipxeready.index.models import IndexedModel


class Agent(IndexedModel):
    """A storage node of config/agents.yml; `data` is its record without the token."""

    id = models.CharField(_("node"), max_length=63, primary_key=True)
    base_url = models.CharField(_("address"), max_length=1024)
    #: As the file has it, `${NAME}` unexpanded. Never rendered, never logged.
    token = models.CharField(max_length=4096, default="", editable=False)
    iscsi_server = models.CharField(
        _("address for iSCSI"), max_length=255, default="", blank=True
    )
    role_disk = models.BooleanField(_("disks"), default=True)
    role_cd = models.BooleanField(_("install CDs"), default=False)
    tags = models.JSONField(_("tags"), default=list, blank=True)
    enabled = models.BooleanField(_("enabled"), default=True, db_index=True)
    #: For targets of workers that say nothing themselves.
    access = models.CharField(
        _("access"),
        max_length=8,
        choices=AccessMode.choices,
        default=AccessMode.OFF,
        db_index=True,
    )
    data = models.JSONField(default=dict, editable=False)

    class Meta:
        verbose_name = _("storage node")
        verbose_name_plural = _("storage nodes")
        ordering = ("id",)

    def __str__(self) -> str:
        return self.id

    def __repr__(self) -> str:
        # Rows end up in tracebacks and logs: no token there.
        return f"<Agent {self.id} {self.base_url}>"
