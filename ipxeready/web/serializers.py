"""Input that is taken literally: unknown fields and parameters are refused, never dropped."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rest_framework import serializers
from rest_framework.request import Request

from ipxeready.errors import Invalid
from ipxeready.said import said

#: A form's own field, sent along by every page.
_IGNORED = frozenset({"csrfmiddlewaretoken"})
_NESTED = re.compile(r"(\w+)(?:\.|(\[[0-9]+\]))")
_DIGITS = re.compile(r"-?[0-9]+")
_BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


class StrictSerializer(serializers.Serializer[Any]):
    """A serializer that refuses fields it does not know: a typo must not be silently dropped."""

    def to_internal_value(self, data: Any) -> Any:
        """Check the names first, then the values."""
        if isinstance(data, Mapping):
            known = {name for name, field in self.fields.items() if not field.read_only}
            names = {
                str(name): self._field_of(data, str(name))
                for name in data
                if name not in _IGNORED
            }
            unknown = [name for name, field in names.items() if field not in known]
            if unknown:
                rule = f"unknown field; known are: {', '.join(sorted(known)) or 'none'}"
                raise serializers.ValidationError({name: [rule] for name in unknown})
        return super().to_internal_value(data)

    def _field_of(self, data: Mapping[str, Any], name: str) -> str:
        """The field that a name of the input means: a form writes `boot.menu_default`, `targets[0]agent`, `tags[0]`."""
        if not hasattr(data, "getlist"):
            return name
        found = _NESTED.match(name)
        if found is None:
            return name
        field = self.fields.get(found[1])
        lists = (serializers.ListField, serializers.ListSerializer)
        kind = lists if found[2] else serializers.BaseSerializer
        return found[1] if isinstance(field, kind) else name


class WholeNumberField(serializers.IntegerField):
    """A whole number, or its plain digits in a form: DRF's own takes `"1_0"` and `"+5"` for numbers too."""

    def to_internal_value(self, data: Any) -> int:
        """The number, or what DRF says where there is none."""
        if isinstance(data, str) and not _DIGITS.fullmatch(data.strip()):
            self.fail("invalid")
        return int(super().to_internal_value(data))


def parse_boolean(name: str, text: str) -> bool:
    """A boolean of a query: true, false, 1 or 0."""
    try:
        return _BOOLEANS[text.lower()]
    except KeyError:
        raise Invalid(said("must be true, false, 1 or 0"), field=name) from None


def query_flag(request: Request, name: str, default: bool = False) -> bool:
    """The boolean query parameter `name`."""
    text = request.query_params.get(name)
    return default if text is None else parse_boolean(name, text)


def strict_query(
    request: Request, allowed: Mapping[str, bool | str | None]
) -> dict[str, Any]:
    """The query by name, with the defaults in `allowed`; a bool default makes a flag.

    Unknown and repeated parameters are refused.
    """
    for name in request.query_params:
        if name not in allowed:
            rule = said(
                "unknown parameter; known are: {names}",
                names=", ".join(sorted(allowed)) or "none",
            )
            raise Invalid(rule, field=name)
        if len(request.query_params.getlist(name)) > 1:
            raise Invalid(said("is given more than once"), field=name)
    return {
        name: (
            query_flag(request, name, default)
            if isinstance(default, bool)
            else request.query_params.get(name, default)
        )
        for name, default in allowed.items()
    }


def no_body(request: Request) -> None:
    """Refuse a body where none is expected, by the name of its first field."""
    StrictSerializer(data=request.data or {}).is_valid(raise_exception=True)
