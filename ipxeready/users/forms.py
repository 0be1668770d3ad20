"""Forms about people; they hold no rule, the services do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib.auth.forms import PasswordChangeForm
from django.utils.translation import gettext_lazy as _

from ipxeready.actors import Actor
from ipxeready.errors import ApplicationError
from ipxeready.users import services
from ipxeready.users.models import Operator

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


class OwnPasswordForm(PasswordChangeForm):
    """One's own password: the old one and the new one twice."""

    required_css_class = "required"

    def clean(self) -> Any:
        """Let the service change it: what it refuses is an error of this form."""
        cleaned = super().clean()
        if not self.errors:
            actor = Actor(self.user.username, self.user.role)
            try:
                self.user = services.user_set_password(
                    actor=actor,
                    username=self.user.username,
                    password=self.cleaned_data["new_password1"],
                )
            except ApplicationError as error:
                self.add_error(None, error.message)
        return cleaned

    def save(self, commit: bool = True) -> Operator:
        """Nothing is left to do."""
        return self.user
