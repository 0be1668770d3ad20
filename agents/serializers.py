"""Bodies of the registry's API; rules of values live in the validators."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.fields import empty

from agents.models import Agent
from ipxeready.web.serializers import StrictSerializer


class FlagField(serializers.BooleanField):
    """A boolean that a form may leave out: absent is not false."""

    default_empty_html = empty


class RoleSerializer(StrictSerializer):
    """What may be put on a node; what is left out stays as it is."""

    disk = FlagField(required=False)
    cd = FlagField(required=False)


class TokenField(serializers.CharField):
    """A node's token: taken, never given."""

    def __init__(self, **more: Any) -> None:
        super().__init__(
            allow_blank=True,
            allow_null=True,
            max_length=4096,
            write_only=True,
            style={"input_type": "password"},
            **more,
        )


class AgentChangeSerializer(StrictSerializer):
    """What of a node can be changed; an empty token keeps the old one."""

    base_url = serializers.CharField(required=False, max_length=1024)
    token = TokenField(required=False)
    iscsi_server = serializers.CharField(
        required=False, allow_blank=True, max_length=255
    )
    role = RoleSerializer(required=False)
    tags = serializers.ListField(
        child=serializers.CharField(max_length=63), required=False
    )
    enabled = FlagField(required=False)
    access = serializers.CharField(required=False, max_length=16)


class AgentCreateSerializer(AgentChangeSerializer):
    """A new node."""

    id = serializers.CharField(max_length=63)
    base_url = serializers.CharField(max_length=1024)


class ProbeSerializer(StrictSerializer):
    """An address to look at, with a token or the id of the node whose token to use."""

    base_url = serializers.CharField(max_length=1024)
    token = TokenField(required=False)
    agent_id = serializers.CharField(
        required=False, allow_blank=True, allow_null=True, max_length=63
    )


@extend_schema_field({"oneOf": [{"type": "string"}, {"type": "integer"}]})
class SizeField(serializers.Field[Any, Any, Any, Any]):
    """A size as people write it, or bytes; the service checks it."""

    def to_internal_value(self, data: Any) -> int | str:
        """Text or a whole number."""
        if isinstance(data, bool) or not isinstance(data, int | str):
            raise serializers.ValidationError(
                "write 40G, 512M, 1T or a number of bytes"
            )
        return data

    def to_representation(self, value: Any) -> Any:
        """As it is."""
        return value


class LunDiskSerializer(StrictSerializer):
    """A disk of a node that belongs to no worker."""

    iqn = serializers.CharField(max_length=255)
    filename = serializers.CharField(required=False, max_length=255)
    master = serializers.CharField(required=False, max_length=255)
    size = SizeField(required=False)


class LunCdSerializer(StrictSerializer):
    """An install CD of a node."""

    iso = serializers.CharField(max_length=255)
    iqn = serializers.CharField(required=False, max_length=255)


class LunAccessSerializer(StrictSerializer):
    """Who may log in to a target that belongs to no worker."""

    iqn = serializers.CharField(max_length=255)
    access = serializers.CharField(max_length=16)
    force = FlagField(required=False)


def agent_shown(agent: Agent) -> dict[str, Any]:
    """A node as the API shows it: never with its token."""
    return {
        "id": agent.id,
        "base_url": agent.base_url,
        "iscsi_server": agent.iscsi_server,
        "role": {"disk": agent.role_disk, "cd": agent.role_cd},
        "tags": agent.tags,
        "enabled": agent.enabled,
        "access": agent.access,
    }
