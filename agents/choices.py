"""The closed lists of a node's values."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from agents import protocol


class AccessMode(models.TextChoices):
    """Who may log in to a target."""

    OFF = protocol.OFF, _("off: every initiator")
    ACL = protocol.ACL, _("acl: only the worker's own initiator name")
    CHAP = protocol.CHAP, _("chap: that name, and a secret")
