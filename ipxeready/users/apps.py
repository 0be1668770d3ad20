"""The app of people: registers config/users.yml with the index."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class UsersConfig(AppConfig):
    """People who log in."""

    name = "ipxeready.users"
    label = "users"
    verbose_name = _("Users")
