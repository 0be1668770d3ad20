"""One FilterSet of workers for the API and the pages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import django_filters
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet
from django.utils.translation import gettext_lazy as _

from agents.protocol.access import ACCESS
from ipxeready.errors import Invalid
from ipxeready.given import shown
from ipxeready.said import said
from ipxeready.storage.iqn import OSES
from ipxeready.web.serializers import parse_boolean
from workers.choices import State
from workers.models import Binding, Disk, Worker

#: The value of `default_os` for workers that have none.
NO_DEFAULT = "none"
_ORDERINGS = ("worker_id", "hostname", "state", "default_os")
_OF_A_MAC = re.compile(r"[0-9a-f:-]+", re.IGNORECASE | re.ASCII)
#: Words of one search; each is a part of the query.
_WORDS = 10
#: Characters of one search: SQLite compares no pattern of any length.
_LONGEST = 10_000


def _choice(label: Any, values: list[str], **more: Any) -> Any:
    """A filter by one of some words; its refusal names them."""
    rule = f"%(value)s must be one of {', '.join(values)}"
    return django_filters.ChoiceFilter(
        label=label,
        choices=[(value, value) for value in values],
        error_messages={"invalid_choice": rule},
        **more,
    )


def _is_boolean(value: str) -> None:
    try:
        parse_boolean("has_disk", value)
    except Invalid as error:
        raise ValidationError(error.message) from None


def _few_words(value: str) -> None:
    words = len(value.split())
    if words > _WORDS:
        raise ValidationError(
            said(
                "has {count} words; at most {most} are searched for",
                count=words,
                most=_WORDS,
            )
        )


def _known_columns(value: str) -> None:
    names = [column.removeprefix("-") for column in value.split(",")]
    if set(names) - set(_ORDERINGS) or len(set(names)) < len(names):
        raise ValidationError(
            said(
                "{text} must be of {choices}, each once, separated by commas, with - for "
                "backwards",
                text=shown(value),
                choices=", ".join(_ORDERINGS),
            )
        )


class WorkerFilterSet(django_filters.FilterSet):
    """By state, system, node, own access, default system, whether there is a disk, and words in id, hostname or MAC."""

    state = _choice(_("state"), State.values)
    os = _choice(_("system"), list(OSES), method="with_os")
    agent = django_filters.CharFilter(label=_("node"), method="on_agent")
    access = _choice(_("access"), list(ACCESS))
    default_os = _choice(
        _("default system"), [*OSES, NO_DEFAULT], method="with_default"
    )
    has_disk = django_filters.CharFilter(
        label=_("has a disk"), method="with_disk", validators=[_is_boolean]
    )
    search = django_filters.CharFilter(
        label=_("search"),
        method="with_words",
        max_length=_LONGEST,
        validators=[_few_words],
    )
    ordering = django_filters.CharFilter(
        label=_("order"), method="in_order", validators=[_known_columns]
    )

    class Meta:
        model = Worker
        fields: list[str] = []

    def with_os(
        self, rows: QuerySet[Worker], name: str, value: str
    ) -> QuerySet[Worker]:
        """Workers with a disk of that system."""
        return rows.filter(pk__in=Disk.objects.filter(os=value).values("worker_id"))

    def with_default(
        self, rows: QuerySet[Worker], name: str, value: str
    ) -> QuerySet[Worker]:
        """Workers that boot that system, or those without a default."""
        return rows.filter(default_os="" if value == NO_DEFAULT else value)

    def on_agent(
        self, rows: QuerySet[Worker], name: str, value: str
    ) -> QuerySet[Worker]:
        """Workers with a disk on that node."""
        on = Disk.objects.filter(agent=value.lower()).values("worker_id")
        return rows.filter(pk__in=on)

    def with_disk(
        self, rows: QuerySet[Worker], name: str, value: str
    ) -> QuerySet[Worker]:
        """Workers with, or without, any disk."""
        having = Disk.objects.values("worker_id")
        if parse_boolean(name, value):
            return rows.filter(pk__in=having)
        return rows.exclude(pk__in=having)

    def with_words(
        self, rows: QuerySet[Worker], name: str, value: str
    ) -> QuerySet[Worker]:
        """Every word is part of the id, the hostname or a MAC."""
        for word in value.split():
            found = Q(worker_id__icontains=word) | Q(hostname__icontains=word)
            # Other words are part of no MAC, and every binding need not be read for them.
            if _OF_A_MAC.fullmatch(word):
                mac = word.replace("-", ":")
                bound = Binding.objects.filter(mac__icontains=mac)
                found |= Q(hostname__in=bound.values("hostname"))
            rows = rows.filter(found)
        return rows

    def in_order(
        self, rows: QuerySet[Worker], name: str, value: str
    ) -> QuerySet[Worker]:
        """By the named columns, `-` for backwards."""
        columns: list[Any] = value.split(",")
        return rows.order_by(*columns, "worker_id")


def filtered(
    given: Mapping[str, str], workers: QuerySet[Worker] | None = None
) -> QuerySet[Worker]:
    """Workers (of these) that the filters find, by id where no ordering is given; Invalid names the filter that is wrong."""
    every = Worker.objects.order_by("worker_id") if workers is None else workers
    filters = WorkerFilterSet(dict(given), queryset=every)
    if not filters.is_valid():
        name, faults = next(iter(filters.errors.items()))
        raise Invalid(" ".join(str(fault) for fault in faults), field=name)
    found: QuerySet[Worker] = filters.qs
    return found
