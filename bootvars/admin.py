"""The page of runtime settings: the switch for zero-touch registration."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.translation import gettext as _t

from bootvars.models import Setting
from bootvars.runtime import auto_register_enabled, auto_register_set
from ipxeready.errors import ApplicationError
from ipxeready.web.actors import actor_of
from ipxeready.web.admin import FileBackedAdmin
from ipxeready.web.serializers import parse_boolean
from ipxeready.web.words import in_words


@admin.register(Setting)
class SettingAdmin(FileBackedAdmin):
    """What can be chosen while running; one page, no rows to add or delete."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Settings are known by name."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Settings are known by name."""
        return False

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: Any = None,
    ) -> HttpResponse:
        """No form for each: the one page has them all."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return HttpResponseRedirect(reverse("admin:bootvars_setting_changelist"))

    def changelist_view(
        self, request: HttpRequest, extra_context: Any = None
    ) -> HttpResponse:
        """Show the switch, or set it."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method == "POST":
            if not self.has_change_permission(request):
                raise PermissionDenied
            try:
                enabled = parse_boolean("enabled", request.POST.get("enabled", ""))
                auto_register_set(actor=actor_of(request), enabled=enabled)
            except ApplicationError as error:
                field = f"{error.field}: " if error.field else ""
                text = f"{field}{in_words(error)}"
                self.message_user(request, text, messages.ERROR)
            else:
                text = (
                    _t("Unknown machines are registered from now on.")
                    if enabled
                    else _t("Unknown machines are no longer registered.")
                )
                self.message_user(request, text, messages.SUCCESS)
            return HttpResponseRedirect(_back(request))
        return TemplateResponse(
            request,
            "bootvars/settings.html",
            {
                **self.admin_site.each_context(request),
                "opts": self.opts,
                "title": _t("Settings"),
                "enabled": auto_register_enabled(),
                "may_change": self.has_change_permission(request),
            },
        )


def _back(request: HttpRequest) -> str:
    """Where the switch was pressed: here, or above the list of workers."""
    workers = reverse("admin:workers_worker_changelist")
    return workers if request.POST.get("next") == workers else request.path
