"""Filters of the audit trail, the same for API and pages."""

from __future__ import annotations

import django_filters

from audit.models import Operation


class OperationFilter(django_filters.FilterSet):
    """By operation, result, worker and node; each is compared as a whole."""

    class Meta:
        model = Operation
        fields = ("op", "status", "worker_id", "agent")
