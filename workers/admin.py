"""The pages of workers as the admin site knows them; each is made in `workers.pages`."""

from __future__ import annotations

from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.contrib.admin.views.main import ChangeList
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import URLPattern, path
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

from ipxeready.actors import ADMINISTRATOR, OPERATOR
from ipxeready.errors import Invalid
from ipxeready.web.admin import FileBackedAdmin
from ipxeready.web.pages import page_view
from ipxeready.web.text import shown
from ipxeready.web.words import in_words
from workers import selectors
from workers.filters import filtered
from workers.models import Worker
from workers.pages import access, cds, creation, deletion, disks, listing, worker
from workers.pages.common import worker_url
from workers.pages.parts import LIST_PARTS
from workers.pages.words import status_words

_FORM = ("GET", "POST")
_identity = page_view(creation.identity, look=OPERATOR, methods=_FORM)
_show = page_view(worker.show)
_delete = page_view(deletion.delete, look=OPERATOR, methods=_FORM)


@admin.register(Worker)
class WorkerAdmin(FileBackedAdmin):
    """Machines without disks of their own."""

    source = "workers"
    list_display = (
        "worker_id",
        "hostname",
        "mac",
        "state_words",
        "default",
        "disk_list",
        "own_access",
        "lease",
    )
    list_filter = listing.FILTERS
    search_fields = ("worker_id", "hostname")
    ordering = ("worker_id",)
    actions = None
    change_list_template = "workers/change_list.html"
    show_full_result_count = False

    def get_queryset(self, request: HttpRequest) -> QuerySet[Worker]:
        """All workers, without the text of their records, which no page of the list needs."""
        return selectors.workers().defer("data")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Worker], search_term: str
    ) -> tuple[QuerySet[Worker], bool]:
        """The same search as the API's: id, hostname or MAC."""
        if not search_term:
            return queryset, False
        try:
            return filtered({"search": search_term}, queryset), False
        except Invalid as error:
            messages.error(request, f"{error.field}: {in_words(error)}")
            return queryset.none(), False

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        """The list that asks for the things of its rows at once."""
        return listing.WorkerList

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """Django's, with the filters as one form and what other apps put there."""
        context = {
            "title": capfirst(self.opts.verbose_name_plural),
            "parts": [part(request) for part in LIST_PARTS],
            "sizes": listing.SIZES,
            "page_size": listing.page_size(request),
            **(extra_context or {}),
        }
        answer = super().changelist_view(request, context)
        given = getattr(answer, "context_data", None)
        if given and "cl" in given:
            given["fields"] = listing.filter_fields(request, given["cl"])
            given["table"] = listing.table(given["cl"])
        return answer

    # --- columns -------------------------------------------------------------
    @admin.display(description="MAC", ordering=listing.by_mac())
    def mac(self, obj: Any) -> str:
        """Bound addresses."""
        return " ".join(obj.of_page["macs"]) or "-"

    @admin.display(description=_("state"), ordering="state")
    def state_words(self, obj: Worker) -> str:
        """What it has."""
        return obj.get_state_display()

    @admin.display(
        description=_("default system"), ordering=listing.filled("default_os")
    )
    def default(self, obj: Worker) -> str:
        """What it boots."""
        return obj.default_os or "-"

    @admin.display(description=_("disks"), ordering=listing.by_node())
    def disk_list(self, obj: Any) -> SafeString | str:
        """System and node of each disk."""
        lines = [
            (disk.os, shown(disk.agent, 40), f" ({status_words(disk)})" if disk.status else "")
            for disk in obj.of_page["disks"]
        ]  # fmt: skip
        return format_html_join(", ", "{}@{}{}", lines) or "-"

    @admin.display(description=_("access"), ordering=listing.filled("access"))
    def own_access(self, obj: Worker) -> str:
        """The worker's own word; empty: as its nodes say."""
        return obj.access or "-"

    @admin.display(description=_("lease"))
    def lease(self, obj: Any) -> SafeString | str:
        """Its address and until when dnsmasq has given it that."""
        words = obj.of_page["leases"]
        return format_html("{}", "; ".join(words)) if words else "-"

    # --- pages ---------------------------------------------------------------
    def get_urls(self) -> list[URLPattern]:
        """Django's pages, and ours."""
        mine = [
            path(f"<str:worker_id>/{route}", view, name=f"workers_worker_{name}")
            for route, name, view in (
                ("mac/", "mac", page_view(worker.mac, methods=("POST",), home=_home)),
                (
                    "boot/",
                    "boot",
                    page_view(worker.boot, methods=("POST",), home=_home),
                ),
                ("access/", "access", _operators(access.worker_access)),
                ("deleted/", "deleted", page_view(deletion.deleted)),
                ("disk/add/", "disk_add", _operators(creation.disk_add)),
                (
                    "disk/<str:os>/default/",
                    "disk_default",
                    page_view(disks.make_default, methods=("POST",), home=_home),
                ),
                ("disk/<str:os>/grow/", "disk_grow", _operators(disks.grow)),
                ("disk/<str:os>/reset/", "disk_reset", _operators(disks.reset)),
                ("disk/<str:os>/delete/", "disk_delete", _operators(disks.delete)),
                ("cd/attach/", "cd_attach", _operators(cds.attach)),
                ("cd/detach/", "cd_detach", _operators(cds.detach)),
            )
        ]
        node_access = path(
            "of-node/<str:agent_id>/set-access/",
            page_view(
                access.node_access,
                look=ADMINISTRATOR,
                change=ADMINISTRATOR,
                methods=_FORM,
            ),
            name="workers_worker_node_access",
        )
        return [*mine, node_access, *super().get_urls()]

    def add_view(
        self, request: HttpRequest, form_url: str = "", extra_context: Any = None
    ) -> Any:
        """A new worker, in two steps."""
        return _identity(request)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: Any = None,
    ) -> Any:
        """The worker's page."""
        return _show(request, unquote(object_id))

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> Any:
        """What goes, what stays, and the end of it."""
        return _delete(request, unquote(object_id))


def _home(worker_id: str, **_more: str) -> str:
    return worker_url(worker_id)


def _operators(view: Any) -> Any:
    """A page with a form that only operators may open."""
    return page_view(view, look=OPERATOR, methods=_FORM)
