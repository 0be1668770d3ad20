"""The base of every model page: rows are shown from the index, changes go through services."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar
from urllib.parse import urlencode

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext as _

from ipxeready import index
from ipxeready.actors import Actor
from ipxeready.errors import ApplicationError, Conflict
from ipxeready.index.selectors import record_digest
from ipxeready.web.actors import actor_of
from ipxeready.web.words import in_words

_SAFE = ("GET", "HEAD", "OPTIONS")


if TYPE_CHECKING:  # Django's class takes a parameter in its stubs only
    _ModelAdmin = admin.ModelAdmin[Any]
else:
    _ModelAdmin = admin.ModelAdmin


class FileBackedAdmin(_ModelAdmin):
    """Pages over rows that come from a file.

    Subclasses give the three `service_*` hooks, which call services, and nothing else may
    save. A page that talks to storage nodes sets `holds_lock = False`: the lock must never
    be held while something slow happens, so its services take it for themselves.
    """

    #: Name of the index source that `record` belongs to; with it, stale forms are refused.
    source: ClassVar[str] = ""
    #: Whether a POST enters `index.writing()` before Django's own transaction starts, so
    #: that the locks of the files and of SQLite are always taken in this order.
    holds_lock: ClassVar[bool] = True
    #: The same for list actions and for deleting.
    actions_hold_lock: ClassVar[bool] = True

    # --- hooks ------------------------------------------------------------
    def service_create(self, actor: Actor, data: dict[str, Any]) -> Model:
        """Make the thing; returns its row."""
        raise NotImplementedError

    def service_update(self, actor: Actor, obj: Any, data: dict[str, Any]) -> Model:
        """Change the thing; `data` has the changed fields only. Returns its row."""
        raise NotImplementedError

    def service_delete(self, actor: Actor, obj: Any) -> None:
        """Remove the thing."""
        raise NotImplementedError

    def history_url(self, obj: Any) -> str:
        """Where the audit shows what happened to this object."""
        url = reverse(
            "admin:audit_operation_changelist", current_app=self.admin_site.name
        )
        return f"{url}?{urlencode({'q': obj.pk})}"

    # --- Django's saving, replaced ------------------------------------------
    def save_model(
        self, request: HttpRequest, obj: Any, form: Any, change: bool
    ) -> None:
        """Hand what the form says to a service; the row itself is never saved."""
        actor = actor_of(request)
        if change:
            data = {name: form.cleaned_data[name] for name in form.changed_data}
            saved = self.service_update(actor, obj, data) if data else obj
        else:
            saved = self.service_create(actor, dict(form.cleaned_data))
        obj.pk = saved.pk
        obj._state.adding = False

    def save_related(
        self, request: HttpRequest, form: Any, formsets: Any, change: bool
    ) -> None:
        """Nothing: what belongs to a record is part of it."""

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Remove through the service."""
        self.service_delete(actor_of(request), obj)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> None:
        """Remove one by one; a refusal is shown and does not stop the others."""
        for obj in queryset:
            try:
                self.service_delete(actor_of(request), obj)
            except ApplicationError as error:
                self.message_user(request, f"{obj}: {in_words(error)}", messages.ERROR)

    # --- the audit instead of Django's log ----------------------------------
    def log_addition(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Nothing: the service has written the audit line."""

    def log_change(self, request: HttpRequest, obj: Any, message: Any) -> Any:
        """Nothing: the service has written the audit line."""

    def log_deletions(self, request: HttpRequest, queryset: Any) -> Any:
        """Nothing: the service has written the audit line."""

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        """The audit, filtered by the object."""
        obj = self.get_object(request, object_id)
        if obj is None:
            return HttpResponseRedirect(reverse("admin:index"))
        if not self.has_view_or_change_permission(request, obj):
            raise PermissionDenied
        try:
            return HttpResponseRedirect(self.history_url(obj))
        except NoReverseMatch:
            return HttpResponseRedirect(reverse("admin:index"))

    # --- one order of locks -------------------------------------------------
    @property
    def _inner(self) -> Any:
        """This page, for Django's views without their transaction, which the stubs do not know."""
        return self

    @contextlib.contextmanager
    def _writing(self, request: HttpRequest, hold: bool) -> Iterator[None]:
        if not hold:
            yield
            return
        op = f"page.{self.opts.model_name}"
        with index.writing(actor=actor_of(request), op=op):
            yield

    def digest_of(self, obj: Any) -> str:
        """Digest of the record's text, which tells whether a form is stale."""
        if not self.source or obj is None:
            return ""
        return record_digest(self.source, obj.record)

    def changeform_view(
        self,
        request: HttpRequest,
        object_id: str | None = None,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> Any:
        """Django's form page; a POST takes the lock first, a refusal becomes a form error."""
        # Not super(): its own transaction would begin before the lock of the files.
        if request.method in _SAFE:
            obj = (
                self.get_object(request, object_id)
                if object_id and self.source
                else None
            )
            context = {"record_digest": self.digest_of(obj), **(extra_context or {})}
            return self._inner._changeform_view(request, object_id, form_url, context)
        try:
            with self._writing(request, self.holds_lock):
                self._refuse_stale(request, object_id)
                return self._inner._changeform_view(
                    request, object_id, form_url, extra_context
                )
        except ApplicationError as error:
            # Again, with the refusal as an error of the form.
            request._refusal = error  # type: ignore[attr-defined]
            sent = request.POST.get("record_digest", "")
            context = {"record_digest": sent, **(extra_context or {})}
            return self._inner._changeform_view(request, object_id, form_url, context)

    def _refuse_stale(self, request: HttpRequest, object_id: str | None) -> None:
        sent = request.POST.get("record_digest")
        if not sent or not object_id:
            return
        if sent != self.digest_of(self.get_object(request, object_id)):
            raise Conflict(
                _(
                    "this has been changed since you opened the form: open it again, then change it"
                )
            )

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **kwargs: Any
    ) -> type[ModelForm[Any]]:
        """The form; after a refusal, one that shows it."""
        form = super().get_form(request, obj, change, **kwargs)
        refusal: ApplicationError | None = getattr(request, "_refusal", None)
        return _refused_form(form, refusal) if refusal else form

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> Any:
        """Django's question and its answer, the answer under the lock."""
        if request.method in _SAFE:
            return self._inner._delete_view(request, object_id, extra_context)
        try:
            with self._writing(request, self.actions_hold_lock):
                return self._inner._delete_view(request, object_id, extra_context)
        except ApplicationError as error:
            self.message_user(request, in_words(error), messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())

    def response_action(
        self, request: HttpRequest, queryset: QuerySet[Any], *args: Any, **kwargs: Any
    ) -> Any:
        """A list action under the lock; a refusal is shown above the list."""
        try:
            with self._writing(request, self.actions_hold_lock):
                return super().response_action(request, queryset, *args, **kwargs)
        except ApplicationError as error:
            self.message_user(request, in_words(error), messages.ERROR)
            return HttpResponseRedirect(request.get_full_path())


def _refused_form(
    form: type[ModelForm[Any]], refusal: ApplicationError
) -> type[ModelForm[Any]]:
    """A form like `form` that also says why the service refused."""

    def clean(self: forms.ModelForm[Any]) -> Any:
        cleaned = form.clean(self)
        field = refusal.field if refusal.field in self.fields else None
        self.add_error(field, in_words(refusal))
        return cleaned

    return type(form.__name__, (form,), {"clean": clean})
