"""Bodies of the settings endpoints."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers
from rest_framework.fields import empty

from ipxeready.errors import Invalid
from ipxeready.web.serializers import StrictSerializer, parse_boolean


class Flag(serializers.BooleanField):
    """true or false, and nothing that merely looks like it; a form that leaves it out has not said false."""

    default_empty_html = empty
    default_error_messages = {"required": "is needed: true or false"}

    def to_internal_value(self, data: Any) -> bool:
        """JSON's own booleans; from a form the words of a query."""
        if isinstance(data, bool):
            return data
        if isinstance(data, str) and hasattr(self.parent.initial_data, "getlist"):
            try:
                return parse_boolean("enabled", data)
            except Invalid as error:
                raise serializers.ValidationError(error.message) from None
        raise serializers.ValidationError(f"{data!r:.100} must be true or false")


class AutoRegisterSerializer(StrictSerializer):
    """`{"enabled": bool}`."""

    enabled = Flag()
