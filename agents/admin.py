"""Where the pages of storage nodes stand in the admin site; they are in `agents/pages`."""

from __future__ import annotations

from django.contrib import admin
from django.urls import URLPattern, path

from agents.models import Agent
from agents.pages import editing, images, listing, log, luns, node, registering
from agents.pages.common import NODE, address, find
from ipxeready.actors import ADMINISTRATOR, OPERATOR, VIEWER
from ipxeready.web.admin import FileBackedAdmin
from ipxeready.web.pages import View, page_view

_FORM = ("GET", "POST")
#: Address below the list, page, name, role, methods.
_PAGES: tuple[tuple[str, View, str, str, tuple[str, ...]], ...] = (
    ("", listing.nodes, "changelist", VIEWER, ("GET",)),
    ("add/", registering.register, "add", ADMINISTRATOR, _FORM),
    ("<str:agent_id>/change/", node.node, "change", VIEWER, ("GET",)),
    ("<str:agent_id>/edit/", editing.edit, "edit", ADMINISTRATOR, _FORM),
    ("<str:agent_id>/enabled/", listing.switch, "switch", ADMINISTRATOR, ("POST",)),
    ("<str:agent_id>/delete/", editing.remove, "delete", ADMINISTRATOR, _FORM),
    ("<str:agent_id>/log/", log.log, "log", VIEWER, ("GET",)),
    ("<str:agent_id>/scan/", luns.scan, "scan", OPERATOR, _FORM),
    ("<str:agent_id>/luns/disk/add/", luns.disk_add, "disk_add", OPERATOR, _FORM),
    ("<str:agent_id>/luns/cd/add/", luns.cd_add, "cd_add", OPERATOR, _FORM),
    ("<str:agent_id>/luns/delete/", luns.delete, "lun_delete", OPERATOR, _FORM),
    ("<str:agent_id>/luns/access/", luns.access, "lun_access", OPERATOR, _FORM),
    ("<str:agent_id>/jobs/<str:job_id>/cancel/", node.job_cancel, "job_cancel", OPERATOR, _FORM),
    ("<str:agent_id>/images/", images.images, "images", VIEWER, ("GET",)),
    ("<str:agent_id>/images/delete/", images.delete, "image_delete", OPERATOR, _FORM),
    ("<str:agent_id>/images/convert/", images.convert, "image_convert", OPERATOR, _FORM),
    ("<str:agent_id>/images/upload/", images.upload, "image_upload", OPERATOR, _FORM),
    ("<str:agent_id>/images/uploads/<str:upload_id>/delete/", images.give_up, "upload_delete", OPERATOR, ("POST",)),
)  # fmt: skip


def _home(agent_id: str, **_more: str) -> str:
    return address(NODE, find(agent_id))


@admin.register(Agent)
class AgentAdmin(FileBackedAdmin):
    """Where disks and install CDs can be put."""

    source = "agents"

    def get_urls(self) -> list[URLPattern]:
        """Our pages, and of Django's the history only."""
        mine = [
            path(
                route,
                page_view(
                    view,
                    look=role,
                    change=role,
                    methods=methods,
                    home=None if "GET" in methods else _home,
                ),
                name=f"agents_agent_{name}",
            )
            for route, view, name, role, methods in _PAGES
        ]
        history = [
            pattern
            for pattern in super().get_urls()
            if pattern.name == "agents_agent_history"
        ]
        return [*mine, *history]
