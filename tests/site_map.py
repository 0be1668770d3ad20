"""Every address of the admin site, found in its list of addresses: a new page is in the tests without being named there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import quote

from django.contrib import admin
from django.urls import URLPattern, URLResolver


def admin_addresses(values: dict[str, str]) -> Iterator[tuple[str, str]]:
    """Name and address of each page; `values` has an object for each kind of page (`agents_agent_`) or argument (`os`).

    An argument without a value is an error: a new kind of page needs one.
    """
    for name, route in _routes(admin.site.urls[0], ""):
        address = "/admin/" + route
        for part, argument in re.findall(r"(<(?:\w+:)?(\w+)>)", route):
            address = address.replace(part, _value(name, argument, values), 1)
        yield name, address


def _value(name: str, argument: str, values: dict[str, str]) -> str:
    found = values.get(argument) or next(
        (
            value
            for key, value in values.items()
            if key.endswith("_") and name.startswith(key)
        ),
        None,
    )
    assert found, f"the page {name} has an argument {argument} without a value"
    return quote(found, safe="")


def _routes(
    patterns: list[URLPattern | URLResolver], before: str
) -> Iterator[tuple[str, str]]:
    for pattern in patterns:
        route = before + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from _routes(pattern.url_patterns, route)
        elif pattern.name and not route.startswith("^") and "(?P" not in route:
            yield pattern.name, route
