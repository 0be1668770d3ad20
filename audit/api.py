"""GET /operations: the audit trail by id, forwards or backwards."""

from __future__ import annotations

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.exceptions import ValidationError
from rest_framework.request import Request
from rest_framework.response import Response

from audit import selectors
from audit.filters import NAMES, OperationFilter
from audit.serializers import PageSerializer
from ipxeready.web.pagination import whole_number
from ipxeready.web.serializers import strict_query
from ipxeready.web.views import ApiView

LIMIT = 1000
MOST = 10_000
#: The largest id that the index can hold.
_LARGEST = 10**18 - 1


class OperationList(ApiView):
    """GET /operations."""

    @extend_schema(
        parameters=[
            *(
                OpenApiParameter(name, OpenApiTypes.INT)
                for name in ("since", "before", "limit")
            ),
            *(OpenApiParameter(name, OpenApiTypes.STR) for name in NAMES),
        ],
        responses=PageSerializer,
    )
    def get(self, request: Request) -> Response:
        """Lines above `since`, oldest first; with `before`, lines below it, newest first."""
        names = ("since", "before", "limit", *NAMES, "format")
        strict_query(request, dict.fromkeys(names))
        bound = OperationFilter(request.query_params)
        if not bound.is_valid():
            raise ValidationError(
                {
                    name: [str(word) for word in words]
                    for name, words in bound.errors.items()
                }
            )
        page = selectors.page(
            since=whole_number(request, "since", 0, _LARGEST) or 0,
            before=whole_number(request, "before", 0, _LARGEST),
            limit=whole_number(request, "limit", 1, MOST) or LIMIT,
            wanted=bound.wanted(),
        )
        return Response(PageSerializer(page._asdict()).data)
