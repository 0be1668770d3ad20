"""Every address of the control plane with values for its parameters, found in the URLconf: a new one is in the tests without being named there."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

from django.urls import URLPattern, URLResolver, get_resolver
from rest_framework.views import APIView


@dataclass(frozen=True)
class Place:
    """An address of the URLconf with values for its parameters."""

    name: str
    path: str
    view: Any = field(compare=False, hash=False)

    @property
    def api(self) -> type[APIView] | None:
        """The endpoint's class; None for a page."""
        found = getattr(self.view, "cls", None)
        return found if found and issubclass(found, APIView) else None


@dataclass(frozen=True)
class There:
    """What is there, so that addresses lead to something. A new kind of parameter needs a value here, or it is an error."""

    #: Values of parameters by name.
    values: Mapping[str, Sequence[str]]
    #: Values of what Django's own pages call `object_id`, by the part of the address before it.
    objects: Mapping[str, Sequence[str]]

    def of(self, name: str, route: str) -> Sequence[str]:
        """What a parameter of a route may be."""
        if name == "object_id":
            before = route.removeprefix("admin/").partition("/<")[0]
            assert before in self.objects, f"{route}: say in `objects` what is there"
            return self.objects[before]
        assert name in self.values, f"{route}: say in `values` what is there for {name}"
        return self.values[name]


def patterns(
    found: Iterable[Any] | None = None, prefix: str = ""
) -> Iterator[tuple[str, URLPattern]]:
    """Every pattern of the URLconf with its whole route."""
    for each in get_resolver().url_patterns if found is None else found:
        route = prefix + str(each.pattern)
        if isinstance(each, URLResolver):
            yield from patterns(each.url_patterns, route)
        else:
            yield route, each


def places(there: There, *, below: str = "") -> list[Place]:
    """Every address once; the same ones under /api/cp are the same views, which a test of its own says."""
    return [
        place
        for route, pattern in patterns()
        if route.startswith(below) and not route.startswith("api/cp/")
        for place in _filled(route, pattern, there)
    ]


def _filled(route: str, pattern: URLPattern, there: There) -> Iterator[Place]:
    text = re.sub(r"\(\?P<(\w+)>(?:[^()]|\([^()]*\))*\)", r"<\1>", route)
    text = re.sub(r"<\w+:(\w+)>", r"<\1>", text)
    text = (
        text.replace(r"/?\Z", "")
        .replace(r"\Z", "")
        .replace("\\", "")
        .replace("^", "")
        .rstrip("$")
    )
    names = re.findall(r"<(\w+)>", text)
    choices = [there.of(name, text) for name in names]
    for values in itertools.product(*choices):
        path = text
        for name, value in zip(names, values, strict=True):
            path = path.replace(f"<{name}>", quote(value), 1)
        yield Place(pattern.name or "", f"/{path}", pattern.callback)
