"""People who log in: rows of config/users.yml."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.contrib.auth.hashers import check_password
from django.db import models
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext_lazy as _

from ipxeready.actors import ROLES, VIEWER
from ipxeready.index.models import IndexedModel
from ipxeready.users.choices import Role

#: What a viewer may do on model pages; everything else changes something.
_READING = "view"
#: What only administrators change: people, and which storage nodes there are.
_ADMINISTERED = frozenset({"users", "agents"})


class Token(IndexedModel):
    """A personal API token, as the record of its owner has it; never the token itself."""

    #: Owner and id, as a copy by hand may give one id to two people.
    key = models.CharField(max_length=128, primary_key=True)
    token_id = models.CharField(max_length=32, db_index=True)
    username = models.CharField(_("user name"), max_length=63, db_index=True)
    name = models.CharField(_("name"), max_length=64)
    role = models.CharField(_("role"), max_length=16, choices=Role)
    sha256 = models.CharField(max_length=64)
    created = models.DateTimeField(_("made"), null=True)
    expires = models.DateTimeField(_("expires"), null=True)

    class Meta:
        verbose_name = _("token")
        verbose_name_plural = _("tokens")
        ordering = ("username", "name")

    def __str__(self) -> str:
        return f"{self.username}: {self.name}"


class OperatorManager(BaseUserManager["Operator"]):
    """Looks people up; making them is the services' business."""


class Operator(IndexedModel, AbstractBaseUser):
    """A person; the role decides what may be done, in code and not by permission rows."""

    username = models.CharField(_("user name"), max_length=63, primary_key=True)
    role = models.CharField(_("role"), max_length=16, choices=Role, default=Role.VIEWER)
    is_active = models.BooleanField(_("active"), default=True)
    #: Changed to end all sessions of this person, as signed cookies cannot be withdrawn.
    nonce = models.CharField(max_length=64, default="", editable=False)
    #: Logging in must not write: there is no such column.
    last_login = None

    objects: ClassVar[OperatorManager] = OperatorManager()

    USERNAME_FIELD = "username"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        verbose_name = _("user")
        verbose_name_plural = _("users")
        ordering = ("username",)

    def check_password(self, raw_password: str | None) -> bool:
        """Compare only: Django would store a hash of newer strength, which is a write on login."""
        try:
            return check_password(raw_password, self.password)
        except (ValueError, OverflowError):
            # A hash by hand that nothing here can compute: nobody logs in with it.
            return False

    @property
    def is_staff(self) -> bool:
        """Everybody who may log in may see the pages."""
        return self.is_active

    @property
    def is_superuser(self) -> bool:
        """Administrators may do everything."""
        return self.is_active and self.role == Role.ADMINISTRATOR

    def may(self, role: str) -> bool:
        """Whether this person has at least `role`."""
        return self.is_active and ROLES.index(self.role) >= ROLES.index(role)

    def has_perm(self, perm: str, obj: object = None) -> bool:
        """Viewers see, operators change; people and the registry of nodes are administrators' business."""
        app, _dot, codename = perm.partition(".")
        if not self.is_active:
            return False
        reading = codename.startswith(_READING)
        if app == "users" or (app in _ADMINISTERED and not reading):
            return self.may(Role.ADMINISTRATOR)
        return self.may(VIEWER if reading else Role.OPERATOR)

    def has_perms(self, perm_list: Iterable[str], obj: object = None) -> bool:
        """Whether every one of these is allowed."""
        return all(self.has_perm(perm, obj) for perm in perm_list)

    def has_module_perms(self, app_label: str) -> bool:
        """Which apps show on the start page."""
        return self.has_perm(f"{app_label}.view")

    def _get_session_auth_hash(self, secret: str | None = None) -> str:
        """The session ends when the password, the nonce or the role changes."""
        mixed = "\0".join((self.password, self.nonce, self.role))
        salt = "ipxeready.users.Operator.session"
        return salted_hmac(salt, mixed, secret=secret, algorithm="sha256").hexdigest()
