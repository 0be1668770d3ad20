"""The closed lists of a node's values."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from agents.protocol import access


class AccessMode(models.TextChoices):
    """Who may log in to a target."""

    OFF = access.OFF, _("off: every initiator")
    ACL = access.ACL, _("acl: only the worker's own initiator name")
    CHAP = access.CHAP, _("chap: that name, and a secret")
