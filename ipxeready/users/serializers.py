"""People and tokens as the API and the commands show them: never a hash."""

from __future__ import annotations

from typing import Any

from django.utils import timezone
from rest_framework import serializers

from ipxeready.actors import ROLES
from ipxeready.users import selectors
from ipxeready.users.models import Operator, Token
from ipxeready.users.tokens import LONGEST_DAYS, last_used
from ipxeready.web.serializers import StrictSerializer, WholeNumberField


class TokenCreateSerializer(StrictSerializer):
    """Body of POST /tokens."""

    name = serializers.CharField(max_length=100)
    role = serializers.ChoiceField(
        choices=ROLES, required=False, allow_null=True, help_text="Default: one's own."
    )
    days = WholeNumberField(
        min_value=1,
        max_value=LONGEST_DAYS,
        required=False,
        allow_null=True,
        help_text="Default: until it is revoked.",
    )
    user = serializers.CharField(
        max_length=100,
        required=False,
        allow_null=True,
        help_text="Whose; administrators only.",
    )


class TokenSerializer(serializers.Serializer[Any]):
    """A token as it is shown."""

    id = serializers.CharField()
    user = serializers.CharField()
    name = serializers.CharField()
    role = serializers.ChoiceField(choices=ROLES)
    created = serializers.DateTimeField(allow_null=True)
    expires = serializers.DateTimeField(allow_null=True)
    last_used = serializers.DateTimeField(
        allow_null=True, help_text="The hour of its last use."
    )


class MadeTokenSerializer(TokenSerializer):
    """A new token, with itself: this once."""

    token = serializers.CharField()


def token_shown(token: Token) -> dict[str, Any]:
    """A token without its hash."""
    return {
        "id": token.token_id,
        "user": token.username,
        "name": token.name,
        "role": token.role,
        "created": _text(token.created),
        "expires": _text(token.expires),
        "last_used": _text(last_used(token.token_id)),
    }


def user_shown(user: Operator) -> dict[str, Any]:
    """A person without the hash of the password."""
    return {
        "username": user.username,
        "role": user.role,
        "active": user.is_active,
        "tokens": [token_shown(token) for token in selectors.tokens(user.username)],
    }


def _text(time: Any) -> str | None:
    return timezone.localtime(time).isoformat() if time else None
