"""The roles as choices for forms and filters."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from ipxeready import actors


class Role(models.TextChoices):
    """What a person may do, weakest first."""

    VIEWER = actors.VIEWER, _("viewer")
    OPERATOR = actors.OPERATOR, _("operator")
    ADMINISTRATOR = actors.ADMINISTRATOR, _("administrator")
