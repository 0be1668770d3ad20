"""System checks with ids and hints: mistakes show in `manage.py check`, not as a 500."""

from __future__ import annotations

from typing import Any

import yaml
from django.core.checks import CheckMessage, Error, register


@register()
def yaml_is_fast(**_kwargs: Any) -> list[CheckMessage]:
    """PyYAML must have its C loader: thirty seconds a file instead of two otherwise."""
    if yaml.__with_libyaml__:
        return []
    hint = "install PyYAML from a wheel, or libyaml-dev before building it"
    return [Error("PyYAML was built without libyaml", hint=hint, id="ipxeready.E001")]
