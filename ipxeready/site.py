"""The one admin site at /admin/."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.auth.views import PasswordChangeView
from django.http import HttpRequest, HttpResponseNotAllowed
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from ipxeready import index
from ipxeready.actors import ADMINISTRATOR, OPERATOR, VIEWER
from ipxeready.dashboard import dashboard
from ipxeready.files import pages as file_pages
from ipxeready.jobs import pages
from ipxeready.users.backends import WAIT
from ipxeready.users.forms import LoginForm, OwnPasswordForm
from ipxeready.users.pages import urls as account_urls
from ipxeready.users.services import first_password_holds
from ipxeready.web.actors import actor_of, client_address
from ipxeready.web.words import in_words
from workers.pages import board

#: Problems shown above every page; the rest is counted.
SHOWN_PROBLEMS = 5

#: The areas above every page in the order of daily use: address, name, the role that may see it.
AREAS: tuple[tuple[str, Any, str], ...] = (
    ("admin:index", _("Dashboard"), VIEWER),
    ("admin:workers_worker_changelist", _("Workers"), VIEWER),
    ("admin:board", _("Board"), OPERATOR),
    ("admin:agents_agent_changelist", _("Nodes"), VIEWER),
    ("admin:jobs", _("Jobs"), VIEWER),
    ("admin:audit_operation_changelist", _("Operations"), VIEWER),
    ("admin:files", _("Files"), VIEWER),
    ("admin:bootvars_setting_changelist", _("Settings"), VIEWER),
    ("admin:users_operator_changelist", _("Users"), ADMINISTRATOR),
)


class ControlPlaneSite(admin.AdminSite):
    """Django's admin as the control plane's pages."""

    site_title = "ipxeready"
    site_header = "ipxeready"
    index_title = _("Control plane")
    site_url = None
    login_form = LoginForm
    empty_value_display = "-"
    #: The areas stand in one line above every page instead.
    enable_nav_sidebar = False

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """What every page shows: also what is wrong in the files, to those who are logged in."""
        context = super().each_context(request)
        if context["has_permission"]:
            context["file_problems"] = file_problems()
            context["areas"] = areas(request)
            context["first_password"] = first_password_holds(
                str(request.user.get_username())
            )
        return context

    def get_urls(self) -> list[Any]:
        """Django's addresses, and those of the pages that belong to no model."""
        return [
            *account_urls(),
            *pages.urls(self),
            *board.urls(),
            *file_pages.urls(),
            *super().get_urls(),
        ]

    def index(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """The start page."""
        if request.method not in ("GET", "HEAD"):
            return HttpResponseNotAllowed(("GET", "HEAD"))
        return dashboard(request)

    def login(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """Django's login; after too many failures 429 with the seconds to wait."""
        response = super().login(request, extra_context)
        wait = getattr(request, WAIT, 0)
        if wait:
            response.status_code = 429
            response["Retry-After"] = str(wait)
        return response

    def password_change(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """One's own password, changed by the service."""
        return OwnPasswordView.as_view(
            form_class=OwnPasswordForm,
            success_url=reverse("admin:password_change_done", current_app=self.name),
            template_name="registration/password_change_form.html",
            extra_context={**self.each_context(request), **(extra_context or {})},
        )(request)


class OwnPasswordView(PasswordChangeView):
    """Django's page; its form also learns where the request comes from."""

    def get_form_kwargs(self) -> dict[str, Any]:
        """The address goes into the audit, and counts like a login's."""
        return {**super().get_form_kwargs(), "client": client_address(self.request)}


def areas(request: HttpRequest) -> list[dict[str, Any]]:
    """The areas that this person may see; `current` is the one whose page, or a page below it, is shown."""
    actor = actor_of(request)
    found = [
        {"url": reverse(name), "title": title, "current": False}
        for name, title, role in AREAS
        if actor.may(role)
    ]
    # The longest address counts: all pages lie below the start page.
    here = [area for area in found if request.path.startswith(area["url"])]
    if here:
        nearest = max(here, key=lambda area: len(area["url"]))
        nearest["current"] = (
            nearest["url"] != found[0]["url"] or request.path == nearest["url"]
        )
    return found


def file_problems() -> list[str]:
    """What is wrong in the files, in words; the first few and how many more."""
    problems = list(index.problems()[: SHOWN_PROBLEMS + 1])
    found = [
        f"{problem.source}, {problem.record}: {in_words(problem.message)}"
        if problem.record
        else in_words(problem.message)
        for problem in problems[:SHOWN_PROBLEMS]
    ]
    # A file that does not parse is a problem too, then with its line: once is enough.
    broken = [
        f"{file.path}: {in_words(file.error)}"
        for file in index.files()
        if file.error and not any(file.path in words for words in found)
    ]
    if len(problems) > SHOWN_PROBLEMS:
        more = index.problems().count() - SHOWN_PROBLEMS
        found.append(str(_("%(count)s more problems") % {"count": more}))
    return broken + found
