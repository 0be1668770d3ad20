"""Filters of the audit trail, the same for API and pages."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from audit.wanted import WHOLE, Wanted

TODAY, DAY, WEEK = "today", "24h", "7d"
PERIODS = ((TODAY, _("today")), (DAY, _("last 24 hours")), (WEEK, _("last 7 days")))


class TimeField(forms.DateTimeField):
    """A time in ISO 8601; without a zone it is the local one. A browser's own field writes and shows it."""

    widget = forms.DateTimeInput(
        attrs={"type": "datetime-local", "step": 1}, format="%Y-%m-%dT%H:%M:%S"
    )

    def to_python(self, value: Any) -> datetime | None:
        """The time; an offset whose plus sign came as a blank is understood."""
        if isinstance(value, str) and "T" in value:
            value = value.strip().replace(" ", "+")
        found: datetime | None = super().to_python(value)
        if found is not None and not 1 < found.year < 9999:
            raise forms.ValidationError(
                _("the year must be between 2 and 9998"), code="invalid"
            )
        return found


class OperationFilter(forms.Form):
    """By operation, result, worker, node and person, each as a whole; by time; by words anywhere in the line."""

    search = forms.CharField(label=_("search"), required=False, max_length=200)
    op = forms.CharField(label=_("operation"), required=False)
    status = forms.CharField(label=_("status"), required=False)
    worker_id = forms.CharField(label=_("worker"), required=False)
    agent = forms.CharField(label=_("node"), required=False)
    user = forms.CharField(label=_("user"), required=False)
    period = forms.ChoiceField(
        label=_("time"), required=False, choices=(("", _("any")), *PERIODS)
    )
    from_time = TimeField(label=_("from"), required=False)
    to_time = TimeField(label=_("to"), required=False)

    def wanted(self) -> Wanted:
        """What is asked for; a field that is not valid filters nothing."""
        self.is_valid()
        found = self.cleaned_data
        begin = found.get("from_time")
        start = _begin(found.get("period") or "")
        if start and (begin is None or begin < start):
            begin = start
        return Wanted(
            **{name: found.get(name) or "" for name in (*WHOLE, "search")},
            from_time=begin,
            to_time=found.get("to_time"),
        )


#: The parameters of a request that filter.
NAMES = tuple(OperationFilter.base_fields)


def _begin(period: str) -> datetime | None:
    now = timezone.localtime()
    if period == TODAY:
        return now.replace(hour=0, minute=0, second=0, microsecond=0)
    days = {DAY: 1, WEEK: 7}.get(period)
    return now - timedelta(days=days) if days else None
