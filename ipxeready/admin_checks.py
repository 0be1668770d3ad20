"""System checks of the model pages."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.core.checks import CheckMessage, Error, register


@register()
def admin_writes_through_services(**_kwargs: Any) -> list[CheckMessage]:
    """No model page may save rows by itself: files are the truth, and services write them."""
    found: list[CheckMessage] = []
    for model, page in admin.site._registry.items():
        for option, number in (("list_editable", "E002"), ("inlines", "E003")):
            if getattr(page, option):
                message = (
                    f"{model.__name__} has {option}, which saves past the services"
                )
                hint = "let an action or the form call a service"
                found.append(
                    Error(message, hint=hint, obj=page, id=f"ipxeready.{number}")
                )
    return found
