"""The one admin site at /admin/."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.views import PasswordChangeView
from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext_lazy as _

from ipxeready import index
from ipxeready.users.forms import OwnPasswordForm

#: Problems shown above every page; the rest is counted.
SHOWN_PROBLEMS = 5


class ControlPlaneSite(admin.AdminSite):
    """Django's admin as the control plane's pages."""

    site_title = "ipxeready"
    site_header = "ipxeready"
    index_title = _("Control plane")
    site_url = None
    login_form = AdminAuthenticationForm
    empty_value_display = "-"

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """What every page shows: also what is wrong in the files, to those who are logged in."""
        context = super().each_context(request)
        if context["has_permission"]:
            context["file_problems"] = file_problems()
        return context

    def index(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """The start page: the apps, and links to what is no model."""
        context = {"links": self.links(), **(extra_context or {})}
        return super().index(request, context)

    def links(self) -> list[dict[str, Any]]:
        """Other addresses worth knowing."""
        found = []
        for name, title in (
            ("schema", _("OpenAPI description of the API")),
            ("healthz", _("Health")),
        ):
            try:
                found.append({"url": reverse(name), "title": title})
            except NoReverseMatch:
                continue
        return found

    def password_change(self, request: HttpRequest, extra_context: Any = None) -> Any:
        """One's own password, changed by the service."""
        return PasswordChangeView.as_view(
            form_class=OwnPasswordForm,
            success_url=reverse("admin:password_change_done", current_app=self.name),
            template_name="registration/password_change_form.html",
            extra_context={**self.each_context(request), **(extra_context or {})},
        )(request)


def file_problems() -> list[str]:
    """What is wrong in the files, in words; the first few and how many more."""
    broken = [f"{file.path}: {file.error}" for file in index.files() if file.error]
    found = [
        f"{problem.source}, {problem.record}: {problem.message}"
        for problem in index.problems()[:SHOWN_PROBLEMS]
    ]
    more = index.problems().count() - len(found)
    if more > 0:
        found.append(str(_("%(count)s more problems") % {"count": more}))
    return broken + found
