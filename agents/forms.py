"""The form of a storage node; it holds no rule, the services do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.utils.translation import gettext_lazy as _

from agents.models import Agent
from agents.protocol import ACL

if TYPE_CHECKING:  # Django's class takes a parameter in its stubs only
    _ModelForm = forms.ModelForm[Agent]
else:
    _ModelForm = forms.ModelForm


class TagsField(forms.CharField):
    """Words with blanks or commas between them."""

    def prepare_value(self, value: Any) -> Any:
        """A list as words."""
        return " ".join(value) if isinstance(value, list) else value

    def to_python(self, value: Any) -> Any:
        """Words as a list."""
        return str(value or "").replace(",", " ").split()

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Compare the words."""
        return bool(self.to_python(data) != list(initial or []))


class AgentForm(_ModelForm):
    """A node; the token is only ever written, never shown."""

    token = forms.CharField(
        label=_("Token"),
        required=False,
        max_length=4096,
        widget=forms.PasswordInput(
            render_value=False, attrs={"autocomplete": "new-password"}
        ),
        help_text=_("IPXE_AGENT_TOKEN of the node."),
    )
    tags = TagsField(
        label=_("Tags"),
        required=False,
        help_text=_(
            "Words with blanks between them; lio or stgt tells the target system."
        ),
    )

    class Meta:
        model = Agent
        fields = (
            "id",
            "base_url",
            "iscsi_server",
            "role_disk",
            "role_cd",
            "tags",
            "enabled",
            "access",
        )
        help_texts = {
            "base_url": _("http://host:4840 of the node's agent."),
            "iscsi_server": _("As machines reach it; empty means the host above."),
            "access": _(
                "Who may log in to targets that are made from now on, for workers without a setting "
                "of their own. Those that are there keep theirs until you apply it to them."
            ),
        }

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        if self.instance._state.adding:
            # The row's default is what a file without a word means; a new node is closed.
            self.initial["access"] = ACL
            return
        self.fields["token"].help_text = _("Leave it empty to keep the present one.")
