"""The pages of storage nodes."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern
from django.utils.translation import gettext_lazy as _

from agents import services
from agents.forms import AgentForm
from agents.health import agent_health
from agents.healthlines import health_lines
from agents.image_pages import image_urls
from agents.models import Agent
from ipxeready.actors import Actor
from ipxeready.web.actors import actor_of
from ipxeready.web.admin import FileBackedAdmin

#: Seconds that a page waits for a node.
_PATIENCE = 4.0
_PLAIN = ("base_url", "iscsi_server", "tags", "enabled", "access")


@admin.register(Agent)
class AgentAdmin(FileBackedAdmin):
    """Where disks and install CDs can be put."""

    source = "agents"
    form = AgentForm
    change_form_template = "agents/change_form.html"
    list_display = (
        "id",
        "base_url",
        "iscsi_server",
        "role_disk",
        "role_cd",
        "words",
        "enabled",
        "access",
    )
    list_filter = ("enabled", "access", "role_disk", "role_cd")
    search_fields = ("id", "base_url", "iscsi_server")
    ordering = ("id",)
    fields = (
        "id",
        "base_url",
        "token",
        "iscsi_server",
        "role_disk",
        "role_cd",
        "tags",
        "enabled",
        "access",
    )

    @admin.display(description=_("tags"))
    def words(self, obj: Agent) -> str:
        """The tags as words."""
        return " ".join(obj.tags)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """The id is the key."""
        return ("id",) if obj else ()

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> Any:
        """The form brings its own field for the token; Django must not look for it on the row."""
        names = kwargs.get("fields") or self.get_fields(request, obj)
        kwargs["fields"] = [name for name in names if name != "token"]
        return super().get_form(request, obj, change, **kwargs)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Who may only look sees no field for a token."""
        if obj is not None and not self.has_change_permission(request, obj):
            shown = [name for name in self.fields if name != "token"]
            return tuple("words" if name == "tags" else name for name in shown)
        return self.fields

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Beside what is registered: how the node is now, asked for a few seconds at most."""
        context = dict(extra_context or {})
        if request.method == "GET" and self.get_object(request, object_id):
            context["health"] = health_lines(
                agent_health(
                    actor=actor_of(request), agent_id=object_id, timeout=_PATIENCE
                )
            )
        return super().change_view(request, object_id, form_url, context)

    def get_urls(self) -> list[URLPattern]:
        """The model's pages, and those of a node's images."""
        return [*image_urls(self), *super().get_urls()]

    def service_create(self, actor: Actor, data: dict[str, Any]) -> Agent:
        """Register the node."""
        return services.agent_register(
            actor=actor,
            agent_id=data["id"],
            token=data.get("token") or "",
            role={"disk": data["role_disk"], "cd": data["role_cd"]},
            **{name: data[name] for name in _PLAIN},
        )

    def service_update(self, actor: Actor, obj: Any, data: dict[str, Any]) -> Agent:
        """Change what the form changed."""
        role = {
            name: data[f"role_{name}"]
            for name in ("disk", "cd")
            if f"role_{name}" in data
        }
        return services.agent_update(
            actor=actor,
            agent_id=obj.pk,
            token=data.get("token") or "",
            role=role or None,
            **{name: data[name] for name in _PLAIN if name in data},
        )

    def service_delete(self, actor: Actor, obj: Any) -> None:
        """Take the node out of the registry."""
        services.agent_delete(actor=actor, agent_id=obj.pk)
