"""The audit trail in the admin site: pages of our own under the model's addresses; nothing can be changed by anyone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest

from audit import pages
from audit.models import Operation

if TYPE_CHECKING:  # Django's class takes a parameter in its stubs only
    _ModelAdmin = admin.ModelAdmin[Operation]
else:
    _ModelAdmin = admin.ModelAdmin


@admin.register(Operation)
class OperationAdmin(_ModelAdmin):
    """Who did what, when, from where and with what result."""

    def get_urls(self) -> list[Any]:
        """Our pages before Django's, of which those that refuse are left."""
        return [*pages.urls(), *super().get_urls()]

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Only services write the trail."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """What happened does not change."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """What happened does not go away."""
        return False
