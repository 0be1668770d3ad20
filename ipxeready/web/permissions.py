"""Which role a request needs: viewers read, operators write, views may ask for more."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from ipxeready.actors import OPERATOR, ROLES, VIEWER

if TYPE_CHECKING:  # DRF's views import this module while they are being imported
    from rest_framework.views import APIView


def role_needed(method: str, *, look: str = VIEWER, change: str = OPERATOR) -> str:
    """The role for a method: `look` for what only reads, `change` for everything else."""
    return look if method in SAFE_METHODS else change


def needed_role(view: object, method: str) -> str:
    """The role for `method`: a view's `required_role` is one role or a mapping by method."""
    default = role_needed(method)
    wanted = getattr(view, "required_role", None)
    if isinstance(wanted, str):
        return wanted
    return str(wanted.get(method, default)) if wanted else default


class RolePermission(BasePermission):
    """The early check at the edge; services check again, for every edge."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        """Whether the caller's role is enough."""
        role = getattr(request.user, "role", None)
        needed = needed_role(view, request.method or "GET")
        self.message = f"this needs the role {needed}"
        return role in ROLES and ROLES.index(role) >= ROLES.index(needed)
