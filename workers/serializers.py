"""Bodies of the workers' endpoints: shapes only, the rules are the services'."""

from __future__ import annotations

from typing import Any

from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from agents.serializers import FlagField, SizeField
from ipxeready.given import shown
from ipxeready.web.serializers import StrictSerializer


class PlainText(serializers.CharField):
    """Text only: a number or a boolean in JSON is refused, not turned into text. Length is the services' rule."""

    default_error_messages = {
        "required": _("is needed"),
        "null": _("must be text, not null"),
        "blank": _("must not be empty"),
    }

    def to_internal_value(self, data: Any) -> str:
        """The text as sent."""
        if not isinstance(data, str):
            raise serializers.ValidationError(f"{shown(data)} must be text")
        return super().to_internal_value(data)


@extend_schema_field({"oneOf": [{"type": "integer"}, {"type": "string"}]})
class AsSent(serializers.Field[Any, Any, Any, Any]):
    """A number, or words that mean one: the service decides, so that a form's text counts as JSON's number does."""

    def to_internal_value(self, data: Any) -> Any:
        """The value as sent."""
        return data

    def to_representation(self, value: Any) -> Any:
        """The same."""
        return value


class BootSerializer(StrictSerializer):
    """`boot` of a new worker."""

    menu_default = PlainText(required=False)
    menu_timeout = AsSent(required=False)


class WorkerCreateSerializer(StrictSerializer):
    """`POST /workers`."""

    worker_id = PlainText()
    mac = PlainText()
    hostname = PlainText(required=False, allow_blank=True, allow_null=True)
    arch = PlainText(required=False, allow_blank=True)
    windows_iso = PlainText(required=False, allow_blank=True, allow_null=True)
    boot = BootSerializer(required=False)


class MacSerializer(StrictSerializer):
    """`PUT /workers/{id}/mac`."""

    mac = PlainText()


class WorkerAccessSerializer(StrictSerializer):
    """`PUT /workers/{id}/access`: null is the node's; `rotate` makes a new secret."""

    access = PlainText(required=False, allow_null=True)
    force = FlagField(required=False)
    rotate = FlagField(required=False)


class AgentAccessSerializer(StrictSerializer):
    """`POST /agents/{id}/access`."""

    access = PlainText()
    force = FlagField(required=False)


class DefaultOsSerializer(StrictSerializer):
    """`PUT /workers/{id}/default-os`: null clears."""

    os = PlainText(required=False, allow_null=True)
    menu_default = PlainText(required=False, allow_null=True)
    menu_timeout = AsSent(required=False, allow_null=True)


class DiskCreateSerializer(StrictSerializer):
    """`POST /workers/{id}/luns/disk`; `size` like 40G, or bytes."""

    type = PlainText()
    os = PlainText()
    name = PlainText(required=False, allow_blank=True, allow_null=True)
    size = AsSent(required=False, allow_null=True)
    disk_agent = PlainText(required=False, allow_blank=True, allow_null=True)


class DiskGrowSerializer(StrictSerializer):
    """`POST /workers/{id}/luns/disk/{os}/grow`; `size` like 60G, or bytes."""

    size = AsSent()


class DiskResetSerializer(StrictSerializer):
    """`POST /workers/{id}/luns/disk/{os}/reset`; without `master` the one it was cloned from."""

    master = PlainText(required=False, allow_null=True)


class CdCreateSerializer(StrictSerializer):
    """`POST /workers/{id}/luns/cd`."""

    iso = PlainText()
    agent = PlainText(required=False, allow_blank=True, allow_null=True)


class DiskTargetSerializer(StrictSerializer):
    """One item of a batch."""

    worker_id = PlainText()
    agent = PlainText()


class DiskBatchSerializer(StrictSerializer):
    """`POST /workers/luns/disk/batch`; items are checked one by one by the service."""

    type = PlainText()
    os = PlainText()
    name = PlainText(required=False, allow_blank=True, allow_null=True)
    size = SizeField(required=False, allow_null=True)
    targets = DiskTargetSerializer(many=True)


class WorkersDeleteSerializer(StrictSerializer):
    """`POST /workers/delete/batch`."""

    worker_ids = serializers.ListField(child=PlainText())
    delete_disk = serializers.BooleanField(required=False, default=False)
    ignore_missing_target = serializers.BooleanField(required=False, default=False)


class WorkerRecordSerializer(serializers.Serializer[Any]):
    """A record as answers show it (for the schema)."""

    worker_id = serializers.CharField()
    mac = serializers.CharField(allow_null=True)
    macs = serializers.ListField(child=serializers.CharField(), required=False)
    hostname = serializers.CharField()
    arch = serializers.CharField()
    state = serializers.CharField()
    access = serializers.CharField(required=False)
    default_os = serializers.CharField(required=False)
    boot = serializers.DictField(required=False)
    disks = serializers.ListField(child=serializers.DictField())
    cd = serializers.DictField(allow_null=True)
