"""The pages of the audit trail: to read, to filter, to search; nothing can be changed by anyone."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from audit.models import Operation

if TYPE_CHECKING:  # Django's class takes a parameter in its stubs only
    _ModelAdmin = admin.ModelAdmin[Operation]
else:
    _ModelAdmin = admin.ModelAdmin

#: Fields of a line that have a column of their own.
_COLUMNS = frozenset(
    {"id", "ts", "op", "status", "worker_id", "agent", "client", "user"}
)
_SUMMARY = 120


@admin.register(Operation)
class OperationAdmin(_ModelAdmin):
    """Who did what, when, from where and with what result."""

    list_display = (
        "ts",
        "op",
        "result",
        "worker_id",
        "agent",
        "user",
        "client",
        "summary",
    )
    list_filter = ("op", "status")
    search_fields = ("op", "worker_id", "agent", "client", "data")
    search_help_text = _("Worker, node, address, or anything else in the line")
    ordering = ("-id",)
    list_per_page = 100
    show_full_result_count = False
    actions = None
    fields = (
        "id",
        "ts",
        "op",
        "status",
        "worker_id",
        "agent",
        "user",
        "client",
        "details",
    )
    readonly_fields = fields

    @admin.display(description=_("status"), ordering="status")
    def result(self, obj: Operation) -> str:
        """The status; what failed stands out."""
        return format_html('<span class="status-{0}">{0}</span>', obj.status)

    @admin.display(description=_("user"))
    def user(self, obj: Operation) -> str:
        """Who did it."""
        return str(obj.data.get("user", ""))

    @admin.display(description=_("summary"))
    def summary(self, obj: Operation) -> str:
        """What else the line says, in short."""
        rest = {k: v for k, v in obj.data.items() if k not in _COLUMNS}
        words = ", ".join(
            f"{k}: {v if isinstance(v, str) else json.dumps(v, ensure_ascii=False)}"
            for k, v in rest.items()
        )
        return words if len(words) <= _SUMMARY else words[: _SUMMARY - 1] + "…"

    @admin.display(description=_("line of the file"))
    def details(self, obj: Operation) -> str:
        """The whole line, for reading."""
        text = json.dumps(obj.data, ensure_ascii=False, indent=2)
        return format_html("<pre>{}</pre>", text)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Only services write the trail."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """What happened does not change."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """What happened does not go away."""
        return False

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> Any:
        """A line has no history: the line itself."""
        return self.change_view(request, object_id, extra_context=extra_context)
