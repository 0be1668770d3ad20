"""Forms about people; they hold no rule, the services do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.admin.forms import AdminAuthenticationForm
from django.contrib.auth.forms import PasswordChangeForm
from django.utils.translation import gettext_lazy as _
from django.utils.translation import ngettext

from ipxeready.actors import Actor
from ipxeready.errors import ApplicationError
from ipxeready.users import services, throttle
from ipxeready.users.backends import WAIT
from ipxeready.users.models import Operator
from ipxeready.web.words import in_words

if TYPE_CHECKING:  # Django's classes take a parameter in their stubs only
    _ModelForm = forms.ModelForm[Operator]
else:
    _ModelForm = forms.ModelForm


class OperatorForm(_ModelForm):
    """Role and whether the person may log in; a password only to set another one."""

    password = forms.CharField(
        label=_("Password"),
        required=False,
        strip=False,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
        help_text=_("Leave it empty to keep the present one."),
    )

    class Meta:
        model = Operator
        fields = ("username", "role", "is_active")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance._state.adding:
            self.fields["password"].required = True
            self.fields["password"].help_text = ""

    def validate_unique(self) -> None:
        """Nothing: the service says whose name is taken, with the same words as everywhere."""


def too_many(wait: int) -> str:
    """What is said while a wait lasts."""
    return ngettext(
        "Too many failures. Try again in %(seconds)s second.",
        "Too many failures. Try again in %(seconds)s seconds.",
        wait,
    ) % {"seconds": wait}


class LoginForm(AdminAuthenticationForm):
    """Name and password; says how long to wait after too many failures."""

    def get_invalid_login_error(self) -> forms.ValidationError:
        """The same for a wrong name and a wrong password; the wait is another matter."""
        wait = getattr(self.request, WAIT, 0)
        if wait:
            return forms.ValidationError(too_many(wait), code="too_many")
        return super().get_invalid_login_error()


class OwnPasswordForm(PasswordChangeForm):
    """One's own password: the old one and the new one twice."""

    required_css_class = "required"

    def __init__(self, *args: Any, client: str | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._client = client

    def clean_old_password(self) -> str:
        """Right, or an error; who found a browser that is logged in must not be able to guess here."""
        name, address = self.user.username, self._client or "local"
        wait = throttle.begin(name, address)
        if wait:
            raise forms.ValidationError(too_many(wait))
        found = str(super().clean_old_password())
        throttle.succeeded(name, address)
        return found

    def clean(self) -> Any:
        """Let the service change it: what it refuses is an error of this form."""
        cleaned = super().clean()
        if not self.errors:
            actor = Actor(self.user.username, self.user.role, self._client)
            try:
                self.user = services.user_set_password(
                    actor=actor,
                    username=self.user.username,
                    password=self.cleaned_data["new_password1"],
                )
            except ApplicationError as error:
                self.add_error(None, in_words(error))
        return cleaned

    def save(self, commit: bool = True) -> Operator:
        """Nothing is left to do."""
        return self.user
