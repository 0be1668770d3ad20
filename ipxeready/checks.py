"""System checks with ids and hints: mistakes show in `manage.py check`, not as a 500."""

from __future__ import annotations

from typing import Any

import yaml
from django.contrib import admin
from django.core.checks import CheckMessage, Error, register


@register()
def yaml_is_fast(**_kwargs: Any) -> list[CheckMessage]:
    """PyYAML must have its C loader: thirty seconds a file instead of two otherwise."""
    if yaml.__with_libyaml__:
        return []
    hint = "install PyYAML from a wheel, or libyaml-dev before building it"
    return [Error("PyYAML was built without libyaml", hint=hint, id="ipxeready.E001")]


@register()
def admin_writes_through_services(**_kwargs: Any) -> list[CheckMessage]:
    """No model page may save rows by itself: files are the truth, and services write them."""
    found: list[CheckMessage] = []
    for model, page in admin.site._registry.items():
        if page.list_editable:
            message = (
                f"{model.__name__} has list_editable, which saves past the services"
            )
            found.append(Error(message, id="ipxeready.E002", obj=page))
        if page.inlines:
            message = f"{model.__name__} has inlines, which save past the services"
            found.append(Error(message, id="ipxeready.E003", obj=page))
    return found
