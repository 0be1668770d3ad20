"""Pages of a list, only when `limit` or `offset` is given."""

from __future__ import annotations

import re

from rest_framework.pagination import LimitOffsetPagination
from rest_framework.request import Request

from ipxeready.errors import Invalid
from ipxeready.said import said


def whole_number(request: Request, name: str, low: int, high: int) -> int | None:
    """The whole-numbered query parameter `name`; None when it is not given."""
    text = request.query_params.get(name)
    if text is None:
        return None
    if not re.fullmatch(r"[0-9]{1,18}", text) or not low <= int(text) <= high:
        raise Invalid(
            said("must be a whole number from {low} to {high}", low=low, high=high),
            field=name,
        )
    return int(text)


class AskedForPagination(LimitOffsetPagination):
    """`count next previous results` when asked for, else the whole list."""

    max_limit = 1000
    page = 100

    def get_limit(self, request: Request) -> int | None:
        """The asked-for limit; with an offset alone, a page of 100."""
        limit = whole_number(request, "limit", 1, self.max_limit)
        if limit is None and "offset" in request.query_params:
            return self.page
        return limit

    def get_offset(self, request: Request) -> int:
        """The asked-for offset, else 0."""
        return whole_number(request, "offset", 0, 10**12) or 0
