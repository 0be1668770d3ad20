"""Filters of the registry, the same for API and pages."""

from __future__ import annotations

from typing import Any

import django_filters
from django import forms
from django.core.exceptions import ValidationError
from django.db.models import Q, QuerySet

from agents.choices import AccessMode
from agents.models import Agent
from agents.protocol.systems import CD, DISK
from ipxeready.errors import Invalid
from ipxeready.web.serializers import parse_boolean


class FlagField(forms.CharField):
    """A boolean of a query: true, false, 1 or 0; anything else is an error."""

    def clean(self, value: Any) -> bool | None:
        """None when it is not given."""
        if value in self.empty_values:
            return None
        try:
            return parse_boolean("", str(value))
        except Invalid as error:
            raise ValidationError(error.message) from None


class FlagFilter(django_filters.Filter):
    """A filter by a boolean."""

    field_class = FlagField


class AgentFilter(django_filters.FilterSet):
    """By role, tag, access, whether it is enabled, and by text."""

    enabled = FlagFilter()
    role = django_filters.ChoiceFilter(
        choices=[(DISK, DISK), (CD, CD)], method="with_role"
    )
    access = django_filters.ChoiceFilter(
        choices=[(mode, mode) for mode in AccessMode.values]
    )
    tag = django_filters.CharFilter(method="with_tag")
    search = django_filters.CharFilter(method="with_text", max_length=10_000)

    class Meta:
        model = Agent
        fields: list[str] = []

    def with_role(
        self, queryset: QuerySet[Agent], name: str, value: str
    ) -> QuerySet[Agent]:
        """Nodes that take disks, or CDs."""
        return queryset.filter(**{f"role_{value}": True})

    def with_tag(
        self, queryset: QuerySet[Agent], name: str, value: str
    ) -> QuerySet[Agent]:
        """Nodes with this tag."""
        # SQLite's JSON has no `contains`; there are few nodes.
        found = [agent.pk for agent in queryset if value in agent.tags]
        return queryset.filter(pk__in=found)

    def with_text(
        self, queryset: QuerySet[Agent], name: str, value: str
    ) -> QuerySet[Agent]:
        """Nodes whose id or addresses have this text."""
        return queryset.filter(
            Q(id__icontains=value)
            | Q(base_url__icontains=value)
            | Q(iscsi_server__icontains=value)
        )
