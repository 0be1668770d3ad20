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
        from django.contrib.auth.signals import user_logged_in, user_logged_out

        from ipxeready.index.sources import register
        from ipxeready.startup import at_start
        from ipxeready.users import trail
        from ipxeready.users.adapters import UsersFile
        from ipxeready.users.services import first_administrator

        register(UsersFile())
        user_logged_in.connect(trail.logged_in, dispatch_uid="ipxeready.login")
        user_logged_out.connect(trail.logged_out, dispatch_uid="ipxeready.logout")
        at_start(first_administrator)
