"""The pages of workers: list, identity, default boot, disks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _t
from django.utils.translation import gettext_lazy as _

from agents.models import Agent
from agents.selectors import agent_find, agents_enabled_for_disks
from ipxeready.actors import Actor
from ipxeready.errors import ApplicationError
from ipxeready.jobs.services import job_start, job_wait, refusal_of
from ipxeready.storage.iqn import OSES
from ipxeready.storage.jobs import DONE, ENDED, Job
from ipxeready.web.actors import actor_of
from ipxeready.web.admin import FileBackedAdmin
from workers import access_set, disks, jobs, selectors, services
from workers.access import wanted
from workers.filters import WorkerFilterSet
from workers.forms import (
    AccessForm,
    DiskForm,
    NodeAccessForm,
    RemovalForm,
    WorkerForm,
)
from workers.inuse import session_words, sessions_of
from workers.models import Cd, Disk, Worker
from workers.removal import Removal, disk_delete, worker_delete

#: Seconds that the page of a new disk waits for it; what takes longer is followed on its job's page.
PATIENCE = 3.0
#: Targets that one page names in messages.
_TOLD = 10


class HasDiskFilter(admin.SimpleListFilter):
    """Workers with or without a disk."""

    title = _("disk")
    parameter_name = "has_disk"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, Any]]:
        """Both."""
        return [("true", _("with a disk")), ("false", _("without a disk"))]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[Worker]
    ) -> QuerySet[Worker]:
        """The same rule as the API's filter."""
        value = self.value()
        if value not in ("true", "false"):
            return queryset
        rows: QuerySet[Worker] = WorkerFilterSet(
            {"has_disk": value}, queryset=queryset
        ).qs
        return rows


class DefaultSystemFilter(admin.SimpleListFilter):
    """What workers boot; those without a default system have no entry of their own."""

    title = _("default system")
    parameter_name = "default_os"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """The systems that are somebody's default."""
        there = set(selectors.workers().values_list("default_os", flat=True))
        return [(os, os) for os in OSES if os in there]

    def queryset(
        self, request: HttpRequest, queryset: QuerySet[Worker]
    ) -> QuerySet[Worker]:
        """Workers that boot it."""
        return queryset.filter(default_os=self.value()) if self.value() else queryset


@admin.register(Worker)
class WorkerAdmin(FileBackedAdmin):
    """Machines without disks of their own."""

    source = "workers"
    form = WorkerForm
    #: Deleting talks to nodes: its services take the lock for themselves.
    actions_hold_lock = False
    list_display = ("worker_id", "hostname", "mac", "state", "default_os", "disk_list")
    list_filter = ("state", "access", HasDiskFilter, DefaultSystemFilter)
    search_fields = ("worker_id", "hostname")
    ordering = ("worker_id",)
    actions = None
    change_form_template = "workers/change_form.html"

    def get_queryset(self, request: HttpRequest) -> QuerySet[Worker]:
        """All workers."""
        return selectors.workers()

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Worker], search_term: str
    ) -> tuple[QuerySet[Worker], bool]:
        """The same search as the API's: id, hostname or MAC."""
        if not search_term:
            return queryset, False
        return WorkerFilterSet({"search": search_term}, queryset=queryset).qs, False

    # --- columns -------------------------------------------------------------
    @admin.display(description="MAC")
    def mac(self, obj: Worker) -> str:
        """Bound addresses."""
        return " ".join(selectors.macs_of(obj.hostname)) or "-"

    @admin.display(description=_("disks"))
    def disk_list(self, obj: Worker) -> str:
        """System and node of each disk."""
        rows = selectors.disks_of(obj.pk)
        return (
            ", ".join(f"{disk.os}@{disk.agent}{_status(disk)}" for disk in rows) or "-"
        )

    @admin.display(description=_("disks"))
    def disk_table(self, obj: Worker) -> SafeString | str:
        """Each disk with the way to delete it."""
        rows = selectors.disks_of(obj.pk)
        if not rows:
            return _t("none yet")
        return format_html(
            "<ul>{}</ul>",
            format_html_join(
                "",
                "<li>{} @ {}{} <code>{}</code> <a href='{}'>{}</a></li>",
                (
                    (
                        disk.os,
                        disk.agent,
                        _status(disk),
                        disk.iqn,
                        reverse(
                            "admin:workers_worker_disk_delete", args=[obj.pk, disk.os]
                        ),
                        _t("delete"),
                    )
                    for disk in rows
                ),
            ),
        )

    @admin.display(description=_("disks"))
    def disk_names(self, obj: Worker) -> SafeString | str:
        """Each disk, for those who may only look."""
        rows = selectors.disks_of(obj.pk)
        if not rows:
            return _t("none yet")
        return format_html(
            "<ul>{}</ul>",
            format_html_join(
                "",
                "<li>{} @ {}{} <code>{}</code></li>",
                ((disk.os, disk.agent, _status(disk), disk.iqn) for disk in rows),
            ),
        )

    @admin.display(description=_("access"))
    def access_now(self, obj: Worker) -> SafeString | str:
        """The worker's own word, and what holds for each of its targets."""
        own = obj.get_access_display() or _t("as the node of each target says")
        things = selectors.things_of([obj.pk]).get(obj.pk, [])
        if not things:
            return own
        lines = [(thing.iqn, _in_force(obj, thing)) for thing in things]
        return format_html(
            "{}<ul>{}</ul>",
            own,
            format_html_join("", "<li><code>{}</code> {}</li>", lines),
        )

    # --- forms ---------------------------------------------------------------
    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """Identity first; what boots once the worker is there."""
        if obj is None:
            return ("worker_id", "mac", "hostname")
        shown = ("worker_id", "hostname", "arch", "state", "access_now")
        boot = ("default_os", "menu_default", "menu_timeout")
        if not self.has_change_permission(request, obj):
            return (*shown, "disk_names", "mac", *boot)
        return (*shown, "disk_table", "mac", *boot)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        """The id is the key, the name is in targets and images."""
        if obj is None:
            return ()
        return ("worker_id", "hostname", "arch", "state", "access_now", "disk_table")

    def service_create(self, actor: Actor, data: dict[str, Any]) -> Worker:
        """Register an identity."""
        record = services.worker_create(
            actor=actor,
            worker_id=data["worker_id"],
            mac=data["mac"],
            hostname=data.get("hostname") or None,
        )
        return selectors.worker_get(record["worker_id"])

    def service_update(self, actor: Actor, obj: Any, data: dict[str, Any]) -> Worker:
        """Another MAC, another default boot."""
        if data.get("mac"):
            services.worker_mac_update(actor=actor, worker_id=obj.pk, mac=data["mac"])
        boot = {
            field: data[name] if data[name] != "" else None
            for name, field in (
                ("default_os", "os"),
                ("menu_default", "menu_default"),
                ("menu_timeout", "menu_timeout"),
            )
            if name in data
        }
        if boot:
            services.worker_boot_set(actor=actor, worker_id=obj.pk, **boot)
        return selectors.worker_get(obj.pk)

    # --- disks and deletion ----------------------------------------------------
    def get_urls(self) -> list[URLPattern]:
        """The model's pages, and those of its disks."""
        view = self.admin_site.admin_view
        mine = [
            path(
                "<path:worker_id>/disk/add/",
                view(self.disk_add),
                name="workers_worker_disk_add",
            ),
            path(
                "<path:worker_id>/disk/<str:os>/delete/",
                view(self.disk_remove),
                name="workers_worker_disk_delete",
            ),
            path(
                "<path:worker_id>/access/",
                view(self.access_page),
                name="workers_worker_access",
            ),
            path(
                "of-node/<str:agent_id>/set-access/",
                view(self.node_access_page),
                name="workers_worker_node_access",
            ),
        ]
        return mine + super().get_urls()

    def _page(
        self,
        request: HttpRequest,
        worker: Worker,
        title: str,
        form: Form,
        **context: Any,
    ) -> HttpResponse:
        return TemplateResponse(
            request,
            "workers/form.html",
            {
                **self.admin_site.each_context(request),
                "opts": self.opts,
                "title": title,
                "list_url": reverse("admin:workers_worker_changelist"),
                "back_url": reverse("admin:workers_worker_change", args=[worker.pk]),
                "about": worker.pk,
                "form": form,
                **context,
            },
        )

    def _worker(self, request: HttpRequest, worker_id: str) -> Worker:
        worker = selectors.workers().filter(pk=worker_id).first()
        if worker is None:
            raise Http404
        if not self.has_change_permission(request, worker):
            raise PermissionDenied
        return worker

    def _back(self, worker: Worker) -> HttpResponseRedirect:
        return HttpResponseRedirect(
            reverse("admin:workers_worker_change", args=[worker.pk])
        )

    def disk_add(self, request: HttpRequest, worker_id: str) -> HttpResponse:
        """A new system disk: empty, a clone, or an image that was kept; what takes long is looked at on its job's page."""
        worker = self._worker(request, worker_id)
        nodes = [agent.id for agent in agents_enabled_for_disks()]
        form = DiskForm(request.POST or None, nodes=nodes)
        if request.method == "POST" and form.is_valid():
            data = form.cleaned_data
            actor = actor_of(request)
            try:
                work = jobs.disk_work(
                    actor=actor,
                    worker_id=worker.pk,
                    spec=disks.disk_spec(
                        type=data["type"],
                        os=data["os"],
                        name=data["name"] or None,
                        size=data["size"] or None,
                    ),
                    disk_agent=data["disk_agent"] or None,
                    set_default=data["set_default"],
                )
                job = job_wait(job_start(actor=actor, work=work).id, PATIENCE)
            except ApplicationError as error:
                form.add_error(
                    error.field if error.field in form.fields else None, error.message
                )
            else:
                if job.state not in ENDED:
                    return HttpResponseRedirect(reverse("admin:job", args=[job.id]))
                if job.state == DONE:
                    return self._made(request, worker, job)
                field, words = refusal_of(job)
                form.add_error(field if field in form.fields else None, words)
        title = _t("New disk for %(worker)s") % {"worker": worker.pk}
        return self._page(request, worker, title, form, submit=_t("Make the disk"))

    def _made(
        self, request: HttpRequest, worker: Worker, job: Job
    ) -> HttpResponseRedirect:
        for warning in job.result.get("warnings", []):
            self.message_user(request, warning, messages.WARNING)
        self.message_user(request, _t("The disk was made."), messages.SUCCESS)
        return self._back(worker)

    def disk_remove(
        self, request: HttpRequest, worker_id: str, os: str
    ) -> HttpResponse:
        """Delete one system disk."""
        worker = self._worker(request, worker_id)
        disk = next((d for d in selectors.disks_of(worker.pk) if d.os == os), None)
        if disk is None:
            raise Http404
        form = RemovalForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            try:
                disk_delete(
                    actor=actor_of(request),
                    worker_id=worker.pk,
                    os=os,
                    removal=Removal(**form.cleaned_data),
                )
            except ApplicationError as error:
                form.add_error(None, error.message)
            else:
                self.message_user(
                    request, _t("The disk was deleted."), messages.SUCCESS
                )
                return self._back(worker)
        title = _t("Delete the %(os)s disk of %(worker)s") % {
            "os": os,
            "worker": worker.pk,
        }
        goes = [
            _t("target %(iqn)s on node %(agent)s")
            % {"iqn": disk.iqn, "agent": disk.agent},
            _t("image %(file)s, only if you tick it below") % {"file": disk.filename},
            *_cut_off([disk]),
        ]
        return self._page(
            request,
            worker,
            title,
            form,
            goes=goes,
            submit=_t("Delete the disk"),
            danger=True,
        )

    # --- access ----------------------------------------------------------------
    def access_page(self, request: HttpRequest, worker_id: str) -> HttpResponse:
        """Who may log in to this worker's targets."""
        worker = self._worker(request, worker_id)
        form = AccessForm(request.POST or None, initial={"access": worker.access})
        if request.method == "POST" and form.is_valid():
            data = form.cleaned_data
            try:
                record = access_set.worker_access_set(
                    actor=actor_of(request),
                    worker_id=worker.pk,
                    access=data["access"] or None,
                    force=data["force"],
                    rotate=data["rotate"],
                )
            except ApplicationError as error:
                form.add_error(
                    error.field if error.field in form.fields else None, error.message
                )
            else:
                self._say_kept(request, record["kept"])
                text = _t("The access was set.")
                self.message_user(request, text, messages.SUCCESS)
                return self._back(worker)
        title = _t("Access to the targets of %(worker)s") % {"worker": worker.pk}
        return self._page(
            request,
            worker,
            title,
            form,
            notes=_what_access_means(),
            submit=_t("Set the access"),
        )

    def node_access_page(self, request: HttpRequest, agent_id: str) -> HttpResponse:
        """Who may log in to a node's targets: first what changes and what stays, then it is done."""
        agent = agent_find(agent_id)
        if agent is None:
            raise Http404
        if not request.user.has_perm("agents.change_agent"):
            raise PermissionDenied
        form = NodeAccessForm(request.POST or None, initial={"access": agent.access})
        back = reverse("admin:agents_agent_change", args=[agent.pk])
        context: dict[str, Any] = {"submit": _t("Show what changes")}
        if request.method == "POST" and form.is_valid():
            mode = form.cleaned_data["access"]
            if request.POST.get("confirmed") == mode:
                done = self._set_node_access(request, agent, form)
                if done:
                    return HttpResponseRedirect(back)
            changes, kept = access_set.agent_access_plan(agent, mode)
            context = {
                "goes_title": _t("These targets get access %(mode)s:") % {"mode": mode},
                "goes": changes or [_t("none; it holds for new targets")],
                "stays": [f"{entry['iqn']}: {entry['reason']}" for entry in kept],
                "confirmed": mode,
                "submit": _t("Set the access"),
                "danger": True,
            }
        return TemplateResponse(
            request,
            "workers/form.html",
            {
                **self.admin_site.each_context(request),
                "opts": agent._meta,
                "title": _t("Access to the targets of node %(node)s")
                % {"node": agent.pk},
                "list_url": reverse("admin:agents_agent_changelist"),
                "back_url": back,
                "about": agent.pk,
                "form": form,
                "notes": _what_access_means(),
                **context,
            },
        )

    def _set_node_access(self, request: HttpRequest, agent: Agent, form: Form) -> bool:
        try:
            done = access_set.agent_access_set(
                actor=actor_of(request),
                agent_id=agent.pk,
                access=form.cleaned_data["access"],
                force=form.cleaned_data["force"],
            )
        except ApplicationError as error:
            form.add_error(None, error.message)
            return False
        for entry in done["failed"][:_TOLD]:
            text = f"{entry['iqn']}: {entry['error']}"
            self.message_user(request, text, messages.ERROR)
        self._say_kept(request, done["kept"])
        text = _t("%(number)s targets were set, %(failed)s failed.") % {
            "number": len(done["changed"]),
            "failed": len(done["failed"]),
        }
        level = messages.WARNING if done["failed"] else messages.SUCCESS
        self.message_user(request, text, level)
        return True

    def _say_kept(self, request: HttpRequest, kept: list[dict[str, str]]) -> None:
        for entry in kept[:_TOLD]:
            text = _t("%(iqn)s stays as it is: %(reason)s") % entry
            self.message_user(request, text, messages.WARNING)
        if len(kept) > _TOLD:
            text = _t("%(number)s more stay as they are.") % {
                "number": len(kept) - _TOLD
            }
            self.message_user(request, text, messages.WARNING)

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        """Delete a worker: first what goes and what stays, then it is done."""
        worker = self._worker(request, object_id)
        if not self.has_delete_permission(request, worker):
            raise PermissionDenied
        form = RemovalForm(request.POST or None)
        if request.method == "POST" and form.is_valid():
            try:
                worker_delete(
                    actor=actor_of(request),
                    worker_id=worker.pk,
                    removal=Removal(**form.cleaned_data),
                )
            except ApplicationError as error:
                form.add_error(None, error.message)
            else:
                text = _t("Worker %(worker)s was deleted.") % {"worker": worker.pk}
                self.message_user(request, text, messages.SUCCESS)
                return HttpResponseRedirect(reverse("admin:workers_worker_changelist"))
        title = _t("Delete worker %(worker)s") % {"worker": worker.pk}
        return self._page(
            request,
            worker,
            title,
            form,
            goes=_what_goes(worker),
            submit=_t("Delete the worker"),
            danger=True,
        )


def _status(disk: Disk) -> str:
    return f" ({disk.status})" if disk.status else ""


def _in_force(worker: Worker, thing: Disk | Cd) -> str:
    mode = wanted(worker, thing)
    if mode == thing.access:
        return mode
    return _t("%(now)s, should be %(mode)s: set it again") % {
        "now": thing.access,
        "mode": mode,
    }


def _what_access_means() -> list[str]:
    return [
        _t(
            "acl keeps out machines that call themselves by another name; chap also those that only "
            "pretend to be this one. Neither encrypts: whoever listens on the network reads disks and secrets."
        ),
        _t(
            "A machine that is connected stays connected. The secret is in config/chap-secrets.yml and "
            "is shown nowhere; a changed one there is sent to the nodes when access is set again."
        ),
    ]


def _what_goes(worker: Worker) -> list[str]:
    """What a deletion takes with it, line by line."""
    lines = [
        _t("the record of %(worker)s in state/workers.yml") % {"worker": worker.pk}
    ]
    for binding in selectors.bindings_named(worker.hostname):
        words = " ".join(
            [binding.mac, worker.hostname, binding.ip, *binding.tags]
        ).strip()
        lines.append(_t("the binding %(words)s in dhcp-hosts.conf") % {"words": words})
    for disk in selectors.disks_of(worker.pk):
        lines.append(
            _t("target %(iqn)s on node %(agent)s")
            % {"iqn": disk.iqn, "agent": disk.agent}
        )
        lines.append(
            _t("image %(file)s, only if you tick it below") % {"file": disk.filename}
        )
    cd = selectors.cd_of(worker.pk)
    if cd is not None:
        lines.append(_t("install CD %(iqn)s (the ISO stays)") % {"iqn": cd.iqn})
    return lines + _cut_off([*selectors.disks_of(worker.pk), *([cd] if cd else [])])


def _cut_off(things: Sequence[Disk | Cd]) -> list[str]:
    """Who is connected, and what becomes of it."""
    return [
        _t(
            "connected to %(iqn)s: %(who)s; refused, or cut off at once if you tick it below"
        )
        % {"iqn": iqn, "who": session_words(session)}
        for iqn, sessions in sessions_of(things).items()
        for session in sessions
    ]
