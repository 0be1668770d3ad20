"""The audit trail as the API shows it (contract.md section 4)."""

from __future__ import annotations

from rest_framework import serializers


class PageSerializer(serializers.Serializer[dict[str, object]]):
    """A piece of the trail: its lines as they stand in the file, and where to go on."""

    next_cursor = serializers.IntegerField()
    entries = serializers.ListField(child=serializers.DictField())
