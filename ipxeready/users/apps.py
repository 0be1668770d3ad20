"""The app of people: registers config/users.yml with the index."""

from __future__ import annotations

from django.apps import AppConfig
from django.utils.translation import gettext_lazy as _


class UsersConfig(AppConfig):
    """People who log in."""

    name = "ipxeready.users"
    label = "users"
    verbose_name = _("Users")

    def ready(self) -> None:
        """Register the file, and the first administrator with the start."""
        from ipxeready.index.sources import register
        from ipxeready.startup import at_start
        from ipxeready.users.adapters import UsersFile
        from ipxeready.users.services import first_administrator

        register(UsersFile())
        at_start(first_administrator)
