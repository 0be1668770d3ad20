"""The list of workers: search, filters, order and pages are Django's, what a page shows is asked for all its rows at once."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.templatetags.admin_list import result_headers
from django.contrib.admin.views.main import ChangeList
from django.db.models import (
    CharField,
    F,
    Func,
    OrderBy,
    OuterRef,
    QuerySet,
    Subquery,
    Value,
)
from django.db.models.functions import NullIf
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from agents.choices import AccessMode
from agents.selectors import agents
from ipxeready.storage.iqn import OSES
from ipxeready.web.text import cut, visible
from workers import selectors
from workers.choices import State
from workers.filters import NO_DEFAULT, WorkerFilterSet
from workers.leases import lease_words, leases_of
from workers.models import Binding, Disk, Worker

#: Rows of a page.
SIZES = (100, 25, 50, 200, 500)
#: The parameter that chooses it.
PER = "per"


class _Filter(admin.SimpleListFilter):
    """A filter of the API's as a filter of the list; an empty word does not filter."""

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[Worker]
    ) -> QuerySet[Worker]:
        """The same rule as the API's; a word that it does not know does not filter."""
        value = self.value()
        if value not in dict(self.lookup_choices):
            return queryset
        rows: QuerySet[Worker] = WorkerFilterSet(
            {str(self.parameter_name): str(value)}, queryset=queryset
        ).qs
        return rows

    def has_output(self) -> bool:
        """Always: values that nobody has are chosen before somebody has them."""
        return True


class StateFilter(_Filter):
    """What workers have."""

    title = _("state")
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """All states."""
        return list(State.choices)


class SystemFilter(_Filter):
    """Which systems workers have a disk of."""

    title = _("disk of")
    parameter_name = "os"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """All systems."""
        return [(os, os) for os in OSES]


class NodeFilter(_Filter):
    """Where disks lie."""

    title = _("node")
    parameter_name = "agent"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """The registry's nodes, and those that the ledger names besides."""
        known = set(agents().values_list("pk", flat=True))
        names = sorted(known | selectors.nodes_of_disks())
        return [(name, cut(visible(name), 40)) for name in names]


class HasDiskFilter(_Filter):
    """Workers with or without a disk."""

    title = _("disk")
    parameter_name = "has_disk"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Both."""
        return [("true", _("with a disk")), ("false", _("without a disk"))]


class DefaultSystemFilter(_Filter):
    """What workers boot."""

    title = _("default system")
    parameter_name = "default_os"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """The systems that are somebody's default, and none."""
        there = selectors.default_systems()
        found: list[tuple[str, Any]] = [(os, os) for os in OSES if os in there]
        return [*found, (NO_DEFAULT, _("none"))]


class AccessFilter(_Filter):
    """Workers with a word of their own about who may log in."""

    title = _("access")
    parameter_name = "access"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """The modes."""
        return [(mode, mode) for mode in AccessMode.values]


FILTERS = (
    StateFilter,
    HasDiskFilter,
    SystemFilter,
    NodeFilter,
    DefaultSystemFilter,
    AccessFilter,
)


class _EmptyLast(Func):
    """An expression to order by, whose empty values come last in both directions."""

    template = "%(expressions)s"
    arity = 1
    output_field = CharField()

    def asc(self, **_kwargs: Any) -> OrderBy:
        """Forwards."""
        return OrderBy(self, nulls_last=True)

    def desc(self, **_kwargs: Any) -> OrderBy:
        """Backwards."""
        return OrderBy(self, descending=True, nulls_last=True)


def by_mac() -> Any:
    """By the first MAC in the file."""
    bound = Binding.objects.filter(hostname=OuterRef("hostname"), effective=True)
    return _EmptyLast(Subquery(bound.order_by("pk").values("mac")[:1]))


def by_node() -> Any:
    """By the node of the first disk, then its system."""
    disks = Disk.objects.filter(worker_id=OuterRef("worker_id"))
    return _EmptyLast(Subquery(disks.order_by("position").values("agent")[:1]))


def filled(field: str) -> Any:
    """By a text that may be empty."""
    return _EmptyLast(NullIf(F(field), Value("")))


class WorkerList(ChangeList):
    """Django's list; the things of all rows of a page are asked for at once."""

    def get_filters_params(self, params: Any = None) -> dict[str, Any]:
        """Without the size of a page, which is no filter."""
        found: dict[str, Any] = super().get_filters_params(params)
        found.pop(PER, None)
        return found

    def get_results(self, request: HttpRequest) -> None:
        """As many rows as were asked for, with what belongs to them."""
        self.list_per_page = page_size(request)
        super().get_results(request)
        rows = list(self.result_list)
        furnish(rows)
        self.result_list = rows


def page_size(request: HttpRequest) -> int:
    """Rows of a page: one of the sizes."""
    text = request.GET.get(PER, "")
    size = int(text) if text.isdecimal() and len(text) < 6 else 0
    return size if size in SIZES else SIZES[0]


def furnish(rows: list[Worker]) -> None:
    """Give each row the MACs, disks and leases of its worker."""
    macs = selectors.macs_by_hostname([row.hostname for row in rows])
    things = selectors.things_of([row.pk for row in rows])
    for row in rows:
        own = macs.get(row.hostname, [])
        row.of_page = {  # type: ignore[attr-defined]
            "macs": own,
            "disks": [each for each in things.get(row.pk, []) if isinstance(each, Disk)],
            "leases": [lease_words(lease) for lease in leases_of(own)],
        }  # fmt: skip


def table(changes: ChangeList) -> dict[str, Any]:
    """The columns with what orders by them, and the rows with a cell for each."""
    columns = list(result_headers(changes))
    names = [str(name) for name in changes.list_display if name != "action_checkbox"]
    model_admin = changes.model_admin
    rows = []
    for row in changes.result_list:
        cells = [
            {
                "label": column["text"],
                "words": getattr(model_admin, name)(row)
                if hasattr(model_admin, name)
                else getattr(row, name),
            }
            for name, column in zip(names, columns, strict=True)
        ]
        rows.append({"url": changes.url_for_result(row), "cells": cells})
    return {"columns": columns, "rows": rows}


def filter_fields(request: HttpRequest, changes: ChangeList) -> list[dict[str, Any]]:
    """The filters as fields of a form: it works with the keyboard, and several are chosen at once."""
    return [
        {
            "name": spec.parameter_name,
            "title": spec.title,
            "value": request.GET.get(str(spec.parameter_name), ""),
            "choices": spec.lookup_choices,
        }
        for spec in changes.filter_specs
        if isinstance(spec, _Filter)
    ]
