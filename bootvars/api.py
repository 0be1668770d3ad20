"""GET and PUT /settings/auto-register."""

from __future__ import annotations

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from bootvars.runtime import auto_register_enabled, auto_register_set
from bootvars.serializers import AutoRegisterSerializer
from ipxeready.web.serializers import strict_query
from ipxeready.web.views import ApiView


class AutoRegisterView(ApiView):
    """Whether an unknown MAC is registered at its first boot."""

    serializer_class = AutoRegisterSerializer

    @extend_schema(responses=AutoRegisterSerializer)
    def get(self, request: Request) -> Response:
        """The present setting."""
        strict_query(request, {"format": None})
        return Response({"enabled": auto_register_enabled()})

    @extend_schema(request=AutoRegisterSerializer, responses=AutoRegisterSerializer)
    def put(self, request: Request) -> Response:
        """Switch it; kept in settings.json, beats the environment, counts at once."""
        data = self.checked(AutoRegisterSerializer)
        enabled = auto_register_set(actor=self.actor, enabled=data["enabled"])
        return Response({"enabled": enabled})
