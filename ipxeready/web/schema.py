"""How the API describes itself: names of operations, and the two ways to say who one is."""

from __future__ import annotations

import re
from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema


class ApiSchema(AutoSchema):
    """Operations are named by method and path, so that no two share a name."""

    def get_operation_id(self) -> str:
        """`get_workers`, `get_workers_by_worker_id_status`, ..."""
        words = re.sub(r"\{(\w+)\}", r"by_\1", self.path)
        return "_".join([self.method.lower(), *re.findall(r"[A-Za-z0-9]+", words)])


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The token."""

    target_class = "ipxeready.web.authentication.BearerAuthentication"
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
