"""Bodies of the settings endpoints."""

from __future__ import annotations

from rest_framework import serializers

from ipxeready.web.serializers import StrictSerializer


class AutoRegisterSerializer(StrictSerializer):
    """`{"enabled": bool}`."""

    enabled = serializers.BooleanField()
