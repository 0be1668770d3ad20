"""The page of people, for administrators."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.models import Group
from django.http import HttpRequest

from ipxeready.actors import Actor
from ipxeready.users import services
from ipxeready.users.forms import OperatorForm
from ipxeready.users.models import Operator
from ipxeready.web.admin import FileBackedAdmin

# Roles take the place of groups; the app is only there because Django's admin asks for it.
admin.site.unregister(Group)


@admin.register(Operator)
class OperatorAdmin(FileBackedAdmin):
    """Who may log in, and as what."""

    source = "users"
    form = OperatorForm
    change_form_template = "users/change_form.html"
    list_display = ("username", "role", "is_active")
    list_filter = ("role", "is_active")
    search_fields = ("username",)
    ordering = ("username",)
    fields = ("username", "role", "is_active", "password")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """A new person is active; the name is given once."""
        return self.fields if obj else ("username", "role", "password")

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """The name is the key."""
        return ("username",) if obj else ()

    def service_create(self, actor: Actor, data: dict[str, Any]) -> Operator:
        """Add the person."""
        return services.user_create(
            actor=actor,
            username=data["username"],
            password=data["password"],
            role=data["role"],
        )

    def service_update(self, actor: Actor, obj: Any, data: dict[str, Any]) -> Operator:
        """Change role, activity and password, whichever the form changed."""
        saved: Operator = obj
        if "role" in data or "is_active" in data:
            saved = services.user_update(
                actor=actor,
                username=obj.pk,
                role=data.get("role"),
                is_active=data.get("is_active"),
            )
        if data.get("password"):
            saved = services.user_set_password(
                actor=actor, username=obj.pk, password=data["password"]
            )
        return saved

    def service_delete(self, actor: Actor, obj: Any) -> None:
        """Remove the person."""
        services.user_delete(actor=actor, username=obj.pk)
