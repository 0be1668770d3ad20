"""How the API describes itself: names of operations, and the two ways to say who one is."""

from __future__ import annotations

import re
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from rest_framework.permissions import SAFE_METHODS

from ipxeready.web.serializers import StrictSerializer


class ApiSchema(AutoSchema):
    """Operations are named by method and path, so that no two share a name."""

    def get_operation_id(self) -> str:
        """`get_workers`, `get_workers_by_worker_id_status`, ..."""
        words = re.sub(r"\{(\w+)\}", r"by_\1", self.path)
        return "_".join([self.method.lower(), *re.findall(r"[A-Za-z0-9]+", words)])

    def get_operation(self, *args: Any, **kwargs: Any) -> Any:
        """The operation with every refusal that it may answer."""
        operation = super().get_operation(*args, **kwargs)
        if operation:
            refusals = dict(_REFUSALS)
            if self.method not in SAFE_METHODS:
                refusals |= _REFUSED_WRITES
            for status, words in refusals.items():
                operation["responses"].setdefault(str(status), _refusal(words))
        return operation

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> Any:
        """Strict bodies say so: an unknown field is refused."""
        schema = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call]
        if isinstance(serializer, StrictSerializer):
            schema["additionalProperties"] = False
        return schema


def _refusal(words: str) -> dict[str, Any]:
    body = {"type": "object", "properties": {"detail": {}}, "required": ["detail"]}
    return {"description": words, "content": {"application/json": {"schema": body}}}


#: What any operation may answer beside its success, and what only a write may.
_REFUSALS = {
    400: "Malformed: the detail names field, value and rule.",
    401: "No or wrong credentials.",
    403: "Not allowed for this user.",
    404: "No such thing.",
    406: "Not in this form.",
    502: "A node refused us or answered nonsense, or all nodes failed.",
    503: "A needed node is unreachable, or a file is broken.",
}
_REFUSED_WRITES = {
    409: "Conflicts with what exists.",
    413: "The body is too large.",
    415: "Neither JSON nor a form.",
    507: "No room on the node.",
}


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The token."""

    target_class = "ipxeready.web.authentication.BearerAuthentication"
    match_subclasses = True
    name = "token"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """`Authorization: Bearer ...`."""
        return {"type": "http", "scheme": "bearer"}


class SessionScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The pages' session."""

    target_class = "ipxeready.web.authentication.SessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        """The session's cookie."""
        return {"type": "apiKey", "in": "cookie", "name": "ipxeready"}
